"""The columns of the fields, guessed by common names, then by their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import attrs

from .._kernel.values.errors import ConfigError, Problem
from .._kernel.values.names import nearest
from .columns import SHORT, Column
from .sample import KEPT, Sample
from .written import one_comment

FIELDS = ("id", "input", "output", "reference", "session_id")

_NAMES = {
    "id": "id qid custom_id row_id question_id example_id case_id task_id test_id sample_id item_id doc_id uid uuid key index idx",
    "session_id": "session_id session conversation_id conversation thread_id thread chat_id dialog_id dialogue_id",
    "output": "output response completion prediction generation generated model_output model_response model_answer actual_output "
    "actual generated_answer llm_output hypothesis candidate predicted pred result reply answer resp ans out",
    "reference": "reference expected expected_output expected_answer gold golden ideal target ground_truth groundtruth reference_answer "
    "gold_answer correct_answer correct truth label solution answer_key canonical_solution canonical_answer best_answer answer answers ref exp gt",
    "input": "input question prompt query user_input instruction instructions request user_query user_message problem task user "
    "message utterance source article document text q",
}
"""Usual names of a field's column, the likeliest first, by field."""

_WORDS = {
    "context": "context contexts passage passages evidence",
    "reference": "expected gold golden ideal target truth reference correct label should",
    "output": "output response completion prediction generated answer answers reply replies says said",
    "input": "input question prompt query instruction asks asked",
}
"""Words in longer names."""

_NUMBERS = ("id", "nr", "no", "num", "number", "uid", "uuid", "key")
"""The last words of longer names of ids."""

_KEYS = ("ticket", "case", "order", "invoice", "code", "number")
"""Names of a first column that has ids, if its values are unique and short."""

_PAIRS = (("1", "2"), ("a", "b"), ("chosen", "rejected"))
"""Pairs of endings of the names of two outputs that are compared, such as ``output_1`` and ``output_2``."""

_ABOUT = (
    "test tests check checks metadata rubric criteria note notes remark remarks comment comments explanation rationale "
    "topic category subject language lang level difficulty tag tags split kind type date time author url"
)
"""Words in the names of columns about an answer or a row, which are not answers themselves."""

MOST_COLUMNS = 1_000
"""The number of columns that are examined, in the order of the file, in addition to columns with the name of a field."""

NAMED = "as --fields says"
"""The reason for a column that the user named in the command."""

_NAMED = 50
_EQUAL = 0.2
"""The least share of rows in which a column equals the output, so that it is taken as the reference."""


@attrs.frozen
class Guess:
    """The *column* of a field and the reason (*why*); *is_named* is True if the user named it."""

    column: str
    why: str
    is_named: bool = False


@attrs.define
class Guesses:
    """The columns, the guess for each field (*by_field*), and the columns with evidence for answers (*contexts*).

    The user wants no column for the *refused* fields. With *paired* there are two outputs to compare, and the second is the reference.
    With *has_model* the user named a model, which writes the outputs unless a column is named as the output.
    """

    columns: Mapping[str, Column]
    by_field: dict[str, Guess] = attrs.field(factory=dict)
    refused: set[str] = attrs.field(factory=set)
    contexts: list[str] = attrs.field(factory=list)
    paired: bool = False
    has_model: bool = False

    @property
    def rest(self) -> list[str]:
        """The columns that are no field."""
        used = {guess.column for guess in self.by_field.values()}
        return [name for name in self.columns if name not in used]

    def column(self, field: str) -> Column | None:
        """Return the column of *field*, None if it has no column."""
        return self.columns[self.by_field[field].column] if field in self.by_field else None

    def add(self, field: str, name: str | None, why: str) -> None:
        """Take the column *name* for *field*, unless the field has a column or the user wants none for it."""
        if name is not None and field not in self.by_field and field not in self.refused:
            self.by_field[field] = Guess(name, why)

    def repeated_ids(self) -> str | None:
        """Return the column with a usual name of ids that is not the id, because an id occurs twice in it; None without such a column."""
        by_name = {_plain(name): name for name in reversed(self.rest)}
        named = (by_name[name] for name in _NAMES["id"].split() if name in by_name)
        return next((name for name in named if self.columns[name].full and self.columns[name].named), None)

    def blank_outputs(self) -> list[Column]:
        """Return the mostly blank columns that a name or texts would make the output."""
        names = {*_NAMES["output"].split()}
        columns = (self.columns[name] for name in self.rest if name not in self.contexts)
        return [column for column in columns if column.sparse and (column.prose or _plain(column.name) in names)]

    def possible_id(self) -> str | None:
        """Return the first column whose short values are unique and in every row; None without one."""
        fitting = (name for name in self.rest if name not in self.contexts and _fits("id", self.columns[name]))
        return next(
            (name for name in fitting if self.columns[name].length <= SHORT and not self.columns[name].prose), None
        )

    def likely(self) -> list[str]:
        """Return the columns that may have an input or outputs, the likeliest first, at most three."""
        columns = [self.columns[name] for name in self.rest if name not in self.contexts]
        fitting = [
            column for column in columns if _fits("output", column) and not column.objects and not column.numeric
        ]
        fitting.sort(key=lambda column: (not column.prose, column.labels or column.codes, -column.length))
        return [column.name for column in fitting[:3]]

    def option(self) -> dict[str, Any]:
        """Return the source's options of columns."""
        fields = self.fields()
        return {"fields": fields} if fields else {}

    def fields(self) -> dict[str, str]:
        """Return the source's option ``fields``, without columns that have the name of their field."""
        return {
            field: self.by_field[field].column
            for field in FIELDS
            if field in self.by_field and self.by_field[field].column != field
        }


def given_fields(texts: Iterable[str], columns: Sequence[str] | None) -> dict[str, str]:
    """Return the columns that the user names: texts such as ``output=answer``, or several of them with commas between.

    An empty column means that the field has no column. Without *columns* only the fields are checked.

    :raises ConfigError: with all wrong fields and columns.
    """
    several = re.compile(rf",(?=(?:{'|'.join((*FIELDS, 'context'))})=)")
    pairs = [part.partition("=") for text in texts for part in several.split(text)]
    problems = [_unknown_field(field, sign) for field, sign, _ in pairs if not sign or field not in FIELDS]
    if columns is not None:
        problems += [
            Problem(
                f"--fields {field}={name}: the data has no column {name!r}; it has {listed(columns)}",
                hint=nearest(name, columns),
            )
            for field, _, name in pairs
            if name and name not in columns and name.partition(".")[0] not in columns
        ]
    if problems:
        raise ConfigError(problems)
    return {field: name for field, _, name in pairs}


def listed(columns: Sequence[str]) -> str:
    """Return the names of *columns*, at most 50 of them, and the number of others."""
    names = ", ".join(map(one_comment, columns[:_NAMED])) or "none"
    return f"{names} and {len(columns) - _NAMED:,} more" if len(columns) > _NAMED else names


def _unknown_field(field: str, sign: str) -> Problem:
    if not sign:
        return Problem(f"--fields takes FIELD=COLUMN, such as output=answer, not {field!r}")
    return Problem(
        f"--fields {field}=…: there is no field {field!r}; a row has {', '.join(FIELDS)}", hint=nearest(field, FIELDS)
    )


def guess(sample: Sample, fields: Mapping[str, str], why: str = NAMED, *, has_model: bool = False) -> Guesses:
    """Return the guesses for the columns in *sample*; *fields* has the columns that the user named, by the way *why*.

    With *has_model* the user named a model, and no column becomes the output by its contents alone.
    """
    columns = sample.columns
    by_name = [field for field in FIELDS if field in columns]
    names = dict.fromkeys([*columns[:MOST_COLUMNS], *by_name, *filter(None, fields.values())])
    guesses = Guesses({name: Column.of(name, sample.rows) for name in names}, has_model=has_model)
    for field, name in fields.items():
        if name:
            guesses.by_field[field] = Guess(name, why, is_named=True)
        else:
            guesses.refused.add(field)
    for field in FIELDS:  # a source uses a column with the field's name without an option
        if field in guesses.rest:
            guesses.add(field, field, "its name")
    _pair(guesses)
    _by_names(guesses)
    _by_contents(guesses)
    return guesses


def _pair(guesses: Guesses) -> None:
    """Take two columns whose names differ in their ending as two outputs, unless the output or the reference is known."""
    if {"output", "reference"} & {*guesses.by_field, *guesses.refused}:
        return
    plain = {_plain(name): name for name in reversed(guesses.rest) if _fits("output", guesses.columns[name])}
    for (first, second), name in product(_PAIRS, plain):
        start = name.removesuffix(first)
        is_known = start.strip("_") in f"{_NAMES['output']} text".split() or (not start and len(first) > 1)
        if start != name and is_known and (other := plain.get(start + second)) is not None and not guesses.paired:
            guesses.add("output", plain[name], f"one of two outputs, next to {one_comment(repr(other))}")
            guesses.add("reference", other, "the other output")
            guesses.paired = True


def _by_names(guesses: Guesses) -> None:
    for field in ("id", "session_id", "output", "reference", "input"):
        by_name = {_plain(name): name for name in reversed(guesses.rest) if _fits(field, guesses.columns[name])}
        guesses.add(field, next((by_name[name] for name in _NAMES[field].split() if name in by_name), None), "its name")
    numbered = (name for name in guesses.rest if _plain(name).rpartition("_")[2] in _NUMBERS)
    guesses.add(
        "id", next((name for name in numbered if _fits("id", guesses.columns[name])), None), "a word in its name"
    )
    for field, words in _WORDS.items():
        fitting = [name for name in guesses.rest if set(words.split()) & set(_plain(name).split("_"))]
        if field == "context":
            guesses.contexts = fitting
        else:
            free = [name for name in fitting if name not in guesses.contexts and _fits(field, guesses.columns[name])]
            guesses.add(field, next(iter(free), None), "a word in its name")


def _key(guesses: Guesses) -> tuple[str | None, str]:
    """Return the first column and the reason, if its values are unique and short, and its name or its values look like a key."""
    name = next((name for name in guesses.columns if name not in KEPT), None)  # the sample has these before the others
    if name is not None and name in guesses.rest and _fits("id", column := guesses.columns[name]):
        if _plain(name) in _KEYS and column.length <= SHORT and not column.prose:
            return name, "its name, and its values are unique"
        if column.codes and not column.numeric and column.rows > 1:
            other = " other" * any(name in KEPT for name in guesses.columns)
            return name, f"the first{other} column, with unique codes"
    return None, ""


def _fits(field: str, column: Column) -> bool:
    """Return whether the values of *column* fit *field*."""
    if not column.everywhere:  # a source refuses rows without a column that an option names
        return False
    if field == "id":
        return column.full and column.differs and column.named
    if field == "output" and column.sparse:
        return False
    return column.named if field == "session_id" else bool(column.values)


def _by_contents(guesses: Guesses) -> None:
    free = [guesses.columns[name] for name in guesses.rest if name not in guesses.contexts]
    columns = [column for column in free if _fits("output", column) and not column.objects]
    answers = [column for column in columns if not {*_ABOUT.split()} & {*_plain(column.name).split("_")}]
    texts = [column.name for column in answers if column.prose]
    free_texts = [name for name in texts if not guesses.columns[name].labels]
    key, why = _key(guesses)
    if guesses.has_model and "output" not in guesses.by_field:
        place = "only" if len(free_texts) == 1 else "first"
        guesses.add("input", next(iter(free_texts), None), f"the {place} text of several words")
    elif "output" not in guesses.by_field and "output" not in guesses.refused:
        next_to = (
            f" next to {one_comment(repr(guesses.by_field['input'].column))}" if "input" in guesses.by_field else ""
        )
        if "input" not in guesses.by_field and len(texts) == len(free_texts) == 2:
            guesses.add("input", texts[0], "the first of two texts")
            guesses.add("output", texts[1], "the second of two texts")
        elif len(texts) == 1 and (
            next_to or all(answer.prose or answer.numeric or answer.labels for answer in answers)
        ):
            guesses.add("output", texts[0], f"the only text of several words{next_to}")
        elif len(columns) == len(answers) == 1 and columns[0].name != key:
            guesses.add("output", columns[0].name, f"the only column{next_to or ' that is left'}")
        elif "input" not in guesses.by_field and len(free_texts) == 1 and all(map(_is_no_answer, answers)):
            guesses.add("input", free_texts[0], "the only text of several words, next to numbers, labels and codes")
    elif "input" not in guesses.by_field and len(texts) == 1:
        guesses.add("input", texts[0], "the only other text of several words")
    guesses.add("id", key, why)
    _reference_by_contents(guesses)


def _is_no_answer(column: Column) -> bool:
    """Return True for texts of several words, which may be an input, and for numbers, labels and codes such as ``T-101``."""
    return column.prose or column.numeric or column.labels or column.codes


def _reference_by_contents(guesses: Guesses) -> None:
    output = guesses.column("output")
    for name in guesses.rest if output is not None else ():
        column = guesses.columns[name]
        if output and column.full and output.full and column.length <= SHORT:
            equal = sum(
                text.strip().lower() == other.strip().lower()
                for text, other in zip(column.texts, output.texts, strict=True)
            )
            if equal >= max(2, _EQUAL * column.rows):
                guesses.add("reference", name, f"it is equal to the output in {equal} of {column.rows} rows")


def _plain(name: str) -> str:
    """Return *name* in lower case, its words joined by ``_``: ``expectedAnswer`` and ``Expected answer`` are ``expected_answer``."""
    return re.sub(r"[\W_]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).strip("_").lower()
