"""Files appear whole or not at all; links are followed, and what is no file is written through."""

import contextlib
import os
import re
import secrets
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import SOURCE, call
from table_cases import predictions, write

from calibrant import CalibrationReport, Cells
from calibrant.core import files as whole_files
from calibrant.core.files import replacing

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0  # there is none on Windows

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no device files, pipes by name or owners")


def put(path, text="new", then=None):
    with replacing(path) as unfinished:
        unfinished.write_text(text)
        if then is not None:
            then(unfinished)


def failing(error):
    def fail(_):
        raise error

    return fail


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".calibrant-")]


@contextlib.contextmanager
def piped(path):
    """A named pipe with a reader behind it; what it has read is in the list when the block ends."""
    os.mkfifo(path)
    read = []
    thread = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    thread.start()
    yield read
    thread.join(timeout=30)


# --- Regular files ----------------------------------------------------------------------------------------------------


def test_a_new_file_is_as_open_as_the_umask_says(tmp_path):
    before = os.umask(0o027)
    try:
        put(tmp_path / "new.txt")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o640
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755])
def test_a_file_keeps_its_permissions_and_shows_nothing_before_it_is_done(tmp_path, mode):
    target = tmp_path / "old.txt"
    target.write_text("old")
    target.chmod(mode)
    with replacing(target) as unfinished:
        assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600
        unfinished.write_text("new")
        assert target.read_text() == "old"
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert target.read_text() == "new"


@pytest.mark.skipif(not IS_ROOT, reason="only root may give files away")
def test_a_file_keeps_its_owner_where_that_is_allowed(tmp_path):
    target = tmp_path / "old.txt"
    target.write_text("old")
    os.chown(target, 1234, 5678)
    put(target)
    assert (target.stat().st_uid, target.stat().st_gid, target.read_text()) == (1234, 5678, "new")


def test_the_longest_name_that_a_folder_takes_can_be_written(tmp_path):
    target = tmp_path / ("n" * 251 + ".txt")
    put(target)
    assert target.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_the_previous_file_and_nothing_else(tmp_path, error):
    target = tmp_path / "old.txt"
    target.write_text("old")
    with pytest.raises(error):
        put(target, "half of the n", then=failing(error))
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["old.txt"]


def test_what_is_written_is_on_the_disk_before_it_has_a_name(tmp_path, monkeypatch):
    done: list[object] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(handle):
        done.append(stat.S_IFMT(os.fstat(handle).st_mode))
        fsync(handle)

    def noted_replace(*paths):
        done.append("renamed")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    put(tmp_path / "new.txt")
    assert done == [stat.S_IFREG, "renamed", stat.S_IFDIR]


def test_the_temporary_name_cannot_be_guessed_and_is_never_one_that_was_there(tmp_path, monkeypatch):
    with replacing(tmp_path / "one.txt") as first, replacing(tmp_path / "one.txt") as second:
        assert first.name != second.name
        assert str(os.getpid()) not in re.split(r"[-.]", first.name)
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0" * 2 * size)
    planted = tmp_path / f".calibrant-{whole_files._MACHINE}-{'0' * 16}.part"
    planted.symlink_to(victim)
    with pytest.raises(FileExistsError, match=r"one\.txt cannot be written: File exists; write elsewhere"):
        put(tmp_path / "one.txt")
    assert victim.read_text() == "precious"


def test_a_temporary_file_that_was_exchanged_is_not_put_in_place(tmp_path):
    target = tmp_path / "old.txt"
    target.write_text("old")
    (tmp_path / "other.txt").write_text("planted")

    def exchange(unfinished):
        unfinished.unlink()
        unfinished.symlink_to(tmp_path / "other.txt")

    with pytest.raises(OSError, match=r"old\.txt was not written: its temporary file .* was removed or exchanged"):
        put(target, then=exchange)
    assert target.read_text() == "old"
    assert (tmp_path / "other.txt").read_text() == "planted"
    assert leftovers(tmp_path) == []


def test_threads_that_write_one_file_do_not_meet(tmp_path):
    target = tmp_path / "shared.txt"
    texts = {str(k) * 100_000 for k in range(8)}
    failures = []

    def repeat(text):
        try:
            for _ in range(25):
                put(target, text)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=repeat, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    seen = set()
    while any(thread.is_alive() for thread in threads):
        with contextlib.suppress(FileNotFoundError):
            seen.add(target.read_text())
    assert failures == []
    assert seen <= texts
    assert target.read_text() in texts
    assert leftovers(tmp_path) == []


# --- Links ------------------------------------------------------------------------------------------------------------


def test_a_link_stays_a_link_and_its_file_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "real.txt"
    target.write_text("old")
    target.chmod(0o640)
    (tmp_path / "second").symlink_to("there/real.txt")
    (tmp_path / "first").symlink_to(tmp_path / "second")
    with replacing(tmp_path / "first") as unfinished:
        assert unfinished.parent == target.parent.resolve()
        unfinished.write_text("new")
    assert (tmp_path / "first").is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("new", 0o640)


def test_a_link_to_nothing_makes_what_it_names(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/new.txt")
    put(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "new.txt").read_text() == "new"


def test_links_that_lead_nowhere_are_refused(tmp_path):
    (tmp_path / "round").symlink_to("about")
    (tmp_path / "about").symlink_to("round")
    with pytest.raises(OSError, match=r"round cannot be written: its links lead round in a circle; name a file"):
        put(tmp_path / "round")
    (tmp_path / "lost").symlink_to(tmp_path / "gone" / "new.txt")
    with pytest.raises(FileNotFoundError, match=r"lost cannot be written: there is no folder .*gone \(a link leads to"):
        put(tmp_path / "lost")


# --- What is no file --------------------------------------------------------------------------------------------------


def test_devices_stay_devices(tmp_path):
    null = tmp_path / "null"
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        null = Path(os.devnull)
    before = null.stat()
    put(null)
    (tmp_path / "link").symlink_to(null)
    put(tmp_path / "link")
    assert stat.S_ISCHR(null.stat().st_mode)
    assert os.path.samestat(before, null.stat())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, the device of Linux that is always full")
def test_a_full_device_is_named():
    with pytest.raises(
        OSError, match=r"^/dev/full cannot be written: No space left on device; make room, or write to another disk"
    ):
        put("/dev/full")


def test_a_file_that_finds_no_room_is_named_and_the_previous_one_kept(tmp_path):
    program = """
    import resource, sys
    from calibrant.core.files import replacing
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    with replacing(sys.argv[1]) as unfinished:
        unfinished.write_text("x" * 2000)
    """
    target = tmp_path / "old.txt"
    target.write_text("old")
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(target)],
        env={"PYTHONPATH": SOURCE, "PYTHONDONTWRITEBYTECODE": "1"},  # Python would keep what it could not write whole
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stderr.endswith(
        f"OSError: {target} cannot be written: File too large; make room, or write to another disk\n"
    )
    assert target.read_text() == "old"
    assert leftovers(tmp_path) == []


def test_a_pipe_gets_all_bytes_or_none_and_stays_a_pipe(tmp_path):
    with piped(tmp_path / "pipe") as read:
        put(tmp_path / "pipe", "through " * 20_000)
    assert read == [b"through " * 20_000]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    (tmp_path / "pipe").unlink()
    with piped(tmp_path / "pipe") as read:
        with pytest.raises(ValueError, match="no more"):
            put(tmp_path / "pipe", "half", then=failing(ValueError("no more")))
        (tmp_path / "pipe").write_bytes(b"")  # which lets the reader go
    assert read == [b""]
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout, a name for the output")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "{link}"])
def test_a_name_of_an_open_stream_is_that_stream(tmp_path, name):
    (tmp_path / "link").symlink_to("/dev/stdout")
    program = """
    import sys
    from calibrant.core.files import replacing
    print("before")
    with replacing(sys.argv[1]) as unfinished:
        unfinished.write_text("through\\n")
    print("after")
    """
    command = [sys.executable, "-c", textwrap.dedent(program), name.format(link=tmp_path / "link")]
    options: dict[str, Any] = {"env": {"PYTHONPATH": SOURCE}, "check": True}
    assert subprocess.run(command, capture_output=True, **options).stdout == b"before\nthrough\nafter\n"
    with (tmp_path / "log").open("wb") as log:  # a file behind the stream is not replaced under it
        log.write(b"first\n")
        log.flush()
        subprocess.run(command, stdout=log, **options)
    assert (tmp_path / "log").read_text() == "first\nbefore\nthrough\nafter\n"
    assert (tmp_path / "link").is_symlink()


def test_what_must_not_be_written_is_refused_and_says_why(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"cannot be written: it is a folder; name a file inside it"):
        put(tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"new\.txt cannot be written: there is no folder .*gone; make it first"
    ):
        put(tmp_path / "gone" / "new.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*file; make it first"):
        put(tmp_path / "file" / "new.txt")
    with pytest.raises(OSError, match=r"/dev/fd/99 cannot be written: this program was given no such stream to write"):
        put("/dev/fd/99")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match=r"socket cannot be written: it is a socket; name a file"):
            put(tmp_path / "socket")
    assert stat.S_ISSOCK((tmp_path / "socket").stat().st_mode)


def test_folders_and_files_that_are_protected_are_refused_before_any_work():
    program = """
    import os, sys
    from calibrant.core.files import check_target
    if os.geteuid() == 0:  # to whom nothing is forbidden
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    for path in sys.argv[1:]:
        try:
            check_target(path)
        except PermissionError as error:
            print(error)
    """
    with tempfile.TemporaryDirectory() as folder:  # the folders of tests are closed to other users
        Path(folder).chmod(0o755)
        allowed, closed = Path(folder, "allowed"), Path(folder, "closed")
        allowed.mkdir()
        closed.mkdir()
        protected = allowed / "protected.txt"
        protected.write_text("old")
        protected.chmod(0o444)
        allowed.chmod(0o777)
        closed.chmod(0o555)
        paths = [closed / "new.txt", protected, allowed / "new.txt", "/dev/null"]
        found = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), *map(str, paths)],
            env={"PYTHONPATH": SOURCE},
            capture_output=True,
            text=True,
            check=False,
        )
    assert found.stderr == ""
    assert found.stdout.splitlines() == [
        f"{closed / 'new.txt'} cannot be written: the folder {closed} takes no new files; allow it, or write elsewhere",
        f"{protected} cannot be written: it is write-protected; allow it, or name another file",
    ]


# --- What killed programs leave ---------------------------------------------------------------------------------------


HANGING = """
    import sys, time
    from calibrant.core.files import replacing
    with replacing(sys.argv[1]) as unfinished:
        unfinished.write_text("half of the n")
        print("writing", flush=True)
        time.sleep(600)
"""


@contextlib.contextmanager
def hanging(target):
    command = [sys.executable, "-c", textwrap.dedent(HANGING), str(target)]
    with subprocess.Popen(command, env={"PYTHONPATH": SOURCE}, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "writing\n"
            yield process
        finally:
            process.kill()


def test_what_a_killed_program_left_is_swept_by_the_next_and_what_is_being_written_is_not(tmp_path):
    with hanging(tmp_path / "one.txt") as killed, hanging(tmp_path / "two.txt"):
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert len(leftovers(tmp_path)) == 2
        put(tmp_path / "three.txt")
        assert len(leftovers(tmp_path)) == 1  # that of the second program, which is alive
    put(tmp_path / "three.txt")
    assert leftovers(tmp_path) == []


def test_nothing_else_is_swept(tmp_path):
    here, elsewhere = whole_files._MACHINE, "0123abcd"
    precious = tmp_path / "precious.txt"
    precious.write_text("precious")
    ours = f".calibrant-{here}-{'1' * 16}.part"
    kept = [
        ours.replace("1111", "111", 1),
        ours + ".bak",
        f".calibrant-{elsewhere}-{'1' * 16}.part",
        "model.part",
    ]
    for name in [*kept, ours]:
        (tmp_path / name).write_text("")
    link = f".calibrant-{here}-{'2' * 16}.part"
    (tmp_path / link).symlink_to(precious)
    os.mkfifo(tmp_path / f".calibrant-{here}-{'3' * 16}.part")
    (tmp_path / f".calibrant-{here}-{'4' * 16}.part").mkdir()
    before = set(os.listdir(tmp_path))
    put(tmp_path / "new.txt")
    assert set(os.listdir(tmp_path)) == (before | {"new.txt"}) - {ours}
    assert precious.read_text() == "precious"
    day = time.time() - 2 * 86_400
    os.utime(tmp_path / kept[2], (day, day))
    put(tmp_path / "new.txt")
    assert not (tmp_path / kept[2]).exists()


@pytest.mark.skipif(not IS_ROOT, reason="only root can make files of somebody else")
def test_what_others_left_is_theirs(tmp_path):
    left = tmp_path / f".calibrant-{whole_files._MACHINE}-{'1' * 16}.part"
    left.write_text("")
    os.chown(left, 1234, 1234)
    put(tmp_path / "new.txt")
    assert left.exists()


def test_one_who_was_swept_between_making_and_locking_makes_another(tmp_path, monkeypatch):
    locked = whole_files._locked
    calls: list[bool] = []

    def swept_first(handle, *, wait):
        if not calls:
            for name in leftovers(tmp_path):
                (tmp_path / name).unlink()
        calls.append(wait)
        return locked(handle, wait=wait)

    monkeypatch.setattr(whole_files, "_locked", swept_first)
    put(tmp_path / "new.txt")
    assert calls == [True, True]
    assert (tmp_path / "new.txt").read_text() == "new"


# --- Everything that writes -------------------------------------------------------------------------------------------


def test_cells_and_reports_go_through_the_same_door(tmp_path):
    cells = Cells.from_arrays([0, 1, 1], [0.1, 0.12, 0.9])
    with piped(tmp_path / "pipe") as read:
        cells.to_parquet(tmp_path / "pipe")
    (tmp_path / "copy.parquet").write_bytes(read[0])
    assert Cells.from_parquet(tmp_path / "copy.parquet").row_total == 3
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    rng = np.random.default_rng(0)
    p = rng.random(50)
    report = CalibrationReport.from_predictions(rng.random(50) < p, p)
    assert report.write_html(tmp_path / "link.html") == tmp_path / "link.html"
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").read_text() == report.html()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write(predictions(), folder / "t.csv", "csv")
    assert call("recalibrate", "fit", folder / "t.csv", "--out", folder / "m.json").exit_code == 0
    return folder


WRITERS = {
    "fit": ("recalibrate", "fit", "{files}/t.csv", "--out", "{out}.json"),
    "apply csv": ("recalibrate", "apply", "{files}/m.json", "{files}/t.csv", "--out", "{out}.csv"),
    "apply parquet": ("recalibrate", "apply", "{files}/m.json", "{files}/t.csv", "--out", "{out}.parquet"),
    "report": ("report", "{files}/t.csv", "--format", "md", "--out", "{out}.md"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_commands_write_through_pipes_and_links(files, tmp_path, name):
    def run(folder, prepare):
        folder.mkdir()
        arguments = [part.format(files=files, out=folder / "out") for part in WRITERS[name]]
        with prepare(Path(arguments[-1])) as read:
            found = call(*arguments)
        assert found.exit_code == 0, found.output
        return Path(arguments[-1]), read

    @contextlib.contextmanager
    def linked(path):
        path.symlink_to("real")
        yield

    plain, _ = run(tmp_path / "plain", contextlib.nullcontext)
    pipe, read = run(tmp_path / "pipe", piped)
    link, _ = run(tmp_path / "link", linked)
    assert read == [plain.read_bytes()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert link.is_symlink()
    assert (tmp_path / "link" / "real").read_bytes() == plain.read_bytes()


@pytest.mark.parametrize("name", WRITERS)
def test_commands_refuse_what_cannot_be_written_before_they_read(tmp_path, name):
    (tmp_path / "m.json").write_text("{}")
    arguments = [part.format(files=tmp_path, out=tmp_path / "gone" / "out") for part in WRITERS[name]]
    found = call(*arguments)  # there is no t.csv, which would be the next thing to say
    assert found.exit_code == 2
    assert f"{arguments[-1]} cannot be written: there is no folder {tmp_path / 'gone'}; make it first" in found.stderr


def test_rows_that_find_no_room_are_not_blamed_on_the_input(files, tmp_path, tmp_path_factory):
    program = """
    import resource, sys
    from calibrant.cli import main
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    for target in sys.argv[3:]:
        try:
            main(["recalibrate", "apply", *sys.argv[1:3], "--y-prob", "p", "--out", target])
        except SystemExit as end:
            print(end.code)
    """
    targets = [tmp_path / f"out.{suffix}" for suffix in ("csv", "parquet", "jsonl")]
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, [files / "m.json", files / "t.csv", *targets])],
        env={
            "PYTHONPATH": SOURCE,
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("numba")),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == "2\n" * len(targets)
    assert found.stderr.splitlines() == [
        f"Error: {target} cannot be written: File too large; make room, or write to another disk" for target in targets
    ]
    assert list(tmp_path.iterdir()) == []
