import io

import pytest

from calibrant.core import progress
from calibrant.core.progress import track


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves one second each time it is read."""
    ticks = iter(range(10_000))
    monkeypatch.setattr("calibrant.core.progress.time.monotonic", lambda: float(next(ticks)))


def screen(text):
    """What is left on the line after carriage returns moved the cursor back."""
    cells: list[str] = []
    for piece in text.split("\r"):
        cells[: len(piece)] = piece
    return "".join(cells)


def run(monkeypatch, stream, parts, **options):
    monkeypatch.setattr("sys.stderr", stream)
    return list(track(parts, **options))


@pytest.mark.usefixtures("clock")
def test_a_terminal_sees_share_and_time_left_and_then_a_blank_line(monkeypatch):
    stream = Terminal()
    assert run(monkeypatch, stream, range(10), label="resampling") == list(range(10))
    lines = stream.getvalue().split("\r")
    assert "resampling: 10%, about 18 s left" in lines  # nothing in the first two seconds
    assert "resampling: 30%, about 9 s left " in lines  # padded over the longer line before it
    assert screen(stream.getvalue()).strip() == ""
    assert stream.getvalue().endswith("\r")


@pytest.mark.usefixtures("clock")
def test_without_a_total_parts_are_counted(monkeypatch):
    stream = Terminal()
    assert run(monkeypatch, stream, iter("abcd")) == list("abcd")
    assert "working: 3 done" in stream.getvalue()
    assert run(monkeypatch, stream, iter("abcd"), total=4) == list("abcd")
    assert "working: 75%, about 1 s left" in stream.getvalue()


def test_quick_work_writes_nothing(monkeypatch):
    stream = Terminal()
    assert run(monkeypatch, stream, range(1000)) == list(range(1000))
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("shown", "stream"), [(None, io.StringIO()), (False, Terminal()), (None, None), (True, None)])
def test_where_nothing_should_be_shown_nothing_is(monkeypatch, shown, stream):
    assert run(monkeypatch, stream, range(10), shown=shown) == list(range(10))
    assert stream is None or stream.getvalue() == ""


@pytest.mark.usefixtures("clock")
def test_it_can_be_asked_for_where_there_is_no_terminal(monkeypatch):
    stream = io.StringIO()
    run(monkeypatch, stream, range(10), shown=True)
    assert "90%" in stream.getvalue()


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("shown", [None, True])
def test_a_closed_stream_does_not_stop_the_work(monkeypatch, shown):
    stream = Terminal()
    stream.close()
    assert run(monkeypatch, stream, range(10), shown=shown) == list(range(10))


@pytest.mark.usefixtures("clock")
def test_the_line_is_wiped_when_the_work_fails_or_stops_early(monkeypatch):
    def failing():
        yield from range(5)
        raise RuntimeError("out of luck")

    stream = Terminal()
    with pytest.raises(RuntimeError, match="out of luck"):
        run(monkeypatch, stream, failing(), total=10)
    assert screen(stream.getvalue()).strip() == ""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    tracked = track(range(10))
    for part in tracked:
        if part == 5:
            break
    tracked.close()
    assert "50%" in stream.getvalue()
    assert screen(stream.getvalue()).strip() == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min"), (3_560.0, "59 min"), (7_500.0, "2 h 5 min")]
)
def test_durations(seconds, text):
    assert progress._duration(seconds) == text


def test_the_share_starts_at_zero_and_never_passes_all():
    assert progress._said(0, 10, 3.0) == "0%"
    assert progress._said(12, 10, 3.0) == "100%, about 0 s left"
