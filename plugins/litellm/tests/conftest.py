from __future__ import annotations

import pytest

from dicast_litellm.library import load


@pytest.fixture(scope="session", autouse=True)
def litellm_imported() -> None:
    """Once for all, as the plugin does, which keeps it from fetching prices; it takes seconds, which are no single test's."""
    load()
