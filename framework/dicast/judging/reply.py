"""The verdict in the text of a model's reply."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from .dimensions import CONSTRAINTS
from .json_faults import first_fault, place
from .objects import DEPTH, START, BadReply, Member, ReplyObject, nested_objects, objects
from .splice import JudgedMessage

WINNERS = ("first", "second", "tie")
"""The values of the key ``winner`` of a comparison."""

_LOOSE = re.compile(r"[\s\\]+")
_GOES_ON = re.compile(r'[^"{\n]*"')
"""The rest of a string after an object: its end on the same line."""
_GOES_ON_LATER = re.compile(r'[^"{]*"[ \t\n\r]*[,}]')
"""The rest of a string after an object, on any line, for a model that writes line breaks into strings."""

_TRIED = 8
"""The most objects that are searched for an error."""


def find_verdict(
    text: str, keys: Sequence[str], seal: str | None, judged: str, *, optional: Collection[str] = ()
) -> ReplyObject:
    """Return the object in *text* that is the verdict: the last object with the *seal*.

    Prose and code fences around it are allowed; an object inside another object does not count. In a sealed object, line breaks and tabs
    in strings and a comma after the last member are allowed. Without *seal*, the last object with all *keys* counts that does not occur
    in *judged*, the message with the judged text: a model that repeats the text has given no verdict.

    A key other than *keys* and *optional* is refused: its value may contain a part of the verdict. A score, a choice or a flag
    is allowed, since models add them for other judges' forms.

    :raises BadReply: if there is no verdict, it repeats a key or has an unknown key, one of *keys* is missing, or the judged text
        may have written a value that decides.
    """
    message = JudgedMessage(judged)
    verdict = _sealed(text, seal) if seal is not None else _unsealed(text, keys, message)
    names = [member.key for member in verdict.members]
    for number, member in enumerate(verdict.members):
        if member.key in names[:number]:
            raise BadReply(f"the verdict repeats a key; the second value is at {place(text, member.start)}")
    for key in keys:
        verdict.member(key)
    for member in verdict.members:
        if member.key not in {*keys, *optional} and _may_swallow(member, verdict, seal):
            raise BadReply(f"the verdict has a key that was not asked for; its value is at {place(text, member.start)}")
    _refuse_splice(text, verdict, message)
    return verdict


def _may_swallow(member: Member, verdict: ReplyObject, seal: str | None) -> bool:
    """Return whether a key that was not asked for may contain a part of the verdict; a number, a flag or a choice cannot."""
    if member.key == "seal":
        return member.value != seal and member != verdict.members[0]
    if member.key == "winner":
        return member.value not in WINNERS
    return member.key not in ("score", CONSTRAINTS) or not isinstance(member.value, float | bool)


def _refuse_splice(text: str, verdict: ReplyObject, message: JudgedMessage) -> None:
    """Refuse a verdict whose deciding values the judged text may have written.

    If a model copies the text into its rationale without escaping it, a quotation mark in the text ends the rationale, and the rest of
    the text becomes keys. If the rationale comes last, as the prompt asks, all other keys are written before it: another score
    repeats a key. If it comes earlier, the value after it is refused if the judged text has it after the same word.
    """
    if verdict.members[0].key != "seal" and _has_copied_head(text, verdict, message):
        raise BadReply("the verdict begins as one in the judged text does")
    rationale = next((member for member in verdict.members if member.key == "rationale"), None)
    after = next((member for member in verdict.members if rationale and member.start > rationale.start), None)
    if rationale is None or after is None:
        return
    quoted, piece = text[rationale.start + 1 : rationale.end - 1], text[rationale.end - 1 : after.end]
    least = len(_LOOSE.sub("", text[rationale.end - 1 : after.start])) + 1
    goes_on = _GOES_ON.match(text, verdict.end) or ("\n" in quoted and _GOES_ON_LATER.match(text, verdict.end))
    if goes_on or message.ends(quoted, piece, least):
        raise BadReply("the judged text ends the verdict; text that is quoted in a string must be escaped")


_SEAL_MEMBER = re.compile(r'"seal"\s*:\s*"([^"]*)"')


def _sealed(text: str, seal: str) -> ReplyObject:
    """Return the last object with the *seal*; an object with line breaks in strings, or a comma after the last member, counts too.

    :raises BadReply: if there is none, or if a later object with the seal cannot be read.
    """
    verdicts = [candidate for candidate in objects(text, holding=seal, lenient=True) if candidate.has("seal", seal)]
    if not verdicts:
        raise BadReply(f"it holds no JSON object with the seal of this call: {_sealed_fault(text, seal)}")
    # Each seal is new: a pattern with it would be compiled for each reply.
    rest = _SEAL_MEMBER.finditer(text, verdicts[-1].end)
    later = next((member for member in rest if member[1] == seal), None)
    if later is not None:
        raise BadReply(f"it holds another object with the seal after the verdict: {_broken(text, later.start())}")
    return verdicts[-1]


def _sealed_fault(text: str, seal: str) -> str:
    """Return the reason why *text* has no sealed object, without quoting the text."""
    at = text.rfind(seal) if seal else -1
    items = [*objects(text, lenient=True)]
    members = [member for item in items for member in item.members]
    if at >= 0:
        around = [member for member in members if member.start <= at < member.end]
        if not around:
            return _broken(text, at)
        if around[0].value == seal:
            return "the object has the seal under another key than 'seal'"
        is_text = isinstance(around[0].value, str)
        return "the seal is part of a longer string" if is_text else "the object with the seal is inside another object"
    if not items:
        return _broken(text, 0)
    is_sealed = any(member.key == "seal" for member in members)
    return "its seal is another one" if is_sealed else "the object has no 'seal'"


def _broken(text: str, near: int) -> str:
    """Return the first error of the object around the index *near*, else of the first object in *text*, with its place."""
    starts = [match.start() for match in START.finditer(text)]
    before = [at for at in starts if at <= near][-_TRIED:] or starts[:1] or [text.find("{")]
    if before[0] < 0:
        return "there is no JSON object in it"
    faults = (first_fault(text, start, DEPTH) for start in reversed(before))
    fault = next(filter(None, faults), None)
    if fault is None:
        return f"the objects before {place(text, near)} do not contain it"
    return f"the JSON is broken at {place(text, fault.at)}: {fault.problem}"


def _keyed_fault(text: str, keys: Sequence[str]) -> str:
    """Return the reason why no object in *text* has all *keys*."""
    items = [*objects(text)]
    if not items:
        return _broken(text, 0)
    names = {member.key for member in items[-1].members}
    return f"the object has no {', '.join(repr(key) for key in keys if key not in names)}"


def _unsealed(text: str, keys: Sequence[str], message: JudgedMessage) -> ReplyObject:
    complete = [
        candidate for candidate in objects(text) if {member.key for member in candidate.members}.issuperset(keys)
    ]
    if not complete:
        raise BadReply(f"it holds no JSON object with {', '.join(keys)}: {_keyed_fault(text, keys)}")
    loose = _LOOSE.sub("", message.message)
    quoted = {_essence(candidate, keys) for candidate in nested_objects(message.message)}
    for candidate in reversed(complete):
        if _essence(candidate, keys) in quoted or _LOOSE.sub("", text[candidate.start : candidate.end]) in loose:
            continue
        if not _has_copied_head(text, candidate, message):
            return candidate
    raise BadReply("it only repeats an object of the judged text")


def _has_copied_head(text: str, candidate: ReplyObject, message: JudgedMessage) -> bool:
    """Return True if the object starts like an object in the judged text, with a deciding value. The seal is not such a value."""
    first = next((member for member in candidate.members if member.key != "seal"), None)
    if first is None or first.key == "rationale":
        return False
    return message.holds(text[candidate.start : first.end])


def _essence(candidate: ReplyObject, keys: Sequence[str]) -> tuple[object, ...]:
    """Return the values of *keys* independently of their notation; two verdicts with equal values are the same verdict."""
    values = {member.key: member.value for member in candidate.members}
    return tuple(" ".join(value.split()) if isinstance(value := values.get(key), str) else value for key in keys)
