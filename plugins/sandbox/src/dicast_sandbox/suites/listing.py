"""Number of tests, as listed by their runner without running any."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from dicast import Execution

from .reports import Report

_PYTEST = {"PYTEST_ADDOPTS": "--collect-only -v -p no:cacheprovider"}
_UNITTEST = """import unittest

class Count:
    def run(self, tests):
        print(tests.countTestCases(), "tests collected")
        raise SystemExit(len(loader.errors))

loader = unittest.TestLoader()
unittest.main(module=None, testLoader=loader, testRunner=Count())
"""
_MODULE = re.compile(r"-m +unittest\b")
_COLORS = re.compile(r"\x1b\[[\d;]*m")
_COLLECTED = re.compile(r"^(?:=+ )?(\d+)(?:/\d+)? tests? collected", re.MULTILINE)


class Listing(NamedTuple):
    """Command that lists tests, and its environment."""

    command: str | tuple[str, ...]
    environment: Mapping[str, str]


def find_listing(report: Report, command: str | tuple[str, ...]) -> Listing | None:
    """Return the command that lists the tests of *command*; None if the runner cannot list tests without building or running them."""
    if report == "pytest":
        return Listing(command, _PYTEST)
    if report != "unittest":
        return None
    if isinstance(command, str):
        command_line = _MODULE.sub(lambda _: f"-c {shlex.quote(_UNITTEST)}", command)
        return None if command_line == command else Listing(command_line, {})
    for at, pair in enumerate(pairwise(command)):
        if pair == ("-m", "unittest"):
            return Listing((*command[:at], "-c", _UNITTEST, *command[at + 2 :]), {})
    return None


def parse_listing(execution: Execution) -> int | None:
    """Return the number of tests in the output of a listing; None if the listing failed, for example because tests need the candidate."""
    counts = _COLLECTED.findall(_COLORS.sub("", execution.output))
    return int(counts[-1]) if counts and execution.exit == 0 and execution.limit is None else None
