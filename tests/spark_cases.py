"""Whether Spark can be tried here."""

import os
import pathlib
import shutil

import pytest

JAVA = shutil.which("java") or (pathlib.Path(os.environ.get("JAVA_HOME", "nowhere")) / "bin" / "java").exists()

needs_java = pytest.mark.skipif(not JAVA, reason="Spark needs a Java runtime, and neither PATH nor JAVA_HOME has one")
