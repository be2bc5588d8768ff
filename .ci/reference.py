"""Compute the reference values of R anew and compare them with those in tests/reference.

``python .ci/reference.py`` compares; ``python .ci/reference.py --freeze`` writes what R says now. Each script
tests/reference/r/NAME.R makes the values of tests/reference/NAME.json. The test suite reads those files and needs no R.
"""

import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "reference"
PACKAGES = ("rms", "pROC", "survival", "MASS", "sandwich", "riskRegression", "prodlim")
INSTALL = "apt-get install r-base-core " + " ".join(f"r-cran-{package.lower()}" for package in PACKAGES)
TOLERANCE = 1e-8  # relative, and absolute below 1: what other versions of R and of its linear algebra stay within


def check_r() -> None:
    """End with the name of what is missing, if R or one of its packages is."""
    if shutil.which("Rscript") is None:
        sys.exit(
            "Rscript is not installed, so nothing was compared. The values in tests/reference stand without it.\n"
            f"To compute them anew on Debian or Ubuntu: {INSTALL}"
        )
    asked = f"p <- c({', '.join(map(repr, PACKAGES))}); cat(p[!p %in% rownames(installed.packages())])"
    missing = subprocess.run(["Rscript", "-e", asked], capture_output=True, text=True, check=True).stdout.split()
    if missing:
        sys.exit(f"R lacks the packages {', '.join(missing)}, so nothing was compared. On Debian or Ubuntu: {INSTALL}")


def computed(script: Path, folder: Path) -> Any:
    """Run one script and return what it wrote down."""
    output = folder / f"{script.stem}.json"
    command = ["Rscript", str(script.relative_to(FOLDER)), str(output)]
    finished = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    if finished.returncode:
        sys.exit(f"failed: {' '.join(command)}\n{finished.stdout}{finished.stderr}")
    return json.loads(output.read_text(encoding="utf-8"))


def leaves(value: Any) -> Iterator[Any]:
    """Yield the numbers and words of a value, lists within lists one after the other."""
    if isinstance(value, list):
        for each in value:
            yield from leaves(each)
    else:
        yield value


def difference(new: Any, frozen: Any) -> float:
    """Return how far two values are from each other; infinite where they are of different kinds or lengths."""
    pairs = list(zip(leaves(new), leaves(frozen), strict=False))
    if len(pairs) != sum(1 for _ in leaves(new)) or len(pairs) != sum(1 for _ in leaves(frozen)):
        return math.inf
    return max((_apart(one, other) for one, other in pairs), default=0.0)


def _apart(one: Any, other: Any) -> float:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) / max(1.0, abs(other))
    return 0.0 if one == other else math.inf


def compare(name: str, new: Any, frozen: Any) -> bool:
    """Print how the values of one script compare with the frozen ones; return whether they agree."""
    values, before = new["values"], frozen["values"]
    apart = {each: difference(values[each]["value"], before[each]["value"]) for each in values if each in before}
    numbers = sum(1 for each in apart for _ in leaves(before[each]["value"]))
    worst = max(apart, key=lambda each: apart[each])
    most = f"largest difference {apart[worst]:.1e} ({worst})" if apart[worst] else "no difference"
    print(f"{name}: {len(apart)} values ({numbers:,} numbers and words) compared, {most}")
    for package, version in new["versions"].items():
        if frozen["versions"].get(package) != version:
            print(f"  {package} {version} here, {frozen['versions'].get(package)} when they were frozen")
    problems = [f"{each}: differs by {apart[each]:.1e}" for each in apart if apart[each] > TOLERANCE]
    problems += [f"{each}: R no longer computes it" for each in before if each not in values]
    problems += [f"{each}: not frozen yet" for each in values if each not in before]
    problems += [f"{each}: its command changed" for each in apart if values[each]["command"] != before[each]["command"]]
    if new["given"] != frozen["given"]:
        problems.append("the statements before the commands changed")
    for problem in problems:
        print(f"  {problem}")
    return not problems


def main() -> None:
    """Compare every script's values, or write them with --freeze."""
    check_r()
    scripts = sorted(path for path in (FOLDER / "r").glob("*.R") if path.stem != "record")
    agree = True
    with tempfile.TemporaryDirectory() as folder:
        for script in scripts:
            new, stored = computed(script, Path(folder)), FOLDER / f"{script.stem}.json"
            if "--freeze" in sys.argv[1:]:
                shutil.copyfile(Path(folder) / stored.name, stored)
                print(f"{script.stem}: {len(new['values'])} values written")
            else:
                agree &= compare(script.stem, new, json.loads(stored.read_text(encoding="utf-8")))
    if not agree:
        sys.exit("R and tests/reference differ. If R is right: python .ci/reference.py --freeze, and read the diff.")


if __name__ == "__main__":
    main()
