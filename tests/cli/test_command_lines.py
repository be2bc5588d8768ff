"""Random command lines, good and bad: a document and a verdict, or one sentence and exit code 2, and nothing else."""

import json
import random

import click
import numpy as np
import pytest
from cli_cases import call, write_files
from table_cases import predictions, write

from calibrant.cli import COMMANDS, main

LINES = {"report": 10, "validate": 10}
"""Random lines per command, where not 30."""
NUMBERS = ("0", "1", "0.05", "0.5", "0.95", "0.999", "2", "7", "-1", "1e-9", "1e400", "nan", "inf", "abc", "", "0x1p-3")
COLUMNS = ("y", "p", "worse", "w", "ward", "Y", "nosuch", "", "p ", "'; DROP", "x" * 500, "\x1b[31mred", "ключ", "-p")
SIZES = ("1MB", "2GB", "50 MB", "0", "-1GB", "lots", "1e99GB")
FILES = ("--out", "--state", "--openmetrics")
NEVER = ("help", "follow")
"""Options that are left out: the last one waits for ever."""
FEW = {"--resamples": ("999", "1000", "99", "0", "-5", "many"), "--parts": ("2", "3", "1", "0", "999999")}
"""Options whose large values are right and slow."""


VERDICTS = ("certify", "groups", "compare", "report", "validate", "watch")
"""Commands that can end undecided."""


def leaves():
    """Return every command that does something, with the words that call it; the paper's experiments take too long."""
    context = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(context, name)
        if isinstance(command, click.Group):
            yield from (((name, inner), found) for inner, found in command.commands.items())
        elif name != "reproduce":
            yield (name,), command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every format, and some that hold what nobody should write."""
    place = write_files(tmp_path_factory.mktemp("files"))
    odd = predictions(60, seed=2)
    write({**odd, "p": np.where(np.arange(60) == 59, 1.2, odd["p"])}, place / "percent.csv", "csv")
    write({**odd, "y": np.where(np.arange(60) == 7, np.nan, odd["y"])}, place / "missing.parquet", "parquet")
    write({name: values[:1] for name, values in odd.items()}, place / "single.csv", "csv")
    (place / "empty.csv").write_text("")
    (place / "header.csv").write_text("y,p\n")
    (place / "binary.csv").write_bytes(bytes(range(256)) * 8)
    return place


GOOD = {
    "certify": ("--max-error", "0.2"),
    "decide": ("--threshold", "0.3"),
    "compare": ("--y-prob", "p", "--y-prob", "worse"),
    "plan": ("--max-error", "0.2"),
    "recalibrate fit": ("--out", "out.json"),
    "recalibrate apply": ("--out", "out.csv"),
    "recalibrate sql": ("--column", "p"),
    "report": ("--out", "out.html"),
    "validate": ("--resamples", "99"),
    "watch": ("--max-error", "0.2"),
}
"""What a command needs beside its files."""

RIGHT = {"--y-true": "y", "--y-prob": "p", "--weight": "w", "--by": "ward", "--max-error": "0.2", "--threshold": "0.3"}


def option_value(option, coins, folder):
    """Return a value for an option, right more often than wrong."""
    name = option.opts[0]
    if name in RIGHT and coins.random() < 0.8:
        return RIGHT[name]
    if name in FEW:
        return coins.choice(FEW[name])
    if isinstance(option.type, click.Choice):
        return coins.choice([*option.type.choices, *option.type.choices, "nosuch"])
    if isinstance(option.type, (click.types.FloatParamType, click.types.IntParamType)):
        return coins.choice(NUMBERS)
    if name == "--memory-limit":
        return coins.choice(SIZES)
    if name in FILES:
        return str(
            folder / coins.choice(("out.html", "out.json", "out.csv", "out.parquet", "out.md", "no/such/out", ""))
        )
    if name == "--pos-label":
        return coins.choice(("1", "0", "yes", "", "maybe"))
    return coins.choice(COLUMNS)


def arguments(command):
    return [parameter for parameter in command.params if isinstance(parameter, click.Argument)]


def command_line(words, command, coins, folder):
    """Return a random command line for a command."""
    line = list(words)
    files = sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith("out."))
    for parameter in command.params:
        if parameter in arguments(command):
            count = coins.choice((1, 1, 1, 2)) if parameter.nargs == -1 else 1
            good = ["m.json"] if parameter.name == "model" else ["t.csv", "t.parquet"]
            names = good if coins.random() < 0.6 else [*files, "nosuch.csv", ""]
            line += [str(folder / coins.choice(names)) for _ in range(count)]
        elif parameter.multiple and parameter.opts[0] == "--y-prob" and coins.random() < 0.7:
            line += ["--y-prob", "p", "--y-prob", "worse"]
    for parameter in command.params:
        wanted = 0.95 if parameter.required else 0.02 if "--format" in parameter.opts[0] else 0.15
        if isinstance(parameter, click.Option) and coins.random() < wanted and parameter.name not in NEVER:
            flag = coins.choice(parameter.opts + parameter.secondary_opts)
            line += [flag] if parameter.is_flag else [flag, option_value(parameter, coins, folder)]
    if coins.random() < 0.03:
        line.append(coins.choice(("--nosuch", "extra", "--", "-")))
    return line


@pytest.mark.parametrize(("words", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in leaves()])
def test_a_random_command_line_gets_an_answer_or_one_sentence(words, command, folder):
    name = " ".join(words)
    coins = random.Random(name)
    files = [str(folder / ("m.json" if each.name == "model" else "t.csv")) for each in arguments(command)]
    good = [*words, *files, *(str(folder / word) if word.startswith("out.") else word for word in GOOD.get(name, ()))]
    lines = [good, *(command_line(words, command, coins, folder) for _ in range(LINES.get(name, 30)))]
    seen = []
    for line in lines:
        found = call(*line, stdin=b"")
        seen.append(found.exit_code)
        assert found.exit_code in (0, 1, 2, 3, *((4,) if name == "watch" else ())), line
        assert "please report it" not in found.output, (line, found.output)
        assert "Traceback" not in found.output or "--debug" in line, (line, found.output)
        assert "\x1b" not in found.output, line
        if found.exit_code == 2:
            assert found.stderr.strip(), line
            assert not found.stdout or name == "watch", (line, found.stdout)
        elif "--json" in line:
            documents = [json.loads(text) for text in found.stdout.splitlines()]
            assert len(documents) == 1 or name == "watch"  # which has one for each period
            assert [each["exit_code"] for each in documents[-1:]] in ([found.exit_code], [])
            assert "NaN" not in found.stdout
    assert seen[0] in (0, 1, 3)
    assert 2 in seen


@pytest.mark.parametrize(("words", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in leaves()])
def test_an_option_given_twice_is_an_error_that_names_it(words, command, folder):
    files = [str(folder / ("m.json" if each.name == "model" else "t.csv")) for each in arguments(command)]
    for option in command.params:
        if not isinstance(option, click.Option) or option.multiple or option.name == "help":
            continue
        for flag in option.opts:
            value = [] if option.is_flag else [option_value(option, random.Random(0), folder)]
            found = call(*words, *files, flag, *value, max(option.opts, key=len), *value)
            assert (found.exit_code, found.stdout) == (2, ""), option.name
            assert f"Error: {max(option.opts, key=len)} was given 2 times; give it once" in found.stderr


def test_options_that_may_be_repeated_are():
    repeated = {
        " ".join(words): [each.opts[0] for each in command.params if each.multiple] for words, command in leaves()
    }
    assert {words: options for words, options in repeated.items() if options} == {
        "measure": ["--y-true", "--y-prob", "--competing"],  # a column per class
        "certify": ["--groups", "--y-true", "--y-prob"],
        "groups": ["--features"],
        "test": ["--y-true", "--y-prob"],
        "decide": ["--threshold"],
        "compare": ["--y-prob"],
        "report": ["--features", "--y-prob", "--competing"],
        "validate": ["--competing"],
    }


@pytest.mark.parametrize("words", [words for words, _ in leaves()])
def test_help_has_examples_and_exit_codes(words):
    said = call(*words, "--help").stdout
    assert "Exit codes:\n  0  " in said
    assert f"Examples:\n  calibrant {' '.join(words)} " in said
    assert ("\n  3  " in said) is (words[0] in VERDICTS)
    assert ("\n  1  " in said) is (words[0] in (*VERDICTS, "measure", "test"))
