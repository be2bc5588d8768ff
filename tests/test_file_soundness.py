"""Files that are cut off, damaged, endless, no files at all or full of surprises: read right, or refused in a sentence."""

import gzip
import json
import os
import resource
import subprocess
import sys
import textwrap
import threading
import zipfile
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from cli_cases import SOURCE, call
from table_cases import FORMATS, predictions, write

import calibrant
from calibrant.engines import integrity
from calibrant.engines.columns import count_rows, read_columns, write_with_column
from calibrant.engines.files import open_table
from calibrant.engines.formats import TableError


def read(source, names=("p",), **options):
    with open_table(source, **options) as table:
        return read_columns(table, list(names))


def mean_forecast(source, **options):
    """Ask a scan of the file, whose first question reads all rows."""
    with calibrant.scan(source, y_true="y", y_prob="p", **options) as rows:
        return calibrant.calibration_in_the_large(rows)


def refused(path, message):
    """Make sure that a file is refused in one sentence: read, scanned, and on the command line both ways."""
    with pytest.raises(TableError, match=message) as error:
        read(path, ["y", "p"])
    assert "\n" not in str(error.value)
    with pytest.raises(TableError, match=message):
        mean_forecast(path)
    for options in ((), ("--memory-limit", "500MB")):
        found = call("certify", path, "--max-error", "0.2", "--y-true", "y", "--y-prob", "p", *options)
        assert found.exit_code == 2, found.output
        assert "nexpected" not in found.stderr.replace("Unexpected end", "")


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
    lines = [f"{rng.integers(2)},{rng.random():.3f}\n".encode() for _ in range(900)]
    lines[0] = b"y,p\n" + lines[0]
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
    inside = {end - back for end in ends for back in (1, 4, 5, 9, len(parts[0]) // 2)}
    headers = {end + on for end in ends[:-1] for on in (1, 2, 3, 4, 5, 9, 11)}
    for cut in sorted(inside | headers | {5, 9, 11}):
        path.write_bytes(whole[:cut])
        with pytest.raises(TableError, match=r"t\.csv\.(gz|zst) ") as error:
            read(path)
        assert "\n" not in str(error.value), cut
    for cut in (ends[-1] - 4, ends[0] - len(parts[0]) // 3, *(end + 5 for end in ends[:-1])):
        path.write_bytes(whole[:cut])
        refused(path, r"t\.csv\.(gz|zst)")


@pytest.mark.parametrize("kind", COMPRESSED)
def test_a_cut_between_two_streams_leaves_a_whole_file(kind, tmp_path):
    """Nothing in the bytes tells it from a file that was meant to be so, which docs/cli.md says."""
    path = tmp_path / f"t.csv.{kind}"
    path.write_bytes(b"".join(parts_of(kind, 3)[:2]))
    assert read(path)["p"].size == 600


def test_cut_off_json_lines_are_refused(tmp_path):
    path = tmp_path / "t.jsonl.zst"
    records = [json.dumps({"y": k % 2, "p": k / 1000}).encode() + b"\n" for k in range(1000)]
    parts = [zstd(b"".join(records[k : k + 250])) for k in range(0, 1000, 250)]
    path.write_bytes(b"".join(parts)[:-7])
    refused(path, r"t\.jsonl\.zst is cut off or damaged: Truncated compressed stream \(after [\d,]+ bytes of text\)")


@pytest.mark.parametrize("kind", COMPRESSED)
def test_a_flipped_bit_in_compressed_text_is_refused_where_there_is_a_checksum(kind, tmp_path):
    """Gzip always has one; in zstd it is optional, and a flip there may be noticed or not."""
    (whole,) = parts_of(kind, 1)
    path, rng = tmp_path / f"t.csv.{kind}", np.random.default_rng(0)
    for _ in range(10 if kind == "gz" else 0):
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
    assert abs(mean_forecast(path)) < 0.1
    flipped(path, places["p.npy"])
    assert read(path, ["y"])["y"].size == 5000
    refused(path, r"t\.npz cannot be read as an NPZ file: (Bad CRC-32 for file 'p\.npy'|Error -3)")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_a_flipped_bit_in_a_parquet_page_is_refused_where_pages_have_checksums(version, compression, tmp_path):
    rng = np.random.default_rng(6)
    rows = 30_000
    columns = {"y": rng.integers(0, 2, rows), "p": rng.random(rows), "ward": rng.choice(["a", "b"], rows)}
    columns["nested"] = [{"a": k, "b": [k]} for k in range(rows)]
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(
        pa.table(columns),
        path,
        compression=compression,
        data_page_version=version,
        write_page_checksum=True,
        row_group_size=8000,
        data_page_size=10_000,
    )
    assert read(path, columns.keys() - {"nested"})["p"].tolist() == columns["p"].tolist()
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


def test_a_line_of_gigabytes_takes_no_memory(tmp_path):
    """A small file may hold an endless line; twice a fifth of a gigabyte is what one took that was looked at whole."""
    path = tmp_path / "t.csv.gz"
    block = b"0" * (1 << 20)
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"y,p\n1,0.5\n0,0.")
        for _ in range(200):
            file.write(block)
    code = f"""
        import resource
        from click.testing import CliRunner
        import pyarrow, pandas, duckdb, calibrant, calibrant.certificates
        from calibrant.cli import main
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = CliRunner().invoke(main, ["certify", {str(path)!r}, "--max-error", "0.1", "--memory-limit", "100MB"])
        assert found.exit_code == 2, found.output
        assert "longer than 2,000,000" in found.stderr, found.stderr
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        assert grown < 150, f"{{grown}} MB"
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, env={**os.environ, "PYTHONPATH": SOURCE})


@pytest.mark.parametrize("kind", ["npz", "stream", "arrow"])
def test_columns_that_nobody_asks_for_take_no_memory(kind, tmp_path):
    path, rows = tmp_path / f"t.{kind}", 1_000_000
    columns = {"y": np.zeros(rows, np.int8), "p": np.zeros(rows), "unused": np.zeros(rows, "S256")}
    if kind == "npz":
        np.savez_compressed(path, **columns)
    else:
        table = pa.table(
            {
                **columns,
                "unused": pa.FixedSizeBinaryArray.from_buffers(
                    pa.binary(256), rows, [None, pa.py_buffer(columns["unused"])]
                ),
            }
        )
        new = pyarrow.ipc.new_stream if kind == "stream" else pyarrow.ipc.new_file
        with new(path, table.schema, options=pyarrow.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
    assert path.stat().st_size < 1_000_000
    code = f"""
        import resource
        import numpy, pyarrow, pyarrow.dataset, pandas, duckdb
        from calibrant.engines.files import open_table
        from calibrant.engines.columns import read_columns, count_rows
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with open_table({str(path)!r}, memory_limit="100MB") as table:
            assert list(table.columns) == ["y", "p", "unused"]
            assert read_columns(table, ["y"])["y"].size == count_rows(table) == {rows}
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        assert grown < 150, f"{{grown}} MB"
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, env={**os.environ, "PYTHONPATH": SOURCE})
