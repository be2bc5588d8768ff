"""Tables in files: what is read, that it is read exactly, and what is said about files that cannot be."""

import gzip
import io
import os
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from table_cases import FORMATS, predictions, write

from calibrant.engines.columns import read_columns, write_with_column
from calibrant.engines.files import open_table
from calibrant.engines.formats import TableError, npz_array


def read(source, names=None, numbers=(), **options):
    with open_table(source, **options) as table:
        return read_columns(table, names or list(table.columns), numbers=numbers)


def forecasts(source, name="p", **options):
    """Read one column as numbers."""
    return read(source, [name], [name], **options)[name]


def text_file(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- What is read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_columns_exactly(kind, tmp_path):
    columns = predictions()
    path = write(columns, tmp_path / f"t.{kind}", kind)
    with open_table(path) as table:
        assert list(table.columns) == list(columns)
        found = read_columns(table, list(columns), numbers=["y", "p", "worse", "w"])
    for name, values in columns.items():
        assert found[name].tolist() == values.tolist()


@pytest.mark.parametrize("kind", FORMATS)
def test_a_stream_is_recognised_by_its_first_bytes(kind, tmp_path):
    columns = predictions(30)
    content = write(columns, tmp_path / f"t.{kind}", kind).read_bytes()
    found = forecasts(io.BytesIO(content), file_format="tsv" if kind == "tsv" else None)
    assert found.tolist() == columns["p"].tolist()


def test_parts_are_read_in_the_order_of_their_names_whatever_the_order_of_their_columns(tmp_path):
    text_file(tmp_path, "y,p\n1,0.5\n", "part-1.csv")
    text_file(tmp_path, "p,y\n0.25,0\n", "part-2.csv")
    (tmp_path / "_SUCCESS").touch()
    expected = [0.5, 0.25]
    assert forecasts(f"{tmp_path}/part-*.csv").tolist() == expected
    assert forecasts(tmp_path).tolist() == expected
    assert forecasts([tmp_path / "part-2.csv", tmp_path / "part-1.csv"]).tolist() == expected[::-1]
    for kind in ("arrow", "stream", "npz", "parquet"):
        parts = [write({"p": [value]}, tmp_path / f"{kind}-{k}.{kind}", kind) for k, value in enumerate(expected)]
        assert forecasts(parts).tolist() == expected


def test_rows_keep_their_order_in_large_files(tmp_path):
    rows = 300_000
    values = np.random.default_rng(0).random(rows)
    table = pa.table({"p": values})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=20_000)
    with pyarrow.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=5_000)
    np.savetxt(tmp_path / "t.csv", values, fmt="%.17g", header="p", comments="")
    for kind in ("parquet", "arrow", "csv"):
        np.testing.assert_array_equal(forecasts(tmp_path / f"t.{kind}"), values)


NAMES = ['a "quoted"; DROP TABLE x; --', "two\nlines", "naïve Σ", "select", "a'b", "%s", "{}"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "jsonl"])
def test_column_names_are_taken_as_they_are(name, kind, tmp_path):
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        path.write_text('"' + name.replace('"', '""') + '",other\n0.5,1\n')
    else:
        write({name: [0.5], "other": [1]}, path, kind)
    assert forecasts(path, name).tolist() == [0.5]


@pytest.mark.parametrize("name", ["a'b.csv", 'a"b.csv', "a;b.csv", "a[1].csv", "a*.csv", "naïve.csv", "a b.csv"])
def test_file_names_are_taken_as_they_are(name, tmp_path):
    text_file(tmp_path, "y,p\n1,0.5\n", name)
    text_file(tmp_path, "y,p\n1,0.75\n", "a1.csv")
    assert forecasts(tmp_path / name).tolist() == [0.5]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_header_says_what_stands_between_values(delimiter, tmp_path):
    path = text_file(tmp_path, f"y{delimiter}p\r\n1{delimiter}0.5\r\n\r\n0{delimiter}0.25\r\n")
    assert forecasts(path).tolist() == [0.5, 0.25]


def test_types_become_what_the_gate_knows(tmp_path):
    table = pa.table(
        {
            "decimal": pa.array([Decimal("0.5"), Decimal("0.25")]),
            "category": pa.array(["a", "b"]).dictionary_encode(),
            "small": pa.array([0.5, 0.25], pa.float32()),
            "flag": pa.array([True, False]),
            "day": pa.array([0, 1], pa.date32()),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet")
    assert {name: values.dtype.kind for name, values in found.items()} == {
        "decimal": "f",
        "category": "O",
        "small": "f",
        "flag": "b",
        "day": "M",
    }


def test_spaces_around_the_names_of_a_header_do_not_count(tmp_path):
    assert list(read(text_file(tmp_path, "y , p\n1,0.5\n"))) == ["y", "p"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("words", "outcomes"),
    [
        ("true false", [1.0, 0.0]),
        ("TRUE False", [1.0, 0.0]),
        ("1 0", [1.0, 0.0]),
        ("true 0.25", [1.0, 0.25]),
        ("007 1e-3", [7.0, 0.001]),
        ("yes no", None),
        ("t f", None),
        ("0x1 0", None),
    ],
)
def test_text_is_numbers_only_where_numbers_are_asked_for(words, outcomes, kind, tmp_path):
    first, second = words.split()
    path = write({"y": [first, second], "p": ["0.5", "inf"]}, tmp_path / f"t.{kind}", kind)
    with open_table(path) as table:
        assert read_columns(table, ["y", "p"])["y"].tolist() == [first, second]
        found = read_columns(table, ["y", "p"], numbers=["p"], outcomes=["y"])
        assert found["p"].tolist() == [0.5, np.inf]
        assert found["y"].tolist() == ([first, second] if outcomes is None else outcomes)


def test_dates_in_text_stay_as_they_are_written(tmp_path):
    path = text_file(tmp_path, "day,p\n01/02/2024,0.5\n2024-03-01,0.25\n")
    assert read(path)["day"].tolist() == ["01/02/2024", "2024-03-01"]


def test_hash_signs_and_apostrophes_are_text_and_nothing_is_skipped(tmp_path):
    path = text_file(tmp_path, "y,p\n#1,0.5\n'0',0.25\n")
    assert read(path)["y"].tolist() == ["#1", "'0'"]


def test_a_compressed_array_is_read_and_a_stored_one_is_mapped(tmp_path):
    values = np.array([0.5, 0.25])
    np.savez(tmp_path / "stored.npz", p=values, labels=np.array(["a", "b"]), square=np.eye(2))
    np.savez_compressed(tmp_path / "small.npz", p=values)
    assert isinstance(npz_array(tmp_path / "stored.npz", "p"), np.memmap)
    assert not isinstance(npz_array(tmp_path / "small.npz", "p"), np.memmap)
    assert list(read(tmp_path / "stored.npz")) == ["p", "labels"]
    assert read(tmp_path / "small.npz")["p"].tolist() == values.tolist()


# --- What is refused --------------------------------------------------------------------------------------------------

BAD_TEXT = {
    "empty": ("", r"t.csv is empty"),
    "header only": ("y,p\n", r"t.csv has no rows, only column names"),
    "no header": ("1,0.5\n0,0.25\n", r"the first line is '1,0.5', numbers and not column names; add a header line"),
    "twice": ("p,p\n0.5,1\n", r"two columns are named 'p'; rename one of them"),
    "too many": ("y,p\n1,0.5\n0,0.25,3\n", r"t.csv, line 3: 3 values for 2 columns; correct the line"),
    "cut off": ("y,p\n1,0.5\n0", r"t.csv, line 3: 1 value for 2 columns"),
    "open quote": ('y,p\n1,0.5\n"0,0.25\n1,0.5\n', r"t.csv, line 5: unexpected end of data"),
    "text late": (
        "y,p\n" + "1,0.5\n" * 30_000 + "0,high\n",
        r"column 'p' is 'high' in data row 30,001 .* text where a number is needed; write numbers, or choose another",
    ),
    "null": ("y,p\n1,0.5\n0,\n1,\n", r"column 'p' has no value in data row 2 \(counted from 1, .*\) \(and in 1 more\)"),
    "NA": ("y,p\n1,0.5\n0,NA\n", r"column 'p' has no value in data row 2 \(counted from 1, without the header\)"),
    "comma": ("y;p\n1;0,5\n", r"column 'p' is '0,5' in data row 1 .* write numbers, with a decimal point"),
    "percent": ("y,p\n1,0.5\n1,50%\n", r"column 'p' is '50%' in data row 2 .* divide percentages by 100"),
    "binary": (bytes(range(256)) * 20, r"t.csv is not text"),
    "garbage": (b"y,p\n1,\xff\xfe\n", r"t.csv is not text in UTF-8 \(byte 6\); save it as UTF-8"),
    "utf-16": ("y,p\n1,0.5\n".encode("utf-16"), r"t.csv is not text in UTF-8"),
}


@pytest.mark.parametrize("what", BAD_TEXT)
def test_bad_text_gets_one_sentence(what, tmp_path):
    content, message = BAD_TEXT[what]
    path = text_file(tmp_path, content)
    with pytest.raises(TableError, match=message) as error, open_table(path) as table:
        read_columns(table, ["y", "p"], numbers=["p"])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "feather", "npz", "csv.gz", "jsonl"])
@pytest.mark.parametrize("how", ["empty", "cut off", "garbage"])
def test_damaged_files_get_one_sentence(kind, how, tmp_path):
    path = write(predictions(200), tmp_path / f"t.{kind}", kind)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    path.write_bytes({"empty": b"", "cut off": whole[: len(whole) // 2], "garbage": rng.bytes(5000)}[how])
    with pytest.raises(TableError, match=r"t\.\w+") as error:
        read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "stream", "npz", "jsonl", "csv.gz"])
def test_files_damaged_at_random_are_read_or_refused_and_never_worse(kind, tmp_path):
    rng = np.random.default_rng(7)
    whole = write(predictions(30), tmp_path / "whole", kind).read_bytes()
    messages = []
    for _ in range(60):
        content = bytearray(whole)
        place = int(rng.integers(len(content)))
        content[place : place + int(rng.integers(3))] = rng.bytes(int(rng.integers(1, 9)))
        path = text_file(tmp_path, bytes(content), f"t.{kind}")
        try:
            read(path)
        except TableError as error:
            messages.append(str(error))
    assert len(messages) > 5
    assert not any("\n" in message for message in messages)


def test_missing_values_are_counted_in_every_format(tmp_path):
    for kind in ("parquet", "arrow", "jsonl"):
        path = write({"p": [0.5, None, 0.25]}, tmp_path / f"t.{kind}", kind)
        with pytest.raises(TableError, match=r"column 'p' has no value in data row 2 \(counted from 1\);"):
            read(path)


def test_arrays_that_are_no_table_are_refused(tmp_path):
    np.savez(tmp_path / "uneven.npz", y=np.zeros(3), p=np.zeros(2))
    np.savez(tmp_path / "square.npz", p=np.zeros((2, 2)))
    np.savez(tmp_path / "objects.npz", p=np.array([None, 1]))
    np.savez(tmp_path / "some.npz", p=np.array([None, 1]), y=np.zeros(2))
    with pytest.raises(TableError, match=r"different lengths \('y' 3, 'p' 2\); save those of one table alone"):
        open_table(tmp_path / "uneven.npz")
    with pytest.raises(TableError, match=r"no one-dimensional arrays \(it has 'p' \(2, 2\)\)"):
        open_table(tmp_path / "square.npz")
    with pytest.raises(TableError, match=r"objects.npz has no column that can be read; it has 'p' \(object\)"):
        open_table(tmp_path / "objects.npz")
    with pytest.raises(TableError, match="column 'p' is of type object, which cannot be read; save numbers as float64"):
        read(tmp_path / "some.npz", ["p"])
    write({"p": [0.5]}, tmp_path / "one.npz", "npz")
    write({"q": [0.5]}, tmp_path / "two.npz", "npz")
    with pytest.raises(TableError, match=r"two\.npz has no column 'p', as .*one\.npz does"):
        read([tmp_path / "one.npz", tmp_path / "two.npz"], ["p"])


def test_lists_and_text_are_not_numbers(tmp_path):
    pyarrow.parquet.write_table(pa.table({"l": [[1], [2]], "t": ["0.5", "0.25"]}), tmp_path / "t.parquet")
    with open_table(tmp_path / "t.parquet") as table:
        with pytest.raises(TableError, match=r"column 'l' is of type BIGINT\[\], not one number or label per row"):
            read_columns(table, ["l"])
        with pytest.raises(TableError, match="column 't' holds numbers written as text; convert it to numbers"):
            read_columns(table, ["t"], numbers=["t"])


@pytest.mark.parametrize("address", ["https://example.org/t.csv", "s3://bucket/t.parquet", "hf://datasets/x/t.csv"])
def test_addresses_are_refused_and_nothing_is_installed(address):
    with pytest.raises(TableError, match="is an address; calibrant reads local files only: download it first"):
        open_table(address)


def test_an_empty_path_does_not_stand_for_the_folder_one_is_in(tmp_path, monkeypatch):
    text_file(tmp_path, "p\n0.5\n", "t.csv")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableError, match=r"^the path is an empty text; name a file, a folder or a pattern$"):
        open_table("")


def test_extensions_are_neither_installed_nor_loaded(tmp_path):
    with open_table(text_file(tmp_path, "p\n0.5\n", "t.csv")) as table:
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            assert table.connection.execute(f"SELECT current_setting('{setting}')").fetchone() == (False,)


def test_a_missing_file_folder_or_column_is_named(tmp_path):
    with pytest.raises(TableError, match=r"nothere\.csv does not exist; look at its spelling"):
        open_table(tmp_path / "nothere.csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(TableError, match="folder has no files in it"):
        open_table(tmp_path / "folder")
    with pytest.raises(TableError, match="no file was named"):
        open_table([])
    with open_table(text_file(tmp_path, "Label,score\n1,0.5\n")) as table:
        with pytest.raises(TableError, match=r"no column 'scores'; did you mean 'score'\? Its columns are 'Label'"):
            read_columns(table, ["scores"])
        with pytest.raises(TableError, match="no column 'label'; did you mean 'Label'"):
            read_columns(table, ["label"])
        with pytest.raises(TableError, match="no column 'weight'; its columns are 'Label', 'score'"):
            read_columns(table, ["weight"])
    wide = text_file(tmp_path, ",".join(f"c{k}" for k in range(30)) + "\n" + ",".join("1" * 30) + "\n")
    with open_table(wide) as table, pytest.raises(TableError, match="'c19' and 10 more"):
        read_columns(table, ["zzz"])


def test_bad_options_are_named(tmp_path):
    path = text_file(tmp_path, "p\n0.5\n")
    with pytest.raises(TableError, match="format is 'excel', none of csv, tsv"):
        open_table(path, file_format="excel")
    with pytest.raises(TableError, match=r"memory_limit is '3 apples'.*write it like 500MB or 2GB"):
        open_table(path, memory_limit="3 apples")
    assert forecasts(path, memory_limit="200MB").tolist() == [0.5]


def test_files_that_differ_in_compression_are_read_one_by_one(tmp_path):
    text_file(tmp_path, "p\n0.5\n", "a.csv")
    text_file(tmp_path, gzip.compress(b"p\n0.5\n"), "b.csv")
    with pytest.raises(TableError, match="some files are compressed and others are not"):
        open_table(tmp_path)


def test_nothing_is_left_behind(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with open_table(io.BytesIO(b"p\n0.5\n"), temp_directory=str(scratch)):
        assert len(list(scratch.iterdir())) == 1
    with pytest.raises(TableError):
        open_table(io.BytesIO(b""), temp_directory=str(scratch))
    assert list(scratch.iterdir()) == []


@pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read a file whatever its permissions say"
)
def test_a_file_that_may_not_be_read_is_named(tmp_path):
    path = text_file(tmp_path, "p\n0.5\n")
    path.chmod(0)
    with pytest.raises(TableError, match="may not be read: permission denied"):
        open_table(path)


# --- Writing ----------------------------------------------------------------------------------------------------------


def test_a_new_column_stands_beside_the_old_ones_as_they_were(tmp_path):
    rows = 120_000
    numbers = np.random.default_rng(1).permutation(rows).tolist()
    path = tmp_path / "t.csv"
    path.write_text("id,p\n" + "".join(f"{k:07d},{k / rows!r}\n" for k in numbers))
    with open_table(path) as table:
        write_with_column(table, "q", lambda p: p / 2.0, "p", tmp_path / "out.csv", "FORMAT csv, HEADER")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "id,p,q"
    assert lines[1:] == [f"{k:07d},{k / rows!r},{k / rows / 2.0!r}" for k in numbers]
