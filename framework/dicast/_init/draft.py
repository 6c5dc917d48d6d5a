"""The draft of a pipeline for data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import count as numbers
from pathlib import Path
from shlex import join, quote
from typing import Any

import attrs
import click

from .._kernel.values.errors import ConfigError
from ..toolkit.printable import one_line
from .choice import Choice, Model, for_rows, for_turns, model_of
from .guesses import FIELDS, MOST_COLUMNS, Guesses, given_fields, guess, listed
from .ids import checked
from .local import LOCAL, Local, local_model
from .objects import read_objects
from .sample import Sample, read_sample, source_of
from .written import FileSection, file_text, one_comment


@attrs.frozen
class Wishes:
    """The options of the command; *reading* has options of the source. With *is_interactive* the user of the terminal is asked too."""

    kind: str | None = None
    fields: Sequence[str] = ()
    model: Model | None = None
    reading: Mapping[str, Any] = attrs.field(factory=dict)
    is_interactive: bool = False


@attrs.frozen
class Draft:
    """The *files* to write, the guesses as lines (*says*), and the reason why no rows are tried (*untried*); *document* is for ``--json``.

    *first* is the next command if the pipeline cannot be run yet.
    """

    files: Mapping[Path, str]
    says: Sequence[str]
    document: Mapping[str, Any]
    untried: str | None = None
    first: str | None = None


def drafted(data: Path, out: Path, wishes: Wishes) -> Draft:
    """Return the draft of the pipeline *out* for *data*.

    :raises RequestError: if the data cannot be read, or a column has to be named.
    """
    sample = read_sample(data, wishes.kind, wishes.reading, is_asked=wishes.is_interactive)
    guesses = None if sample.turns else checked(_guesses(sample, wishes), sample, data)
    if guesses is not None and wishes.is_interactive and wishes.model is None:
        wishes = attrs.evolve(wishes, model=_ask_for_model(guesses, out))
    if guesses is None:
        source_of(sample.source, data, sample.options).check()
    choice = for_turns(sample.source) if guesses is None else for_rows(guesses, wishes.model)
    unit = "turn" if sample.turns else "row"
    count = f"{len(sample.rows)}{'' if sample.is_complete else ' or more'} {unit}{'' if len(sample.rows) == 1 else 's'}"
    says = (
        [*sample.says]
        if guesses is None
        else [*_guessed(guesses, sample.source), *_unread(sample), *_model_lines(wishes.model, choice, guesses)]
    )
    path = os.path.relpath(data.absolute(), out.absolute().parent)
    head = [
        f"Written by dicast init from {one_comment(data.name)} ({count}). Comments mark the guesses: correct any that are wrong.",
        f"dicast check {out.name} checks this file, dicast run {out.name} runs it.",
    ]
    sections = [
        FileSection({"name": data.name.partition(".")[0] or "data"}),
        FileSection(
            {
                "source": {
                    sample.source: {
                        "path": path,
                        **sample.options,
                        **(guesses.option() if guesses is not None and sample.has_columns else {}),
                    }
                }
            },
            says,
        ),
        *choice.sections,
    ]
    untried = "it would ask a model, which may cost money" if choice.asks and wishes.model else None
    if isinstance(wishes.model, Local) and untried is not None:
        untried = "a model in this process is slow to load"
    first = None
    if choice.makes and wishes.model is None:
        untried = "no column has outputs, and no task writes them yet"
        first = _again(data, out, wishes, guesses)
    document = {
        "source": sample.source,
        "kind": "turns" if sample.turns else "rows",
        "judged": choice.how,
        "fields": {} if guesses is None else {field: {"column": column_guess.column, "why": column_guess.why} for field, column_guess in guesses.by_field.items()},
    }  # fmt: skip
    says = [f"{one_line(str(data))} has {count}; judged: {choice.how}.", *says]
    return Draft({out: file_text(head, sections)}, says, document, untried, first)


def _guesses(sample: Sample, wishes: Wishes) -> Guesses:
    """Return the guesses for the columns, with the columns that the user named.

    :raises ConfigError: if no column can be identified as the outputs or their inputs.
    """
    fields = given_fields(wishes.fields, sample.columns)
    has_model = wishes.model is not None
    guesses = guess(sample, fields, has_model=has_model)
    if wishes.is_interactive:
        for field in ("input", "output", "reference"):
            column = guesses.by_field[field].column if field in guesses.by_field else ""
            empty = "-" if column else "empty"
            question = f"Column of the {field} ({listed(sample.columns)}; {empty}: none)"
            name = click.prompt(question, default=column, show_default=bool(column)).strip()
            fields[field] = "" if name == "-" and name not in sample.columns else name
        named = given_fields([f"{field}={name}" for field, name in fields.items()], sample.columns)
        guesses = guess(sample, named, "as you answered", has_model=has_model)
    read_objects(guesses, sample)
    if "output" not in guesses.by_field and "input" not in guesses.by_field:
        wrong = f"no column looks like the outputs or the input of a task; the columns are {listed(sample.columns)}"
        likely = guesses.likely()
        name = quote(likely[0]) if likely else "COLUMN"
        noun = f"Likely: {', '.join(map(one_comment, likely))}. " if likely else ""
        ways = (
            f"If a column has outputs: --fields output={name}. If a task shall write them: --fields input={name} --model NAME, "
            f"or --fields input={name} alone to add the task yourself. Add reference=COLUMN for the column with the right answers."
        )
        raise ConfigError(f"{wrong}. {noun}{ways}")
    return guesses


def _ask_for_model(guesses: Guesses, out: Path) -> Model | None:
    """Ask for the model that writes missing outputs, or that may judge outputs without a reference; None if the user names none."""
    if {"output", "reference"} <= {*guesses.by_field}:
        return None
    use = "judges the outputs" if "output" in guesses.by_field else "writes the outputs"
    name = click.prompt(f"Model that {use} (such as gpt-5-mini; empty: none)", default="", show_default=False).strip()
    return local_model(None, out) if name == LOCAL else name or None


def _again(data: Path, out: Path, wishes: Wishes, guesses: Guesses | None) -> str:
    """Return the command that writes a pipeline with a task for the same data, with the same options, to a new file."""
    named = {field: guess.column for field, guess in guesses.by_field.items() if guess.is_named} if guesses else {}
    refused = sorted(guesses.refused) if guesses else ()
    words = ["dicast", "init", str(data), *(["--kind", wishes.kind] if wishes.kind else [])]
    for field, column in (*named.items(), *((field, "") for field in refused)):
        words += ["--fields", f"{field}={column}"]
    for option, value in wishes.reading.items():
        words += ["--no-header"] if option == "header" else [f"--{option}", str(value)]
    paths = (out.with_stem(f"{out.stem}-{number}") for number in numbers(2))
    free = next(path for path in paths if not path.exists())
    return join([*words, "--model", "NAME", "--out", str(free)])


def _guessed(guesses: Guesses, source: str) -> list[str]:
    """Return a line for each field with its column and the reason. A *source* of lines names rows by lines, another source by numbers."""
    lines = []
    by_number = f"; rows are named by their {'lines' if source in ('rows/csv', 'rows/jsonl') else 'numbers'}"
    for field in FIELDS:
        column_guess = guesses.by_field.get(field)
        if column_guess is not None:
            why = column_guess.why if column_guess.is_named else f"guessed: {column_guess.why}"
            column = column_guess.column
            named = one_comment(column) if "{{" in column else f"column {one_comment(repr(column))}"
            lines.append(f"{field}: {named} ({why}){_other_column(field, guesses)}")
        elif field == "id":
            unique = guesses.possible_id()
            hint = "" if unique is None else f"; to name them by a column: --fields {quote(f'id={unique}')}"
            lines.append(f"id: none found{by_number}{one_comment(hint, 100)}")
        elif field == "output":
            lines.append(f"output: none found{_other_column(field, guesses)}")
        elif field == "reference":
            left_out = "so metrics that compare with it are left out, such as check/icontains, diff/match and diff/json"
            lines.append(f"reference: none found, {left_out}; to add one: --fields reference=COLUMN")
    if guesses.contexts:
        named = ", ".join(one_comment(repr(name)) for name in guesses.contexts)
        lines.append(f"context of the answers: {named} (guessed: a word in the name)")
    if rest := [name for name in guesses.rest if name not in guesses.contexts]:
        lines.append(f"in each row's context: {one_comment(', '.join(map(repr, rest)), 100)}")
    return lines


def _other_column(field: str, guesses: Guesses) -> str:
    """Return the option that corrects a guessed or missing output, empty for another field and a column that the user named."""
    if field != "output" or "output" in guesses.refused:
        return ""
    output = guesses.by_field.get("output")
    if output is not None:
        return "" if output.is_named or output.why == "its name" else "; if no column is the output: --fields output="
    blank = [
        f"; column {one_comment(repr(column.name))} is blank in {column.rows - len(column.values)} of {column.rows} rows"
        for column in guesses.blank_outputs()
    ]
    if not guesses.has_model:
        return "".join(blank)
    return "".join([", so the model writes it", *blank, "; to judge a column instead: --fields output=COLUMN"])


def _model_lines(model: Model | None, choice: Choice, guesses: Guesses) -> list[str]:
    """Return a line about the model: its use and its endpoint, or why the file asks none."""
    if model is None:
        if "reference" in guesses.by_field and not choice.makes:
            return []  # a metric without a model fits
        return ["model: none named, so no model judges or writes outputs; to add one: --model NAME"]
    if isinstance(model, Local):
        return []
    if not choice.asks:
        return [
            f"model: {one_comment(model)} is not used, because a metric without a model fits; llm/judge would ask it"
        ]
    ((name, _),) = model_of(model).items()
    key = "ANTHROPIC_API_KEY" if name.startswith("anthropic") else "OPENAI_API_KEY"
    address = "the provider's address" if name.startswith(("litellm", "anthropic")) else "https://api.openai.com/v1"
    uses = [*(["writes the outputs"] if choice.makes else []), *(["judges"] if "by a model" in choice.how else [])]
    keys = "the key in the provider's environment variable" if name.startswith("litellm") else f"the key in {key}"
    other = f"another endpoint: base_url: URL under {name}"
    return [f"model: {one_comment(model)} {' and '.join(uses)}, by {name} at {address}, with {keys}; {other}"]


def _unread(sample: Sample) -> list[str]:
    """Return a line about the columns that were not examined, empty if all were."""
    count = len(sample.columns)
    if count <= MOST_COLUMNS:
        return []
    return [f"columns: init looked at the first {MOST_COLUMNS:,} of {count:,}; name others with --fields FIELD=COLUMN"]
