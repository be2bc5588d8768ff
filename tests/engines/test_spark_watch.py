"""Spark's structured streaming feeds a watch from a folder that grows, as docs/how-to/watch.md has it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from spark_cases import needs_java, spark_frame

from calibrant.monitors import Monitor, Watch

pytestmark = needs_java

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "watch.md"


def program():
    (found,) = re.findall(r"^```python\n# stream.py\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    return found


@pytest.fixture
def arrive(spark, tmp_path):
    """Let a day of forecasts arrive in the folder."""

    def write(day):
        rng = np.random.default_rng(day)
        score = rng.random(200)
        columns = {"issued": [f"2026-01-0{day} 12:00:00"] * 200, "score": score, "label": (rng.random(200) < score) + 0}
        frame = spark_frame(spark, columns).selectExpr("CAST(issued AS TIMESTAMP)", "score", "CAST(label AS INT) label")
        frame.coalesce(1).write.mode("append").parquet(str(tmp_path / "arrivals"))
        return columns

    return write


def test_micro_batches_of_a_folder_count_once_also_after_a_failure(spark, tmp_path, capsys, arrive):
    code = program().replace('"arrivals"', repr(str(tmp_path / "arrivals")))
    code = code.replace('"checkpoint"', repr(str(tmp_path / "checkpoint")))
    state = tmp_path / "churn.state"
    code = code.replace('"churn.state"', repr(str(state)))
    days = [arrive(1), arrive(2)]
    exec(code, {"spark": spark})
    assert "up to 2026-01-01" in capsys.readouterr().out
    days.append(arrive(3))

    # A micro-batch that was counted and not committed comes again.
    committed = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for path in (committed[-1], committed[-1].with_name(f".{committed[-1].name}.crc")):
        path.unlink(missing_ok=True)
    exec(code, {"spark": spark})
    assert "up to 2026-01-02" in capsys.readouterr().out

    monitor = Monitor(max_error=0.05)
    for day, columns in enumerate(days, 1):
        monitor.update(columns["label"], columns["score"], period=f"2026-01-0{day}")
    with Watch(Monitor(max_error=0.05), state=state) as watch:
        assert watch.batches == 3
        (reading,) = watch.finish()
    expected = monitor.read()
    found = {name: value for name, value in json.loads(reading.to_json()).items() if isinstance(value, (int, str))}
    assert found.items() <= json.loads(expected.to_json()).items()
    assert reading.upper == pytest.approx(expected.upper, rel=1e-9)
    assert reading.rows == 600
