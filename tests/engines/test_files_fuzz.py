"""Readers under random input, seeded and bounded: what is read is right, and what is not is refused in one sentence.

Texts are judged by Python's own reader of CSV; damaged files by pyarrow, numpy and json, where these can read them.
``CALIBRANT_FUZZ=20`` runs twenty times as many cases.
"""

import csv
import gzip
import io
import json
import os
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from cli_cases import call
from table_cases import write

import calibrant
from calibrant.engines.columns import read_columns
from calibrant.engines.files import open_table
from calibrant.engines.formats import TableError

TIMES = int(os.environ.get("CALIBRANT_FUZZ", "1"))
NUMBERS = ["0", "0.5", "0.25", "1", "1e-3", ".5", "0.125", "1.", "5e-1", "+0.75"]
PLAIN = ["a", "b c", "", "ü", "x'y", "#1", " pad", "pad ", "0", "1e5", "NULL", "NaN", "\\", "\\N", "true", '5"', "-"]
QUOTED = ['"q"', '"a,b"', '"a\nb"', '"a\r\nb"', '"a""b"', '""', '"a\rb"', '""""', '" "" "', '";"', '"1"']
BROKEN = ['"open', '"a"b', '""x', "\0", '"a" ', "\udcff"]


def forecasts_or_refusal(path):
    """Return the forecasts in a file as numbers, or the sentence that refuses it."""
    try:
        with open_table(path) as table:
            return read_columns(table, ["p"], numbers=["p"])["p"].astype(float).tolist()
    except TableError as error:
        message = str(error)
    assert "\n" not in message
    assert "t." in message
    return message


def check_other_ways(path):
    """Make sure that a scan and the command line answer or refuse, and that the answers agree."""
    try:
        with calibrant.scan(path, y_true="y", y_prob="p") as rows:
            scanned = calibrant.measures.calibration_in_the_large(rows)
    except ValueError:
        scanned = None
    for options in ((), ("--memory-limit", "500MB")):
        asked = call("measure", path, "--y-true", "y", "--y-prob", "p", "--json", *options)
        assert asked.exit_code in (0, 2), asked.output
        assert "please report it" not in asked.stderr
        if asked.exit_code == 0:
            assert json.loads(asked.stdout)["result"]["calibration_in_the_large"] == pytest.approx(scanned, abs=1e-12)
        else:
            assert scanned is None


# --- Texts ------------------------------------------------------------------------------------------------------------


def random_table(rng):
    """Write a table by the rules of CSV, and now and then against them."""
    delimiter, end = rng.choice([",", ",", ";", "\t", "|"]), rng.choice(["\n", "\n", "\r\n", "\r"])
    names = rng.permutation(["p", "c1", "c2", "c3"][: rng.integers(1, 5)]).tolist()
    lines = [delimiter.join(names)]
    for _ in range(rng.integers(13)):
        kind = rng.random()
        fields = [rng.choice(NUMBERS) if name == "p" else random_field(rng) for name in names]
        fields = [rng.choice(NUMBERS)] * int(rng.integers(1, 6)) if kind < 0.02 else [] if kind < 0.06 else fields
        lines.append(delimiter.join(fields))
    text = end.join(lines) + ("" if rng.random() < 0.1 else end)
    if rng.random() < 0.05:
        text = text.replace(end, str(rng.choice(["\n", "\r\n", "\r"])), int(rng.integers(1, 4)))
    return delimiter, ("\ufeff" if rng.random() < 0.1 else "") + text


def random_field(rng):
    kind = rng.random()
    choices = PLAIN if kind < 0.4 else QUOTED if kind < 0.6 else BROKEN if kind < 0.61 else None
    return str(rng.integers(100)) if choices is None else str(rng.choice(choices))


def python_reads(text, delimiter, strict):
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter, strict=strict)
    header, *body = list(rows)
    body = [row for row in body if row]
    if any(len(row) != len(header) for row in body):
        raise csv.Error("uneven")
    return [float(row[header.index("p")]) for row in body]


def test_random_texts_are_read_as_python_reads_them(tmp_path):
    rng = np.random.default_rng(11)
    path, read, refused = tmp_path / "t.csv", 0, 0
    for _ in range(80 * TIMES):
        delimiter, text = random_table(rng)
        path.write_bytes(text.encode(errors="surrogateescape"))
        forecasts = forecasts_or_refusal(path)
        if isinstance(forecasts, list):
            read += 1
            assert forecasts == python_reads(text, delimiter, strict=False), text
            continue
        refused += 1
        try:
            judged = python_reads(text, delimiter, strict=True)
        except csv.Error:
            continue
        reasons = ["\0" in text, "\udcff" in text, mixes_line_ends(text), not judged, has_gaps(text, delimiter)]
        assert any(reasons), (forecasts, text)
    assert read > 30 * TIMES
    assert refused > 10 * TIMES


def mixes_line_ends(text):
    """Whether lines, outside of quotes, end in more than one way."""
    outside = "".join(text.split('"')[::2])
    ends = outside.replace("\r\n", "L")
    return sum(each in ends for each in ("L", "\r", "\n")) > 1


def has_gaps(text, delimiter):
    """Whether the only column is empty in some line: Python passes over such lines, where a value is missing."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    return delimiter not in lines[0] and "" in lines


# --- Damaged files ----------------------------------------------------------------------------------------------------


def judge_parquet(path):
    return pyarrow.parquet.read_table(path, columns=["p"], page_checksum_verification=True)["p"].to_pylist()


def judge_arrow(open_it):
    def judge(path):
        place = open_it(path).schema.get_field_index("p")
        table = open_it(path, options=pyarrow.ipc.IpcReadOptions(included_fields=[place])).read_all()
        table.validate(full=True)
        return table["p"].to_pylist()

    return judge


def judge_npz(path):
    with np.load(path) as arrays:
        return arrays["p"].tolist()


def judge_json(path):
    return [json.loads(line)["p"] for line in path.read_text().splitlines() if line.strip()]


def judge_gzip(path):
    return python_reads(gzip.decompress(path.read_bytes()).decode(), ",", strict=True)


def judge_csv(path):
    return python_reads(path.read_bytes().decode(), ",", strict=False)


def judge_zstd(path):
    with pa.input_stream(str(path), compression="zstd") as stream:
        return python_reads(stream.read().decode(), ",", strict=True)


JUDGES = {
    "csv": judge_csv,
    "csv.gz": judge_gzip,
    "csv.zst": judge_zstd,
    "jsonl": judge_json,
    "npz": judge_npz,
    "parquet": judge_parquet,
    "arrow": judge_arrow(pyarrow.ipc.open_file),
    "stream": judge_arrow(pyarrow.ipc.open_stream),
}


def mutated(whole, rng):
    """Flip a bit, replace, take out or put in some bytes, or cut the rest off."""
    content, place = bytearray(whole), int(rng.integers(len(whole)))
    kind = rng.integers(4)
    if kind == 0:
        content[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del content[place:]
    else:
        content[place : place + int(rng.integers(1, 9))] = rng.bytes(int(rng.integers(9)))
    return bytes(content)


@pytest.mark.parametrize("kind", JUDGES)
def test_damaged_files_are_read_as_their_own_libraries_read_them_or_refused(kind, tmp_path):
    rng = np.random.default_rng(12)
    columns = {"y": np.arange(40) % 2, "p": rng.random(40).round(3), "ward": np.array(["a", "b"] * 20)}
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(pa.table(columns), path, write_page_checksum=True)
    else:
        write(columns, path, kind)
    whole = path.read_bytes()
    answers = {"read": 0, "refused": 0}
    for number in range(20 * TIMES):
        content = mutated(whole, rng)
        path.write_bytes(content)
        forecasts = forecasts_or_refusal(path)
        answers["read" if isinstance(forecasts, list) else "refused"] += 1
        if number % 10 == 0:
            check_other_ways(path)
        if not isinstance(forecasts, list):
            continue
        try:
            judged = JUDGES[kind](path)
        except (ValueError, KeyError, OSError, EOFError, csv.Error, pa.ArrowException, zipfile.BadZipFile):
            assert forecasts == columns["p"].tolist(), content  # where the judge minds what was not asked for
            continue
        assert forecasts == judged, content
    assert answers["refused"] > 0
