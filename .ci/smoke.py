"""Install built distributions, each into a new environment, and try there what their users do first.

``python .ci/smoke.py dist/calibrant-0.2.0.tar.gz dist/calibrant-0.2.0-py3-none-any.whl``
"""

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

IN_PYTHON = """
import json, sys
import calibrant
outcomes = [i * 7919 % 1000 < i for i in range(1000)]
forecasts = [(i + 0.5) / 1000 for i in range(1000)]
certificate = calibrant.certify(outcomes, forecasts, max_error=0.2)
print(json.dumps([calibrant.__file__, calibrant.__version__, certificate.verdict, certificate.upper]))
"""


def run(*command: str | Path, folder: Path) -> str:
    """Run a command to its end and return what it prints; end with what it complains of if it fails."""
    finished = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
    if finished.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{finished.stdout}{finished.stderr}")
    return finished.stdout


def smoke(distribution: Path, folder: Path) -> None:
    """Try one distribution in an environment of its own, in a folder from which the checkout cannot be imported."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    programs = environment / ("Scripts" if sys.platform == "win32" else "bin")
    print(f"{distribution.name}\n  installing into a new environment ...", flush=True)
    run(programs / "python", "-m", "pip", "install", "--quiet", distribution, folder=folder)
    file, version, verdict, upper = json.loads(run(programs / "python", "-c", IN_PYTHON, folder=folder))
    if not Path(file).is_relative_to(environment.resolve()):
        sys.exit(f"imported {file}, which is not what was installed")
    print(f"  version {version}, certify() in Python: {verdict}, at most {upper:.4f}", flush=True)

    print("  installing what the command line needs ...", flush=True)
    run(programs / "python", "-m", "pip", "install", "--quiet", f"{distribution}[cli]", folder=folder)
    if "certify" not in run(programs / "calibrant", "--help", folder=folder):
        sys.exit("calibrant --help does not name its commands")
    rows = [f"{int(i * 7919 % 1000 < i)},{(i + 0.5) / 1000}" for i in range(1000)]
    (folder / "predictions.csv").write_text("\n".join(["y,p", *rows]) + "\n", encoding="utf-8")
    options = ["--y-true", "y", "--y-prob", "p", "--max-error", "0.2"]
    said = run(programs / "calibrant", "certify", "predictions.csv", *options, folder=folder)
    print(f"  calibrant certify predictions.csv: {said.strip().splitlines()[0]}", flush=True)


def main() -> None:
    """Try every distribution that is named."""
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            smoke(Path(name).resolve(), Path(folder).resolve())


if __name__ == "__main__":
    main()
