from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def litellm_imported() -> None:
    """Once for all, for it takes seconds, which no single test is to be held for."""
    import litellm  # noqa: F401
