"""Options and fixtures for pytest. For a fast start, dicast is not imported before one of them is used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dicast import Run

    from .component import Component
    from .pass_rate import PassRate

FILES = ("*.dicast.yaml", "*.dicast.yml")
"""Default patterns of collected files."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--dicast`` and the ini option ``dicast_files``."""
    group = parser.getgroup("dicast", "judging the output of language models")
    group.addoption(
        "--dicast", action="store_true", help="collect pipelines of dicast: each subject and the gate are tests"
    )
    parser.addini(
        "dicast_files", f"patterns of pipeline files that --dicast collects ({' '.join(FILES)})", "args", [*FILES]
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the collection of pipelines with ``--dicast``."""
    if config.option.dicast:
        from .collection import Collection

        config.pluginmanager.register(Collection(config), "dicast-collection")


@pytest.fixture
def dicast_run(tmp_path: Path) -> Callable[..., Run]:
    """Run a pipeline (a file, YAML text or a mapping) like ``dicast.run``, with the test's own ledger."""
    from .component import run_in

    return run_in(tmp_path)


@pytest.fixture
def judge(tmp_path: Path) -> Callable[..., Component]:
    """Create a metric or judge by its name and options: ``judge("check/contains", value="Ankara")("It is Ankara.").value``."""
    from .component import maker_in

    return maker_in(tmp_path)


@pytest.fixture(name="assert_pass_rate")
def assert_pass_rate_fixture() -> Callable[..., PassRate]:
    """Return :func:`dicast_pytest.assert_pass_rate`, for tests without imports."""
    from .pass_rate import assert_pass_rate

    return assert_pass_rate


def pytest_report_header(config: pytest.Config) -> Any:
    """Return a line with the patterns of collected files."""
    return f"dicast: {' '.join(config.getini('dicast_files'))}" if config.option.dicast else None
