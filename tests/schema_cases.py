"""The published JSON Schema of results, ready to check a document."""

import functools
import json
from pathlib import Path

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"


@functools.cache
def published() -> Draft202012Validator:
    """Return what checks a result against the schema that is shipped with the documentation."""
    schema = json.loads((SCHEMAS / "results.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
