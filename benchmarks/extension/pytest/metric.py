import pytest
from local import politeness


@pytest.fixture
def polite(record_property):
    def check(text: str) -> None:
        score = politeness(text)
        record_property("polite", score)
        assert score >= 0.5

    return check
