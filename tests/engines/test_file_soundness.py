"""Files that are cut off, damaged, endless, strange or none at all: read right, or refused in one sentence."""

import errno
import gzip
import json
import os
import subprocess
import sys
import textwrap
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from cli_cases import SOURCE, call
from table_cases import FORMATS, outcome_minus_forecast, predictions, read, write

import calibrant
from calibrant.engines import integrity
from calibrant.engines.columns import write_with_column
from calibrant.engines.files import open_table
from calibrant.engines.formats import TableError


def refused(path, message):
    """Make sure that a file is refused in one sentence: read, scanned, and on the command line both ways."""
    with pytest.raises(TableError, match=message) as error:
        read(path, ["y", "p"])
    assert "\n" not in str(error.value)
    with pytest.raises(TableError, match=message):
        outcome_minus_forecast(path)
    for options in ((), ("--memory-limit", "500MB")):
        found = call("certify", path, "--max-error", "0.2", "--y-true", "y", "--y-prob", "p", *options)
        assert found.exit_code == 2, found.output
        assert "please report it" not in found.stderr


# --- Compressed text that is cut off ----------------------------------------------------------------------------------


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


COMPRESSED = {"gz": gzip.compress, "zst": zstd}


def parts_of(kind, count):
    """Return the same table as some compressed streams one after the other, which together are one file."""
    rng = np.random.default_rng(3)
    note = "x" * 1200  # the first megabyte is read when the file is opened
    lines = [f"{rng.integers(2)},{rng.random():.3f},{note}\n".encode() for _ in range(900)]
    lines[0] = b"y,p,note\n" + lines[0]
    step = len(lines) // count
    return [COMPRESSED[kind](b"".join(lines[k : k + step])) for k in range(0, len(lines), step)]


@pytest.mark.parametrize("kind", COMPRESSED)
@pytest.mark.parametrize("count", [1, 3])
def test_compressed_text_that_is_cut_off_is_refused_wherever_it_is_cut(kind, count, tmp_path):
    parts = parts_of(kind, count)
    whole, path = b"".join(parts), tmp_path / f"t.csv.{kind}"
    ends = [sum(map(len, parts[:k])) for k in range(1, count + 1)]
    path.write_bytes(whole)
    assert read(path)["p"].size == 900
    inside = {end - back for end in ends[-2:] for back in (1, 5, 9, len(parts[0]) // 2)}
    headers = {end + on for end in ends[:1] if end < len(whole) for on in (1, 3, 4, 5, 9, 11)}
    for cut in sorted(inside | headers | {5, 11}):
        path.write_bytes(whole[:cut])
        with pytest.raises(TableError, match=r"t\.csv\.(gz|zst) ") as error:
            read(path)
        assert "\n" not in str(error.value), cut
    path.write_bytes(whole[:-4])
    refused(path, r"t\.csv\.(gz|zst) is cut off or damaged: Truncated compressed stream; make or copy")


@pytest.mark.parametrize("kind", COMPRESSED)
def test_a_cut_between_two_streams_leaves_a_whole_file(kind, tmp_path):
    """Nothing in the bytes tells it from a file that was meant to be so, which docs/reference/cli.md says."""
    path = tmp_path / f"t.csv.{kind}"
    path.write_bytes(b"".join(parts_of(kind, 3)[:2]))
    assert read(path)["p"].size == 600


def test_cut_off_json_lines_are_refused(tmp_path):
    path = tmp_path / "t.jsonl.zst"
    records = [json.dumps({"y": k % 2, "p": k / 1000}).encode() + b"\n" for k in range(1000)]
    parts = [zstd(b"".join(records[k : k + 250])) for k in range(0, 1000, 250)]
    path.write_bytes(b"".join(parts)[:-7])
    refused(path, r"t\.jsonl\.zst is cut off or damaged: Truncated compressed stream; make or copy")


def test_a_flipped_bit_in_text_with_gzip_is_refused(tmp_path):
    """Its checksum is always there; that of zstd is optional, and pyarrow, which writes zstd here, leaves it out."""
    (whole,) = parts_of("gz", 1)
    path, rng = tmp_path / "t.csv.gz", np.random.default_rng(0)
    for _ in range(10):
        content = bytearray(whole)
        content[int(rng.integers(20, len(content)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        with pytest.raises(TableError, match=r"t\.csv\.gz"):
            read(path)


# --- Checksums --------------------------------------------------------------------------------------------------------


def flipped(path, where):
    content = bytearray(path.read_bytes())
    content[where] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_flipped_bit_in_an_array_is_refused_if_the_array_is_asked_for(save, tmp_path):
    rng = np.random.default_rng(5)
    path = tmp_path / "t.npz"
    save(path, y=rng.integers(0, 2, 5000), p=rng.random(5000), other=rng.random(5000))
    with zipfile.ZipFile(path) as archive:
        places = {member.filename: member.header_offset + member.compress_size for member in archive.infolist()}
    flipped(path, places["other.npy"])
    assert read(path)["p"].size == 5000
    assert abs(outcome_minus_forecast(path)) < 0.1
    flipped(path, places["p.npy"])
    assert read(path, ["y"])["y"].size == 5000
    refused(path, r"t\.npz cannot be read as an NPZ file: (Bad CRC-32 for file 'p\.npy'|Error -3)")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_a_flipped_bit_in_a_parquet_page_is_refused_where_pages_have_checksums(version, compression, tmp_path):
    rng = np.random.default_rng(6)
    rows = 30_000
    columns = {"y": rng.integers(0, 2, rows), "p": rng.random(rows), "ward": rng.choice(["a", "b"], rows)}
    nested = [{"a": k, "b": [k]} for k in range(rows)]
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(
        pa.table({**columns, "nested": nested}),
        path,
        compression=compression,
        data_page_version=version,
        write_page_checksum=True,
        row_group_size=8000,
        data_page_size=10_000,
    )
    assert read(path, columns)["p"].tolist() == columns["p"].tolist()
    metadata = pyarrow.parquet.read_metadata(path)
    names = [metadata.row_group(2).column(k).path_in_schema for k in range(metadata.num_columns)]
    places = {}
    for name in ("p", "ward", "nested.a"):
        chunk = metadata.row_group(2).column(names.index(name))
        first = chunk.data_page_offset if chunk.dictionary_page_offset is None else chunk.dictionary_page_offset
        places[name] = first + chunk.total_compressed_size - 9
    flipped(path, places["nested.a"])
    assert read(path)["p"].tolist() == columns["p"].tolist()
    flipped(path, places["ward"])
    with pytest.raises(TableError, match=r"t\.parquet is damaged: column 'ward', .* does not match its checksum"):
        read(path, ["ward"])
    flipped(path, places["p"])
    refused(path, r"t\.parquet is damaged: column 'p', from byte [\d,]+ on: a page does not match its checksum; make")


def test_page_headers_that_are_garbage_are_no_crash(tmp_path):
    path = tmp_path / "t.parquet"
    columns = {"y": np.arange(2000) % 2, "p": np.arange(2000) / 2000}
    pyarrow.parquet.write_table(
        pa.table(columns), path, write_page_checksum=True, compression="none", use_dictionary=False
    )
    start = pyarrow.parquet.read_metadata(path).row_group(0).column(1).data_page_offset
    whole = path.read_bytes()
    rng = np.random.default_rng(8)
    for content in [b"\x1c" * 40, b"\xff" * 40, b"\x15" + b"\x80" * 39, *(rng.bytes(20) for _ in range(30))]:
        path.write_bytes(whole[:start] + content + whole[start + len(content) :])
        with pytest.raises(TableError, match=r"t\.parquet") as error:
            read(path)
        assert "\n" not in str(error.value)


# --- Memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv.zst"])
@pytest.mark.parametrize("where", ["first", "last"])
def test_a_line_longer_than_memory_is_meant_for_is_refused(name, where, tmp_path, monkeypatch):
    monkeypatch.setattr(integrity, "LONGEST_LINE", 5000)
    row = b"1,0.5,a\n"
    endless = b"0,0.25," + b"x" * 6000 + b"\n"
    text = b"y,p,note\n" + (endless + row * 500 if where == "first" else row * 500 + endless[:-1])
    if ".tsv" in name:
        text = text.replace(b",", b"\t")
    path = tmp_path / name
    path.write_bytes(COMPRESSED.get(path.suffix[1:], bytes)(text))
    begun = 9 if where == "first" else 9 + 500 * len(row)
    refused(path, rf"t\.\S+: the line that begins at byte {begun:,} is longer than 5,000 bytes; leave out the column")


def test_lines_up_to_the_limit_are_read(tmp_path):
    path = tmp_path / "t.csv"
    long = "x" * (integrity.LONGEST_LINE - 100)
    path.write_text(f"y,p,note\n1,0.5,a\n0,0.25,{long}\n1,0.75,\n")
    assert read(path)["p"].tolist() == [0.5, 0.25, 0.75]
    path.write_text(f"y,p,note\n1,0.5,a\n0,0.25,{long * 20}")  # which DuckDB, told the types, leaves out
    refused(path, "longer than 2,000,000")


def memory_taken(imports, code):
    """Run code in a process of its own, and return how many megabytes it took on top of what it had imported."""
    program = f"""
        import re
        {textwrap.indent(imports, " " * 8).strip()}
        def peak():
            with open("/proc/self/status") as status:
                return int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1]) // 1024
        before = peak()
        {textwrap.indent(textwrap.dedent(code), " " * 8).strip()}
        print(peak() - before)
        """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return int(found.stdout)


HAS_STATUS = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux tells a process its peak")


@HAS_STATUS
def test_a_line_without_end_takes_no_memory(tmp_path):
    """A small file may hold an endless line; of this one, 300 MB long, two copies were in memory once."""
    path = tmp_path / "t.csv.gz"
    block = b"0" * (1 << 20)
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"y,p\n1,0.5\n0,0.")
        for _ in range(300):
            file.write(block)
    taken = memory_taken(
        "import pyarrow, pandas, duckdb, calibrant, click.testing, calibrant.certificates, calibrant.cli",
        f"""
        options = ["certify", {str(path)!r}, "--max-error", "0.1", "--memory-limit", "100MB"]
        found = click.testing.CliRunner().invoke(calibrant.cli.main, options)
        assert found.exit_code == 2, found.output
        assert "longer than 2,000,000" in found.stderr, found.stderr
        """,
    )
    assert taken < 250


@HAS_STATUS
@pytest.mark.parametrize("kind", ["npz", "stream", "arrow"])
def test_columns_that_nobody_asks_for_take_no_memory(kind, tmp_path):
    path, rows = tmp_path / f"t.{kind}", 1_000_000
    columns: dict[str, Any] = {"y": np.zeros(rows, np.int8), "p": np.zeros(rows), "unused": np.zeros(rows, "S256")}
    if kind == "npz":
        np.savez_compressed(path, **columns)
    else:
        unused = pa.FixedSizeBinaryArray.from_buffers(pa.binary(256), rows, [None, pa.py_buffer(columns["unused"])])
        table = pa.table({**columns, "unused": unused})
        new = pyarrow.ipc.new_stream if kind == "stream" else pyarrow.ipc.new_file
        with new(path, table.schema, options=pyarrow.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
    assert path.stat().st_size < 1_000_000
    taken = memory_taken(
        "import numpy, pyarrow.dataset, pandas, duckdb\n"
        "from calibrant.engines.columns import count_rows, read_columns\n"
        "from calibrant.engines.files import open_table",
        f"""
        with open_table({str(path)!r}, memory_limit="100MB") as table:
            assert list(table.columns) == ["y", "p", "unused"]
            assert read_columns(table, ["y"], numbers=["y"])["y"].size == count_rows(table) == {rows}
        """,
    )
    assert taken < 150


# --- Folders, patterns and names --------------------------------------------------------------------------------------


def table_text(*forecasts):
    return "y,p\n" + "".join(f"1,{forecast}\n" for forecast in forecasts)


def test_what_editors_and_programs_leave_in_a_folder_is_not_counted(tmp_path):
    folder = tmp_path / "parts"
    (folder / "later").mkdir(parents=True)
    (folder / "1.csv").write_text(table_text(0.5))
    (folder / "later" / "2.CSV").write_text(table_text(0.25))
    left = [
        "1.csv~",
        "1.csv.bak",
        "#1.csv#",
        ".1.csv.swp",
        "_SUCCESS",
        ".1.csv.crc",
        "1.csv.crc",
        "2.csv.part",
        "x.TMP",
    ]
    for name in left:
        (folder / name).write_text(table_text(1))
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "3.csv").write_text(table_text(1))
    assert read(folder)["p"].tolist() == [0.5, 0.25]
    assert outcome_minus_forecast(folder) == pytest.approx(1 - 0.375)
    assert json.loads(call("measure", folder, "--json").stdout)["input"]["rows"] == 2


@pytest.mark.parametrize("name", ["README", "notes.txt", "1.xlsx", "2.csv.zip", "part-00001"])
def test_what_may_be_data_and_may_not_be_is_named(name, tmp_path):
    (tmp_path / "1.csv").write_text(table_text(0.5))
    (tmp_path / name).write_text(table_text(0.25))
    refused(tmp_path, rf"holds '{name}', whose name ends in none of \.csv, .*; take it away, name the files with a pat")
    assert read(tmp_path, file_format="csv")["p"].size == 2  # whoever says what they are means them all
    assert call("measure", tmp_path, "--format", "csv").exit_code == 0


def test_links_pipes_and_dead_ends_in_a_folder_are_named(tmp_path):
    folder, elsewhere = tmp_path / "parts", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "1.csv").write_text(table_text(0.5))
    (elsewhere / "2.csv").write_text(table_text(0.25))
    (folder / "2.csv").symlink_to(elsewhere / "2.csv")
    assert read(folder)["p"].tolist() == [0.5, 0.25]
    for name, target in (("more", elsewhere), ("3.csv", elsewhere / "3.csv")):
        (folder / name).symlink_to(target)
        with pytest.raises(TableError, match=rf"parts holds '{name}', which is no file; take it away"):
            read(folder)
        (folder / name).unlink()
    os.mkfifo(folder / "pipe.csv")
    with pytest.raises(TableError, match=r"parts holds 'pipe\.csv', which is no file; take it away"):
        read(folder)


def test_a_pattern_that_stands_for_too_much_is_narrowed(tmp_path):
    for name in ("1.csv", "2.csv", "2.csv~"):
        (tmp_path / name).write_text(table_text(0.5))
    assert read(tmp_path / "*.csv")["p"].size == 2
    assert read(tmp_path / "*~")["p"].size == 1
    with pytest.raises(
        TableError, match=r"2\.csv\* stands for .*2\.csv~, too, which looks like a leftover; narrow the"
    ):
        read(tmp_path / "2.csv*")
    (tmp_path / "3.csv").mkdir()
    with pytest.raises(TableError, match=r"stands for the folder .*3\.csv, too; let the pattern end in names of files"):
        read(tmp_path / "*.csv")


def test_files_that_are_read_together_must_be_alike(tmp_path):
    (tmp_path / "1.csv").write_text(table_text(0.5))
    write({"y": [1], "p": [0.5]}, tmp_path / "2.parquet", "parquet")
    refused(tmp_path, r"1\.csv is csv and .*2\.parquet is parquet; files that are read together must be alike")
    (tmp_path / "3.csv").touch()
    with pytest.raises(TableError, match=r"/3\.csv is empty"):
        read([tmp_path / "1.csv", tmp_path / "3.csv"])


def test_a_tilde_is_a_name_like_any_other(tmp_path, monkeypatch):
    home = tmp_path / "home"
    for folder, forecast in ((tmp_path / "~", 0.5), (home, 1.0)):
        folder.mkdir()
        for kind in FORMATS:
            write({"y": [1, 1], "p": [forecast, 0.25]}, folder / f"t.{kind}", kind)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(home))
    for kind in FORMATS:
        assert read(f"~/t.{kind}")["p"].tolist() == [0.5, 0.25]
        assert read(f"~/*.{kind}")["p"].tolist() == [0.5, 0.25]
        assert outcome_minus_forecast(f"~/t.{kind}") == 1 - 0.375
    with open_table("~/t.csv") as table:
        write_with_column(table, "q", lambda p: p, "p", Path("~/out.csv"), "FORMAT csv, HEADER")
    assert (tmp_path / "~" / "out.csv").exists()
    assert not (home / "out.csv").exists()


# --- Pipes ------------------------------------------------------------------------------------------------------------


def fed(path, content):
    """Write into a pipe as another program would, once somebody reads it."""
    thread = threading.Thread(target=path.write_bytes, args=(content,), daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("kind", FORMATS)
def test_a_named_pipe_is_read_once(kind, tmp_path):
    columns = predictions(30)
    content = write(columns, tmp_path / "whole", kind).read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for ask in (
        lambda: read(pipe, file_format="tsv" if kind == "tsv" else None)["p"].size,
        lambda: rows_on_command_line(pipe),
    ):
        thread = fed(pipe, content)
        assert ask() == 30
        thread.join()
    thread = fed(pipe, content)
    assert outcome_minus_forecast(pipe) == pytest.approx(np.mean(columns["y"]) - np.mean(columns["p"]))
    thread.join()


def rows_on_command_line(path):
    return json.loads(call("measure", path, "--y-true", "y", "--y-prob", "p", "--json").stdout)["input"]["rows"]


def test_pipes_and_files_may_be_named_together_and_the_name_of_a_pipe_counts(tmp_path):
    os.mkfifo(tmp_path / "2.csv")
    (tmp_path / "1.csv").write_text(table_text(0.5))
    thread = fed(tmp_path / "2.csv", table_text(0.25).encode())
    assert read([tmp_path / "1.csv", tmp_path / "2.csv"])["p"].tolist() == [0.5, 0.25]
    thread.join()
    thread = fed(tmp_path / "2.csv", b"")
    with pytest.raises(TableError, match=r"2\.csv is empty"):
        read(tmp_path / "2.csv")
    thread.join()


def test_process_substitution_is_read(tmp_path):
    write(predictions(30), tmp_path / "t.csv", "csv")
    program = f"'{sys.executable}' -m calibrant measure <(cat '{tmp_path}/t.csv') --y-prob p --json"
    found = subprocess.run(
        ["bash", "-c", program], capture_output=True, env={**os.environ, "PYTHONPATH": SOURCE}, check=False, timeout=120
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["input"]["rows"] == 30


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_devices_are_refused(device):
    with pytest.raises(TableError, match=f"{device} is neither a file nor a folder nor a pipe; name one of them"):
        open_table(device)


def test_a_stream_of_text_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(table_text(0.5))
    with path.open() as stream, pytest.raises(TableError, match=r"t\.csv is a stream of text; open it for bytes"):
        open_table(stream)
    with path.open("rb") as stream:
        assert read(stream)["p"].tolist() == [0.5]


# --- Disks ------------------------------------------------------------------------------------------------------------


def limited(code, size, **environment):
    """Run code in a process that may write no file larger than a size: the disk is full for it."""
    program = f"""
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
        from click.testing import CliRunner
        from calibrant.cli import main
        def call(*arguments, **options):
            found = CliRunner().invoke(main, [str(each) for each in arguments], **options)
            return found.exit_code, found.stderr
        """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": SOURCE,
            "PYTHONDONTWRITEBYTECODE": "1",  # Python would keep what it could not write whole
            "NUMBA_DISABLE_JIT": "1",
            **environment,
        },
        check=False,
    )
    assert found.returncode == 0, found.stderr


def test_files_are_read_where_nothing_can_be_written(tmp_path):
    columns = predictions(30)
    for kind in FORMATS:
        write(columns, tmp_path / f"t.{kind}", kind)
    limited(
        f"""
        import io, os, sys
        import pytest
        import calibrant
        from calibrant.engines.files import make_scratch, open_table
        os.chdir({str(tmp_path)!r})
        assert make_scratch(None) is None  # otherwise this test would show nothing
        for kind in {FORMATS}:
            code, said = call("measure", f"t.{{kind}}", "--y-true", "y", "--y-prob", "p")
            assert code == 0, said
        code, said = call("measure", "t.csv", "--y-true", "y", "--y-prob", "p", "--memory-limit", "1GB")
        assert code == 0, said
        remedy = "no folder for temporary files can be written to: let the environment variable TMPDIR name a folder"
        code, said = call("measure", "-", "--y-prob", "p", input=b"y,p\\n1,0.5\\n")
        assert code == 2 and "standard input has to be copied before it can be read, and " + remedy in said, said
        import pandas
        frame = pandas.DataFrame({{"y": [0, 1], "p": [0.5, 0.5]}})
        with calibrant.scan(frame, y_true="y", y_prob="p") as rows:
            assert calibrant.measures.calibration_in_the_large(rows) == 0.0
        """,
        0,
    )


def test_a_folder_for_what_does_not_fit_that_is_not_there_is_named(tmp_path):
    (tmp_path / "t.csv").write_text(table_text(0.5))
    for source in (tmp_path / "t.csv", pa.table({"y": [1], "p": [0.5]})):
        with pytest.raises(
            ValueError, match=r"temp_directory is '.*nowhere', where nothing can be written: No such file"
        ):
            calibrant.scan(source, y_true="y", y_prob="p", temp_directory=tmp_path / "nowhere")


def test_a_full_disk_is_no_fault_of_the_file(tmp_path):
    write(predictions(3000), tmp_path / "t.csv", "csv")
    assert call("recalibrate", "fit", tmp_path / "t.csv", "--y-prob", "p", "--out", tmp_path / "m.json").exit_code == 0
    limited(
        f"""
        import os
        os.chdir({str(tmp_path)!r})
        for kind in ("csv", "tsv", "parquet", "jsonl"):
            code, said = call("recalibrate", "apply", "m.json", "t.csv", "--y-prob", "p", "--out", f"out.{{kind}}")
            assert code == 2, said
            assert " cannot be written: File too large; make room, or write to another disk" in said, said
            assert not os.path.exists(f"out.{{kind}}")
        code, said = call("measure", "-", "--y-prob", "p", input=open("t.csv", "rb").read())
        assert code == 2, said
        assert "has no room for it (File too large); let the environment variable TMPDIR name a folder" in said, said
        """,
        20_000,
    )


def test_a_disk_without_space_is_named(tmp_path):
    """The device that is always full says what a full disk says."""
    write(predictions(3000), tmp_path / "t.csv", "csv")
    with (
        open_table(tmp_path / "t.csv") as table,
        pytest.raises(OSError, match=r"No space left on device: '/dev/full'$") as full,
    ):
        write_with_column(table, "q", lambda p: p, "p", Path("/dev/full"), "FORMAT csv, HEADER")
    assert (full.value.errno, full.value.filename) == (errno.ENOSPC, "/dev/full")
