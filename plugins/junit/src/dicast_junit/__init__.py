"""Results of a run as JUnit XML, which CI systems show as tests."""

from __future__ import annotations

from dicast import hookimpl

from .xml import Xml

__all__ = ["Xml"]


@hookimpl
def dicast_sinks() -> list[type[Xml]]:
    """Offer the file of test results."""
    return [Xml]
