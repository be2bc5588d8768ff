"""The recipes of docs/how-to/watch.md: each schedule, unit and workflow runs what it says, on a machine made for it."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from cli_cases import ROOT, SOURCE
from watch_cases import write_day

TEXT = (ROOT / "docs" / "how-to" / "watch.md").read_text()


def block(language):
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)
    return found


@pytest.fixture
def machine(tmp_path):
    """A folder for /srv/churn with days of forecasts, the program on the path, and a way to run lines there."""
    place = tmp_path / "churn"
    days = place / "days"
    days.mkdir(parents=True)
    program = tmp_path / "bin" / "calibrant"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m calibrant "$@"\n')
    program.chmod(0o755)
    environment = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": SOURCE,
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }

    def run(script, *shell):
        lines = script.replace("/srv/churn", str(place))
        return subprocess.run(
            [*(shell or ("bash", "-e", "-c")), lines],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    for day in (1, 2):
        write_day(days, day)
    return place, run


def test_the_cron_job_prints_what_somebody_must_look_at_and_nothing_else(machine):
    place, run = machine
    script = place / "watch.sh"
    script.write_text(block("bash").replace("/srv/churn", str(place)))
    script.chmod(0o755)
    settings, line = block("text").strip().splitlines()
    assert settings.startswith("MAILTO=")
    minute, hour, *rest, command = line.split(maxsplit=5)
    assert (int(minute) < 60, int(hour) < 24, rest) == (True, True, ["*", "*", "*"])
    quiet = run(command, "/bin/sh", "-c")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    (place / "days" / "2026-01-03.csv").write_text("y,p,issued\n1,7,2026-01-03\n")
    said = run(command, "/bin/sh", "-c")
    assert "Refused: " in said.stdout
    assert "is 7, outside [0, 1]" in said.stdout


def test_the_systemd_unit_is_one_and_its_command_ends_at_an_alarm(machine, tmp_path):
    place, run = machine
    unit = block("ini").replace("/srv/churn", str(place))
    if shutil.which("systemd-analyze"):
        file = tmp_path / "churn-watch.service"
        file.write_text(unit)
        checked = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, check=False)
        assert (checked.returncode, "churn-watch" in checked.stderr) == (0, False), checked.stderr
    (command,) = re.findall("^ExecStart=(.*)$", unit, flags=re.MULTILINE)
    for day in range(3, 31):
        write_day(place / "days", day, shift=0.4)
    sooner = command.replace("--poll 60", "--poll 0.05 --stop-after 5 --periods-between-false-alarms 20")
    found = run(f"timeout 100 {sooner}")
    prevented = re.findall("^RestartPreventExitStatus=(.*)$", unit, flags=re.MULTILINE)
    assert [str(found.returncode)] == prevented == ["4"], found.stderr
    assert "ALARM" in found.stdout.splitlines()[-1]
    assert 'calibrant_alarm{model="churn"} 1.0' in (place / "churn.prom").read_text()


def test_the_scheduled_workflow_is_green_until_an_alarm_or_a_broken_file(machine, tmp_path):
    place, run = machine
    workflow = block("yaml")
    for words in (
        "schedule:",
        "concurrency: watch",
        "actions/cache/restore@v4",
        "actions/cache/save@v4",
        "if: always()",
    ):
        assert words in workflow
    assert workflow.count("path: churn.state") == workflow.count("key: churn-${{ github.run_id }}") == 2
    (script,) = re.findall(r"- name: Watch\n +run: \|\n((?: {10}.*\n)+)", workflow)
    lines = "\n".join(line.strip() for line in script.splitlines() if not line.strip().startswith("pip "))
    found = run(lines)
    assert found.returncode == 0, found.stderr
    write_day(place / "days", 3)
    assert run(lines).returncode == 0
    summary = (tmp_path / "summary.md").read_text().splitlines()
    assert [line[:10] for line in summary] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    (place / "days" / "2026-01-04.csv").write_text("")
    broken = run(lines)
    assert broken.returncode == 1
    assert "2026-01-04.csv is empty" in broken.stderr
