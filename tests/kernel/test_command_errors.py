"""Errors of commands: the message, and the advice on the next step."""

from __future__ import annotations

import errno
import os

import pytest

from dicast._kernel.cli.output import print_error


@pytest.mark.parametrize(
    ("number", "advice"), [(errno.ENOSPC, "free some space"), (errno.ENAMETOOLONG, "shorter path"), (errno.EACCES, "")]
)
def test_a_path_that_cannot_be_used_has_its_reason_and_the_next_step(capsys, number, advice):
    print_error(OSError(number, os.strerror(number), "out.csv"), 2, as_json=False)
    (line,) = capsys.readouterr().err.splitlines()
    reason = f"out.csv: {os.strerror(number)}"
    assert line.startswith(reason)
    assert advice in line
    assert (line == reason) == (not advice)
