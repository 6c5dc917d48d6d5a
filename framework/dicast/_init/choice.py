"""Metrics and a gate for the columns of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import attrs

from .._kernel.contract.registry import Registry
from ..toolkit.installing import how_to_install
from .columns import LONG, SHORT, Column
from .guesses import Guesses
from .local import Local, short_judge, short_pairwise
from .written import FileSection, one_comment

PASS_RATE, FORM_RATE = 0.8, 0.95

_ASSERTIONS = ("assert", "asserts", "assertions", "checks")
_LONGER = 2
"""An output of at least this many times the length of the reference has more text than the answer."""

_PHRASES = ["as an AI language model", "lorem ipsum"]
_ALIKE = 0.7


@attrs.frozen
class Choice:
    """The *sections* of the file that judge, described by *how* in a few words.

    With *makes* a task makes the outputs; with *asks* a model is asked.
    """

    sections: Sequence[FileSection]
    how: str
    makes: bool = False
    asks: bool = False


@attrs.frozen
class _Judged:
    """Metrics with their comments in the file."""

    metrics: Sequence[Any]
    how: str
    comments: Sequence[str]
    pass_at: float | None = None
    rate: float = PASS_RATE
    asks: bool = False


Model = str | Local
"""A model: its name at a provider, or a model in this process."""


def model_of(model: Model) -> dict[str, Any]:
    """Return the component of *model*. For a name it is ``litellm/chat`` if the name is PROVIDER/MODEL, ``anthropic/chat`` if it begins with
    ``claude``, else ``openai/chat``.
    """
    if isinstance(model, Local):
        return model.component
    kind = "litellm/chat" if "/" in model else "anthropic/chat" if model.startswith("claude") else "openai/chat"
    return {kind: {"model": model}}


def for_turns(source: str) -> Choice:
    """Return the sections that judge each turn of conversations."""
    comments = [
        "heuristic/turn scores each turn without a model: by its end, its failed tools, its texts, and recorded thumbs, retries and",
        "edits. A turn fails that ends with a failed call of the model, or that the user stopped; few others do. It does not understand",
        "the user's next message. To ask a model where the heuristic is unsure: hybrid/cascade with heuristic/turn and llm/judge.",
    ]
    gate = _gate({"on": "heuristic/turn", "min_pass_rate": PASS_RATE}, "turn")
    return Choice(
        [FileSection({"judges": ["heuristic/turn"]}, comments), gate],
        f"each turn of the conversations ({source}), by heuristic/turn",
    )


def for_rows(guesses: Guesses, model: Model | None) -> Choice:
    """Return the sections that judge rows: by their own assertions, a reference, or the output alone."""
    makes = "output" not in guesses.by_field
    judged = _judged(guesses, model, makes=makes)
    sections = []
    if model is not None and (makes or judged.asks):
        why = [
            "Its key is in the provider's environment variable: OPENAI_API_KEY, ANTHROPIC_API_KEY …",
            "For another endpoint add base_url: https://HOST/v1, for another key api_key: ${NAME}, and for a model without a list price a price.",
        ]
        if isinstance(model, Local):
            why = [
                "It runs in this process: no key, no network, no cost. On a slow machine give the judge a longer timeout."
            ]
        sections.append(FileSection({"define": {"asked": model_of(model)}}, why))
    if makes:
        sections.append(_task(guesses, model))
    sections.append(FileSection({"metrics": judged.metrics}, judged.comments))
    scoring = {"combine": "truth"} | ({} if judged.pass_at is None else {"pass_at": judged.pass_at})
    if len(judged.metrics) > 1 or judged.pass_at is not None:
        sections.append(FileSection({"scoring": scoring}, _about_scoring(judged)))
    gate = _gate({"min_pass_rate": judged.rate}, "row")
    return Choice([*sections, gate], judged.how, makes, judged.asks or makes)


def _judged(guesses: Guesses, model: Model | None, *, makes: bool) -> _Judged:
    assertions = next((name for name in _ASSERTIONS if name in guesses.rest), None)
    output, reference = guesses.column("output"), guesses.column("reference")
    if assertions is not None and installed("check/assertions"):
        option = {} if assertions == "assert" else {"column": assertions}
        about = [
            f"Each row's own list of checks, in column {_quoted(assertions)}: a row passes if all of its checks pass."
        ]
        return _Judged(
            [{"check/assertions": option} if option else "check/assertions"], "each row's own checks", about, 1.0
        )
    if guesses.paired:
        return _paired(guesses, model)
    if reference is not None and reference.values:
        return _compared(output, reference, model)
    if model is not None and installed("llm/judge"):
        return _by_model(
            guesses, ["The output answers what the input asks.", "It invents nothing."], "by a model", model
        )
    return _formal(output, makes=makes)


def _paired(guesses: Guesses, model: Model | None) -> _Judged:
    """Return the comparison of two outputs by a model; without a model, a check of the form of the first."""
    first, second = (_quoted(guesses.by_field[field].column) for field in ("output", "reference"))
    about = [
        f"Which is better, {first} or {second}? A model compares them in both orders: 1 means the first is better, 0.5 a tie."
    ]
    if model is not None and installed("llm/pairwise"):
        how = "which of two outputs is better, by a model"
        judge = short_pairwise() if isinstance(model, Local) else {"llm/pairwise": {"model": "asked"}}
        return _Judged([judge], how, about, 0.5, asks=True)
    about.append("No model was named (dicast init DATA --model NAME), so only the form of the first is checked.")
    return _Judged(["proxy/format"], "the first of two outputs, by its form alone", about, 1.0, FORM_RATE)


def _compared(output: Column | None, reference: Column, model: Model | None) -> _Judged:
    """Return the comparison of the output with the reference that fits the values of *reference*."""
    against = f"the output against column {_quoted(reference.name)}"
    seen = f"{_quoted(reference.name)} has {{}} (about {reference.length:.0f} characters)"
    longer = output is None or output.length >= max(_LONGER * reference.length, reference.length + 10)
    if reference.numeric and (output is None or output.numeric):
        about = [
            f"{_quoted(reference.name)} has numbers: equal within rel_tol 1e-9; set abs_tol or rel_tol to allow more."
        ]
        return _Judged(["diff/numeric"], f"{against}, as numbers", about)
    if reference.json:
        about = [
            f"{seen.format('JSON')}: compared value by value, with keys in any order; ignore: [PATH] excludes places."
        ]
        return _Judged([{"proxy/format": {"require_json": True}}, "diff/json"], f"{against}, as JSON", about, 1.0)
    if isinstance(model, Local) and installed("llm/judge"):
        return _by_model(None, _AGREES, f"{against}, by a model", model)
    if reference.length <= SHORT and longer and installed("check/contains"):
        about = [
            f"{seen.format('short texts')}{', the outputs are longer' if output else ''}: an output is right if it contains its reference, in upper or lower case."
        ]
        value = "{{ reference }}"
        return _Judged(
            [{"check/icontains": {"value": value}}],
            f"the output must contain the text of column {_quoted(reference.name)}",
            about,
        )
    if reference.length < LONG and not longer:
        about = [
            f"{seen.format('labels' if reference.labels else 'short texts')}: an output is right if its words equal the reference's; white space is ignored.",
            "To ignore case: check/equals: {ignore_case: true}",
        ]
        return _Judged(["diff/match"], f"{against}, for equal words", about, 1.0)
    if model is not None and installed("llm/judge"):
        return _by_model(None, _AGREES, f"{against}, by a model", model)
    if find_spec("rapidfuzz"):
        about = [
            f"{seen.format('texts')}: compared by the similarity of their letters, which ignores meaning:",
            *_MODEL_HINT,
        ]
        return _Judged(["diff/similarity"], f"{against}, by similarity", about, _ALIKE)
    about = [
        f"{seen.format('texts')}: compared by the share of equal words in the same order, which ignores meaning:",
        *_MODEL_HINT,
        f"Or compare letters: {how_to_install('similarity')}, then diff/similarity.",
    ]
    return _Judged(["diff/match"], f"{against}, by equal words", about, 0.5)


_MODEL_HINT = ("To judge by a model instead, which costs money for each row: dicast init DATA --model NAME.",)


_WEAK = [
    "A base model, without training to follow instructions, may decide by chance and fail an output that equals its reference.",
    "Compare its verdicts with labels of yours before you rely on them: dicast label, then dicast agreement.",
]
"""Advice for users of a small judge before its first verdict."""

_AGREES = ["The output says what the reference says.", "It adds nothing that contradicts the reference."]


def _by_model(guesses: Guesses | None, criteria: list[str], how: str, model: Model) -> _Judged:
    if isinstance(model, Local):
        context = [] if guesses is None else list(guesses.contexts)
        comments = [
            "The model answers with one word, yes or no; the probability of yes is the score. Give it examples from your own data:",
            "four to eight, as many yes as no. A small model can compare outputs with a reference, but cannot judge open questions.",
        ]
        if guesses is None:
            comments += _WEAK
        judge = short_judge(criteria, context, has_reference=guesses is None)
        return _Judged(["proxy/format", judge], how, comments, 0.5, asks=True)
    return _asked_for_numbers(guesses, criteria, how)


def _asked_for_numbers(guesses: Guesses | None, criteria: list[str], how: str) -> _Judged:
    context = {} if guesses is None or not guesses.contexts else {"context": guesses.contexts}
    judge = {"llm/judge": {"model": "asked", "criteria": criteria} | context}
    comments = ["The model judges each row with an output. Write your own criteria, one sentence each."]
    return _Judged(["proxy/format", judge], how, comments, _ALIKE, asks=True)


def _formal(output: Column | None, *, makes: bool) -> _Judged:
    is_json = output is not None and output.json
    comments = [
        "There is no reference, so only the form of the outputs is checked: not empty, "
        + ("JSON." if is_json else "none of these phrases."),
        "Add a column with the expected outputs (--fields reference=COLUMN), or a model as judge (--model NAME):",
        "  - llm/judge: {model: {openai/chat: {model: NAME}}, criteria: [answers the question, invents nothing]}",
    ]
    form: list[Any] = (
        [{"proxy/format": {"require_json": True}}]
        if is_json
        else ["proxy/format", {"proxy/keywords": {"forbidden": _PHRASES}}]
    )
    how = "nothing yet: no column has outputs" if makes else "by form alone"
    return _Judged(form, how, comments, 1.0, PASS_RATE if makes else FORM_RATE)


def _task(guesses: Guesses, model: Model | None) -> FileSection:
    """Return the task that makes the outputs; without a *model*, as an example in a comment."""
    tasks = {"prompt/chat": {"model": "asked" if model else {"openai/chat": {"model": "NAME"}}, "user": "{{ input }}"}}
    if model is not None:
        return FileSection(
            {"task": tasks},
            ["No column has outputs: the model writes them. Write your prompt here; {{ NAME }} is a column."],
        )
    why = [
        "No column has outputs, and no model was named (--model NAME). A task must write outputs before they can be judged."
    ]
    return FileSection(
        {"task": tasks}, [*why, "To use this task, remove the comment marks of its lines:"], active=False
    )


def _gate(clause: Mapping[str, Any], kind: str) -> FileSection:
    rate = clause["min_pass_rate"]
    comments = [
        f"The run fails (exit code 1) if fewer than {rate:.0%} of the {kind}s pass. This number is a start, not measured on your",
        f"data: adjust it. If fewer than 95% of the {kind}s could be judged, the run is undecided (exit code 3).",
    ]
    return FileSection({"gate": {**clause, "min_coverage": 0.95}}, comments)


def _about_scoring(judged: _Judged) -> list[str]:
    about = []
    if judged.pass_at is not None:
        about.append(f"A row passes with a score of {judged.pass_at:g} or more.")
    if len(judged.metrics) > 1:
        about.append("combine: truth leaves the cheap checks out of the score of rows that pass them.")
    return about


def installed(name: str) -> bool:
    """Return whether the component's plugin is installed."""
    return name.partition("/")[0] in Registry().scan()


def _quoted(name: str) -> str:
    return one_comment(repr(name))
