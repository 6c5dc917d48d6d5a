"""Errors of a user's code in messages."""

from __future__ import annotations

from .._kernel.contract.plugin_errors import describe_error


def raised_text(error: BaseException, module: str = "") -> str:
    """Return the type, the text and the line of *error*: ``ValueError: no key (answers.py:12)``.

    :param module: the user's module or package. Its lines are preferred to lines of libraries.
    """
    return describe_error(error, module)
