"""Errors of commands: the message, and the advice on the next step."""

from __future__ import annotations

import errno
import os

import pytest

from dicast._kernel.cli.exit_codes import error_code
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


@pytest.mark.parametrize(
    ("number", "name", "code"),
    [
        (errno.EACCES, "out.csv", 2),
        (errno.ENOSPC, "out.csv", 2),
        (errno.EROFS, "out.csv", 2),
        (errno.EIO, "out.csv", 70),  # no fault of the path
        (errno.EACCES, None, 70),  # no path that the user passed
    ],
)
def test_a_system_error_is_the_user_s_fault_only_if_it_is_about_a_path(number, name, code):
    assert error_code(OSError(number, os.strerror(number), name)) == code
