import os

import pytest
import sklearn
from hypothesis import settings

# The same examples every time in CI, so that a failure there can be repeated; fresh ones on a developer's machine.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=150)
settings.register_profile("local", deadline=None, max_examples=150)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture
def routing():
    """Metadata routing of scikit-learn, which is off unless asked for."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield
