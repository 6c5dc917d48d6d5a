"""Ids of rows: a column that is unique in the whole file, else a template of two columns, else the numbers of lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .._kernel.values.errors import DataError
from .columns import SHORT
from .guesses import Guess, Guesses
from .sample import Sample, source_of

_TRIED = 6
"""The most second columns that are tried."""

_SECOND = ("model", "run", "run_id", "trial", "epoch", "attempt", "sample", "variant", "prompt", "seed", "turn", "index", "split", "lang")  # fmt: skip
"""The columns that distinguish rows with the same id, the likeliest first."""


def checked(guesses: Guesses, sample: Sample, data: Path) -> Guesses:
    """Return *guesses* with a column or a template whose ids are unique in the whole file; else rows are named by their lines.

    :raises DataError: if the file has another fault.
    """
    if not sample.has_columns:
        return guesses
    try:
        _check(guesses, sample, data)
        _tell_apart(guesses, sample, data)
    except DataError:
        id_guess = guesses.by_field.get("id")
        if id_guess is not None and id_guess.is_named:
            raise
        column = "id" if id_guess is None else id_guess.column
        if column not in guesses.columns:
            raise
        for guess in (*_templates(column, guesses), _numbers(column)):
            guesses.by_field["id"] = guess
            try:
                _check(guesses, sample, data)
            except DataError:
                continue
            return guesses
        raise
    return guesses


def _tell_apart(guesses: Guesses, sample: Sample, data: Path) -> None:
    """If a column of ids has ids more than once, make unique ids of it and a second column, if possible."""
    column = guesses.repeated_ids()
    if "id" in guesses.by_field or "id" in guesses.refused or column is None:
        return
    for guess in _templates(column, guesses):
        guesses.by_field["id"] = guess
        try:
            _check(guesses, sample, data)
        except DataError:
            del guesses.by_field["id"]
        else:
            return


def _check(guesses: Guesses, sample: Sample, data: Path) -> None:
    source_of(sample.source, data, {**sample.options, **guesses.option()}).check()


def _templates(column: str, guesses: Guesses) -> Iterator[Guess]:
    """Yield templates of *column* and another column that is short and in every row."""
    used = {guess.column for field, guess in guesses.by_field.items() if field not in ("id", "session_id")} | {column}
    fitting = [
        name
        for name, candidate in guesses.columns.items()
        if name not in used and candidate.everywhere and candidate.full and candidate.named
    ]
    likely = [name for name in _SECOND if name in fitting]
    for other in [*likely, *(name for name in fitting if name not in likely)][:_TRIED]:
        if guesses.columns[other].length <= SHORT:
            yield Guess(
                f"{{{{ {column} }}}}-{{{{ {other} }}}}",
                f"ids of column {column!r} occur twice, with {other!r} they do not",
            )


def _numbers(column: str) -> Guess:
    why = f"ids of column {column!r} are missing or occur twice: rows are named by their numbers. To use columns as names: {{{{ {column} }}}}-{{{{ OTHER }}}}"
    return Guess("{{ line }}", why)
