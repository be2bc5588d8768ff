"""Types of numbers and kinds of text that are rare: read exactly, or named together with the remedy."""

import io
import json
import re
import zipfile
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from cli_cases import call
from table_cases import outcome_minus_forecast, read

import calibrant
from calibrant.engines.formats import TableError

# --- Types ------------------------------------------------------------------------------------------------------------

FORECASTS = [0.5, 0.25, 0.0, 1.0]
ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "float16": np.array(FORECASTS, np.float16),
    "float32": np.array(FORECASTS, np.float32),
    "big-endian float16": np.array(FORECASTS, ">f2"),
    "big-endian float32": np.array(FORECASTS, ">f4"),
    "big-endian float64": np.array(FORECASTS, ">f8"),
    "big-endian int32": np.array([0, 1, 1, 0], ">i4"),
    "uint64": np.array([0, 1, 1, 0], np.uint64),
    "bool": np.array([False, True, True, False]),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("what", ARRAYS)
def test_numbers_of_every_size_and_order_of_bytes_are_read_exactly(what, save, tmp_path):
    save(tmp_path / "t.npz", y=np.array([1, 0, 0, 1]), p=ARRAYS[what])
    assert read(tmp_path / "t.npz")["p"].tolist() == ARRAYS[what].tolist()
    assert outcome_minus_forecast(tmp_path / "t.npz") == 0.5 - np.mean(ARRAYS[what].astype(float))
    found = call("measure", tmp_path / "t.npz", "--y-true", "y", "--y-prob", "p", "--memory-limit", "1GB", "--json")
    assert json.loads(found.stdout)["input"]["rows"] == 4, found.output


def test_labels_in_any_order_of_bytes_are_read_exactly(tmp_path):
    labels = np.array(["yes", "nö", "", "no"], ">U3")
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-03", "NaT"], "M8[D]")
    np.savez(tmp_path / "t.npz", label=labels, day=days, huge=np.array([2**63, 1, 2**53 + 1, 0], np.uint64))
    found = read(tmp_path / "t.npz", ["label", "huge"])
    assert found["label"].tolist() == labels.tolist()
    assert found["huge"].tolist() == [2**63, 1, 2**53 + 1, 0]
    with pytest.raises(TableError, match=r"column 'day' has no value in data row 4"):
        read(tmp_path / "t.npz", ["day"])


UNREADABLE_ARRAYS = {
    "float128": np.zeros(3, np.longdouble),
    "complex128": np.zeros(3, complex),
    "object": np.array([None, 1, 2]),
    r"datetime64\[h\]": np.zeros(3, "M8[h]"),
    r"\[\('a', '<i8'\), \('b', '<f8'\)\]": np.zeros(3, [("a", "<i8"), ("b", "<f8")]),
}


@pytest.mark.parametrize("kind", UNREADABLE_ARRAYS)
def test_arrays_that_cannot_be_read_are_named_if_they_are_asked_for(kind, tmp_path):
    values = UNREADABLE_ARRAYS[kind]
    if kind == "float128" and values.itemsize == 8:
        pytest.skip("on this processor numpy's long double is a float64, which can be read")
    np.savez(tmp_path / "t.npz", y=np.array([0, 1, 1]), p=values, good=np.array([0.5, 0.25, 1.0]))
    assert read(tmp_path / "t.npz", ["good"])["good"].tolist() == [0.5, 0.25, 1.0]
    message = rf"column 'p' is of type {kind}, which cannot be read; save numbers as float64 and labels as text"
    with pytest.raises(TableError, match=message):
        read(tmp_path / "t.npz")
    for options in ((), ("--memory-limit", "1GB")):
        found = call("certify", tmp_path / "t.npz", "--max-error", "0.2", *options)
        assert found.exit_code == 2
        assert "column 'p' is of type" in found.stderr
    with pytest.raises(TableError, match=message):
        outcome_minus_forecast(tmp_path / "t.npz")
    with pytest.raises(TableError, match=message):
        calibrant.scan(tmp_path / "t.npz", y_true="y", y_prob="good", by="p")


ARROW: dict[str, tuple[Any, list[Any]]] = {
    "half": (pa.array(np.array(FORECASTS, np.float16)), FORECASTS),
    "decimal128": (pa.array([Decimal("0.5"), Decimal("0.25")], pa.decimal128(38, 10)), [0.5, 0.25]),
    "dictionary of numbers": (pa.array(FORECASTS).dictionary_encode(), FORECASTS),
    "runs": (pa.RunEndEncodedArray.from_arrays([2, 4], [0.5, 0.25]), [0.5, 0.5, 0.25, 0.25]),
    "large text": (pa.array(["a", "b"], pa.large_string()), ["a", "b"]),
    "text views": (pa.array(["a", "b"], pa.string_view()), ["a", "b"]),
    "categories": (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    "unsigned": (pa.array([2**64 - 1, 0], pa.uint64()), [2**64 - 1, 0]),
}


@pytest.mark.parametrize("kind", ["arrow", "stream", "parquet"])
@pytest.mark.parametrize("what", ARROW)
def test_columns_of_arrow_are_read_exactly(what, kind, tmp_path):
    column, expected = ARROW[what]
    if kind == "parquet" and what in ("runs", "text views"):
        column = pa.array(expected)  # which pyarrow does not write otherwise
    table = pa.table({"y": pa.array([1, 0, 0, 1][: len(column)]), "x": column})
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        new = pyarrow.ipc.new_stream if kind == "stream" else pyarrow.ipc.new_file
        with new(path, table.schema) as writer:
            writer.write_table(table)
    assert read(path, ["x"])["x"].tolist() == expected
    assert read(path, ["y"])["y"].tolist() == table["y"].to_pylist()
    if all(isinstance(each, float) for each in expected):
        with calibrant.scan(path, y_true="y", y_prob="x") as rows:
            assert calibrant.measures.calibration_in_the_large(rows) == 0.5 - np.mean(expected)


UNREADABLE = {
    "decimal256": pa.array([Decimal("0.5"), Decimal("0.25")], pa.decimal256(50, 3)),
    "dense_union": pa.UnionArray.from_dense(
        pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["a"])]
    ),
}


@pytest.mark.parametrize("kind", ["arrow", "stream"])
@pytest.mark.parametrize("what", UNREADABLE)
def test_columns_of_arrow_that_cannot_be_read_are_named_if_they_are_asked_for(what, kind, tmp_path):
    table = pa.table({"y": [1, 0], "p": UNREADABLE[what], "q": [0.5, 0.25]})
    path = tmp_path / f"t.{kind}"
    with (pyarrow.ipc.new_stream if kind == "stream" else pyarrow.ipc.new_file)(path, table.schema) as writer:
        writer.write_table(table)
    assert read(path, ["q"])["q"].tolist() == [0.5, 0.25]
    with pytest.raises(
        TableError, match=f"column 'p' is of type {what}.*, which cannot be read; save numbers as float64"
    ):
        read(path)
    found = call("certify", path, "--max-error", "0.2", "--y-prob", "p", "--y-true", "y")
    assert (found.exit_code, "column 'p' is of type" in found.stderr) == (2, True)
    (tmp_path / "m.json").write_text(calibrant.repairs.ConstantRecalibrator().fit([0.5, 0.5], [0, 1]).to_json())
    found = call("recalibrate", "apply", tmp_path / "m.json", path, "--y-prob", "q", "--out", tmp_path / "o.csv")
    assert (found.exit_code, "column 'p' is of type" in found.stderr) == (2, True)  # it would be missing in the copy
    with pytest.raises(
        ValueError, match=r"the Table cannot be read: .*; leave out columns of such a type, or make them"
    ):
        calibrant.scan(table, y_true="y", y_prob="q")


TEXTS = {
    "CR": "y,p\r1,0.5\r0,0.25\r",
    "CR without an end": "y,p\r1,0.5\r0,0.25",
    "CR in quotes": 'y,p,note\r1,0.5,"a\rb"\r0,0.25,"c\nd"\r',
    "CR and LF": "y,p\r\n1,0.5\r\n0,0.25\r\n",
    "a mark of byte order": "\ufeffy,p\n1,0.5\n0,0.25\n",
    "a mark and quotes": '\ufeff"y","p"\n1,0.5\n0,0.25\n',
    "empty lines": "y,p\n\n1,0.5\n\n0,0.25\n\n\n",
    "line ends in quotes": 'y,p,note\n1,0.5,"a\n\nb"\n0,0.25,"\r\n"\n',
    "commas in quotes": 'y,p,"a,b"\n1,"0.5","1,2"\n0,"0.25",""""\n',
    "inches": 'y,p,size\n1,0.5,5"\n0,0.25,7"" x\n',
    "a long header": f"y,p,{'x' * 100_000}\n1,0.5,a\n0,0.25,b\n",
}


@pytest.mark.parametrize("what", TEXTS)
@pytest.mark.parametrize("options", [{}, {"memory_limit": "500MB"}])
def test_texts_of_every_kind_are_read_exactly(what, options, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(TEXTS[what].encode())
    assert read(path, ["y", "p"], **options)["p"].tolist() == [0.5, 0.25]
    assert outcome_minus_forecast(path, **options) == 0.125


REFUSED_TEXTS: dict[str, tuple[str | bytes, str]] = {
    "CR and then LF": ("y,p\r1,0.5\r0,0.25\n1,0.5\n", r"ends its lines in more than one way \(LF, CR LF or CR\)"),
    "LF and then CR LF": ("y,p\n1,0.5\r\n0,0.25\r\n", "ends its lines in more than one way"),
    "a header without end": (
        f"y,p,{'x' * 140_000}\n1,0.5,a\n",
        "the first line is no header of column names: field lar",
    ),
    "a mark of UTF-16": ("y,p\n1,0.5\n".encode("utf-16"), "is not text in UTF-8"),
    "UTF-16 without a mark": ("y,p\n1,0.5\n".encode("utf-16-le"), "is not text; name its format"),
    "a zero byte": (b"y,p,n\n1,0.5,a\0b\n", "is not text; name its format"),
    "a zero byte further on": (
        b"y,p,n\n" + b"1,0.5,aaaaaaaaaaaaaaaa\n" * 60_000 + b"1,0.5,a\0b\n",
        r"is not text: byte 1,380,013 is zero; if it is text, take it out",
    ),
    "names twice": ("p,y,p\n0.5,1,0.5\n", "two columns are named 'p'; rename one of them"),
    "nothing": ("", r"t\.csv is empty"),
    "spaces": ("  \n", "has no column"),
    "a header alone": ("y,p", "has no rows, only column names"),
    "a header alone and CR": ("y,p\r", "has no rows, only column names"),
    "a mark alone": ("\ufeff", r"t\.csv is empty"),
}


@pytest.mark.parametrize("what", REFUSED_TEXTS)
def test_texts_that_cannot_be_read_get_one_sentence(what, tmp_path):
    content, message = REFUSED_TEXTS[what]
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message) as error:
        read(path, ["y", "p"])
    assert "\n" not in str(error.value)
    for options in ((), ("--memory-limit", "500MB")):
        found = call("certify", path, "--max-error", "0.2", "--y-true", "y", "--y-prob", "p", *options)
        assert found.exit_code == 2, found.output
        assert "please report it" not in found.stderr


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "txt"])
def test_text_in_utf_16_is_called_so_with_the_way_out_of_excel(kind, encoding, tmp_path):
    path = tmp_path / f"t.{kind}"
    text = '{"y": 1, "p": 0.5}\n' if kind == "jsonl" else "y\tp\n1\t0.5\n"
    path.write_bytes(("\ufeff" + text).encode(encoding))
    said = (
        "is not text in UTF-8 but in UTF-16, as Excel's Unicode Text is; save it as UTF-8, which Excel calls CSV UTF-8"
    )
    with pytest.raises(TableError, match=rf"{said}$"):
        read(path)
    named = () if kind == "txt" else ("--format", kind)
    for command in (("measure", "-", *named), ("watch", "-", "--time", "t", "--max-error", "0.1")):
        found = call(*command, stdin=path.read_bytes())
        assert found.exit_code == 2
        assert f"standard input {said}" in found.stderr


def test_every_format_that_can_be_named_is_listed_where_one_is_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"y,p\n1,\xff\n")
    (asked,) = re.findall(r"--format \[([a-z|]+)\]", call("measure", "--help").stdout)
    with pytest.raises(TableError) as error:
        read(path)
    assert set(str(error.value).split("one of ")[1].split(", ")) == set(asked.split("|"))


def _zipped(*names):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as written:
        for name in names:
            written.writestr(name, "<a/>")
    return archive.getvalue()


WORKBOOKS = {
    "Excel's": _zipped("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml"),
    "openpyxl's": _zipped("docProps/app.xml", "xl/workbook.xml", "[Content_Types].xml"),
    "LibreOffice's": _zipped("_rels/.rels", "xl/workbook.xml"),
    "an old one": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000),
}


@pytest.mark.parametrize("name", ["t.xlsx", "t.XLS", "t.xlsm", "t.csv", "t.npz", "t"])
@pytest.mark.parametrize("whose", WORKBOOKS)
def test_a_workbook_is_called_one(whose, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(WORKBOOKS[whose])
    with pytest.raises(TableError, match=r"is an Excel workbook, and these are not read; save the sheet as CSV$"):
        read(path)


@pytest.mark.parametrize("whose", WORKBOOKS)
@pytest.mark.parametrize("command", [("measure", "-"), ("watch", "-", "--time", "t", "--max-error", "0.1")])
def test_a_workbook_on_standard_input_is_called_one(command, whose):
    found = call(*command, stdin=WORKBOOKS[whose])
    assert found.exit_code == 2
    assert "standard input is an Excel workbook, and these are not read; save the sheet as CSV" in found.stderr


def test_whatever_is_named_like_a_workbook_is_one(tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"PK\x03\x04junk")
    with pytest.raises(TableError, match="is an Excel workbook"):
        read(path)
    np.savez(tmp_path / "arrays", y=np.array([1, 0]), p=np.array([0.5, 0.25]))
    (tmp_path / "arrays.npz").rename(path)
    found = call("measure", path, "--format", "npz")
    assert found.exit_code == 0, found.output


def test_lines_that_end_in_cr_are_read_in_parallel_as_well(tmp_path):
    """More than DuckDB reads at a time: two of its buffers."""
    path, rows = tmp_path / "t.csv", 40_000
    path.write_bytes(b"y,p,note\r" + b"".join(b"%d,%r,%s\r" % (k % 2, k / rows, b"x" * 1700) for k in range(rows)))
    np.testing.assert_array_equal(read(path)["p"], np.arange(rows) / rows)
