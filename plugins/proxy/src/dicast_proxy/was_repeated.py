"""Has the same call been made before?"""

from __future__ import annotations

import importlib.util
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import attrs

from dicast import ConfigError, Failure, Score, Subject
from dicast.toolkit.installing import how_to_install
from dicast.toolkit.json_values import MISSING, check_field, locate, lookup

from .calls import Call, as_call, calls_of, canonical, parsed

_HISTORY = "execution_history"
_STEP = f"step {{}} of the {_HISTORY}"
_LISTED = 20  # repeated calls in the signals
_COMPARED = 20_000  # characters of params: nearness of longer ones would take seconds
_PAIRS = 10**10  # of characters, compared without a pause: a fraction of a second

Key = tuple[str | tuple[str], str]
"""A call's tool and params in canonical form; a tool that is no text is in a tuple."""


def _check_similarity(_instance: object, _attribute: object, similarity: float) -> None:
    if not 0.0 < similarity <= 1.0:
        raise ConfigError(f"similarity is {similarity}; it is above 0 and at most 1, which asks for equal params")


@attrs.frozen
class _Repeat:
    """That a call *repeats* an earlier step, and how like the two are."""

    repeats: str
    similarity: float = 1.0


@attrs.frozen
class WasRepeated:
    """1 if a tool call is new, 0 if the same tool was called with the same params before.

    The output is the call, ``{tool, params}``, and ``execution_history`` lists the calls before it: in the input object, else
    in the context; without it there are no earlier calls. A tool cycle of a trace is the call in its input. Its source adds
    the history with the option ``history``; without the history the result is a Failure ``missing_input``. Calls are the same if their
    params are equal JSON values: the order of keys, ``1`` or ``1.0`` and the normal form of Unicode do not matter; ``1``,
    ``"1"`` and ``true`` are different. For an output that lists calls, and for a turn or session of a trace, each call is
    compared with the earlier calls: the score is the share of new calls, and 1 without any call.

    :param similarity: the similarity of the params from which a call of the same tool counts as the same, above 0 and up to 1:
        1 less the edit distance (Levenshtein) of their canonical JSON as a share of the longer text. 1: only equal params.
    :param field: the call is at this place in the output, a dotted path (``steps.0``) or a JSON pointer (``/steps/0``); text
        is read as JSON to get there.
    """

    name = "was_repeated"
    tier = "proxy"

    similarity: float = attrs.field(default=1.0, validator=_check_similarity)
    field: str | None = attrs.field(default=None, validator=check_field)

    def __attrs_post_init__(self) -> None:
        if self.similarity < 1.0 and importlib.util.find_spec("rapidfuzz") is None:
            needed = "similarity below 1 needs rapidfuzz, which is not installed"
            raise ConfigError(f"{needed}: {how_to_install('similarity')}")

    def score(self, subject: Subject) -> Score | Failure:
        """Look for the call, or the calls, of *subject* among those before."""
        calls = calls_of(subject, self.field)
        history = _history(subject)
        if history is MISSING and calls.single and subject.kind == "tool_cycle":
            message = f"tool_cycle {subject.id!r} has no {_HISTORY}: its source gives it with history: true"
            return Failure("missing_input", message)
        steps = () if history is MISSING else history
        if not isinstance(steps, list | tuple):
            message = f"the {_HISTORY} of {subject.kind} {subject.id!r} is {type(steps).__name__}, not a list of calls"
            return Failure("missing_input", message)
        if calls.absence is not None:
            signals = {"was_repeated": False, "steps": len(steps)}
            return Score(1.0, details=f"{calls.absence}, so that it repeats none", signals=signals)
        try:
            return self._score_single(calls.calls[0], steps) if calls.single else self._score_each(calls.calls, steps)
        except ValueError as error:
            return Failure("missing_input", f"{subject.kind} {subject.id!r}: {error}")

    def _score_single(self, call: Call, steps: Sequence[object]) -> Score:
        key, seen = _key(call), _Seen(self.similarity)
        for number, earlier in _earlier(steps):
            if earlier == key:
                return _scored(call, _Repeat(f"step {number}"), len(steps))
            if self.similarity < 1.0:
                seen.add(earlier, number)
        near = seen.likest(key)
        return _scored(call, None if near is None else _Repeat(f"step {near[0]}", near[1]), len(steps))

    def _score_each(self, calls: Sequence[Call], steps: Sequence[object]) -> Score:
        """Judge each call by those before it; every one is looked at once."""
        seen, before = _Seen(self.similarity), len(steps)
        for number, earlier in _earlier(steps):
            seen.add(earlier, number)
        repeated = list[tuple[int, Call, _Repeat]]()
        for number, call in enumerate(calls, 1):
            repeat = seen.meet(_key(call, "call {}", number), before + number)
            if repeat is not None:
                place = repeat[0] - before
                step = f"step {repeat[0]}" if place <= 0 else f"call {calls[place - 1].place(place)}"
                repeated.append((number, call, _Repeat(step, repeat[1])))
        return _share(len(calls), repeated)


class _Seen:
    """The calls that were made before, each with the number of the step that made it first."""

    def __init__(self, similarity: float) -> None:
        self._similarity = similarity
        self._steps: dict[Key, int] = {}
        self._texts: dict[str | tuple[str], tuple[list[str], list[int]]] = {}  # by tool: the params, and their steps

    def add(self, key: Key, step: int) -> None:
        """Remember a call that was made as *step*."""
        if self._steps.setdefault(key, step) == step and self._similarity < 1.0:
            self._keep(key, step)

    def meet(self, key: Key, step: int) -> tuple[int, float] | None:
        """Return the step with the same call, or with the most similar call, and their similarity; then remember this call as *step*."""
        first = self._steps.setdefault(key, step)
        if first != step:
            return first, 1.0
        if self._similarity == 1.0:
            return None
        nearest_key = self.likest(key)
        self._keep(key, step)
        return nearest_key

    def likest(self, key: Key) -> tuple[int, float] | None:
        """Return the first step with the most similar call, and their similarity; None if no call is similar enough."""
        tool, params = key
        if tool not in self._texts or len(params) > _COMPARED:
            return None
        from rapidfuzz import process  # 12 MB, and only nearness needs it
        from rapidfuzz.distance import Levenshtein

        texts, steps = self._texts[tool]
        best, least = None, self._similarity
        size = max(1, _PAIRS // (_COMPARED * len(params)))
        for start in range(0, len(texts), size):  # in between a timer can end it
            some = texts[start : start + size]
            nearest_key = process.extractOne(params, some, scorer=Levenshtein.normalized_similarity, score_cutoff=least)
            if nearest_key is not None and (best is None or nearest_key[1] > least):
                best, least = steps[start + nearest_key[2]], nearest_key[1]
        return None if best is None else (best, least)

    def _keep(self, key: Key, step: int) -> None:
        tool, params = key
        if len(params) <= _COMPARED:
            texts, steps = self._texts.setdefault(tool, ([], []))
            texts.append(params)
            steps.append(step)


def _history(subject: Subject) -> object:
    """Return the earlier calls in the input, else in the context; MISSING if neither has them."""
    history = MISSING if subject.input is None else locate(subject.input, _HISTORY)
    if history is MISSING:
        history = lookup(subject.context, _HISTORY)
    return parsed(history) if isinstance(history, str) else history


def _earlier(steps: Sequence[object]) -> Iterable[tuple[int, Key]]:
    """Yield the calls among *steps*, each with its number. A step that is no call is skipped."""
    for number, item in enumerate(steps, 1):
        call = as_call(item)
        if call is not None:
            yield number, _key(call, _STEP, number)


def _key(call: Call, where: str = "the call", number: int | None = None) -> Key:
    """Return the call in canonical form; missing params are null, or replaced by their recorded hash."""
    tool, params, _, digest = call
    if digest is not None:
        params = {"input_hash": digest}
    try:
        if not isinstance(tool, str):
            named: str | tuple[str] = (canonical(None if tool is MISSING else tool),)
        else:
            named = tool if tool.isascii() else unicodedata.normalize("NFC", tool)
        return named, canonical(None if params is MISSING else params)
    except ValueError as error:
        place = where if number is None else where.format(number)
        raise ValueError(f"{place} is not JSON that can be compared: {error}") from error


def _scored(call: Call, repeat: _Repeat | None, steps: int) -> Score:
    signals: dict[str, object] = {"was_repeated": repeat is not None, "steps": steps}
    if repeat is None:
        return Score(1.0, signals=signals)
    signals |= {"repeats": repeat.repeats, "similarity": repeat.similarity}
    return Score(0.0, details=f"{call.named} {_details(repeat)} of {steps}", signals=signals)


def _details(repeat: _Repeat) -> str:
    verb = "repeats" if repeat.similarity == 1.0 else f"repeats nearly ({repeat.similarity:.2f})"
    return f"{verb} {repeat.repeats}"


def _share(calls: int, repeated: Sequence[tuple[int, Call, _Repeat]]) -> Score:
    """Return the score of several calls, with the repeated calls in its signals."""
    signals: dict[str, object] = {"calls": calls, "was_repeated": len(repeated)}
    if not repeated:
        return Score(1.0, details="" if calls else "there are no tool calls", signals=signals)
    number, call, repeat = repeated[0]
    details = (
        f"{len(repeated)} of {calls} calls were made before; call {call.place(number)}: {call.named} {_details(repeat)}"
    )
    signals["repeated"] = [_listed(*entry) for entry in repeated[:_LISTED]]
    return Score((calls - len(repeated)) / calls, details=details, signals=signals)


def _listed(number: int, call: Call, repeat: _Repeat) -> Mapping[str, object]:
    named = {"call": call.place(number), "tool": call.named}
    return {**named, "repeats": repeat.repeats, "similarity": repeat.similarity}
