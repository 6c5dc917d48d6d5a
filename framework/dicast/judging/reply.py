"""Reading a verdict out of the text that a model replied."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache

import attrs

from .dimensions import CONSTRAINTS
from .splice import JudgedMessage

WINNERS = ("first", "second", "tie")
"""What the key ``winner`` of a comparison may be."""

_DEPTH = 4  # containers inside each other in a verdict, itself included; deeper ones are not looked at as a whole
_BLANKS = r"[ \t\n\r]*"
_STRING = (
    r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"'  # unrolled: there is one way to match it, so it takes linear time
)
_NUMBER = r"-?(?:Infinity|(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
_START = re.compile(r'\{[ \t\n\r]*["}]')
_LOOSE = re.compile(r"[\s\\]+")
_GOES_ON = re.compile(r'[^"{\n]*"')  # the line goes on with the end of a string


class BadReply(ValueError):
    """A reply that holds no verdict. Its message says why and quotes nothing of the reply."""


@attrs.frozen
class Member:
    """One key of an object with its *value*, whose text stands from *start* to *end* in the reply."""

    key: str
    value: object
    start: int
    end: int


@attrs.frozen
class Found:
    """A JSON object in a text, from *start* to *end*: its members in order, repeated keys included."""

    members: tuple[Member, ...]
    start: int
    end: int

    def has(self, key: str, value: object) -> bool:
        """Whether *key* is there with this *value*."""
        return any(member.key == key and member.value == value for member in self.members)

    def member(self, key: str) -> Member:
        """The only member *key*.

        :raises BadReply: when there is none.
        """
        for member in self.members:
            if member.key == key:
                return member
        raise BadReply(f"the verdict has no {key!r}")

    def number(self, key: str, low: float = 0.0, high: float = 1.0) -> float:
        """The number at *key*, finite and from *low* to *high*; nothing is converted, nothing clamped.

        :raises BadReply: when it is anything else.
        """
        value = self.member(key).value
        if not isinstance(value, float) or not low <= value <= high:
            raise BadReply(f"{key!r} is no number from {low:g} to {high:g}")
        return value

    def text(self, key: str) -> str:
        """The string at *key*.

        :raises BadReply: when it is anything else.
        """
        value = self.member(key).value
        if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
            raise BadReply(f"{key!r} is no string of Unicode text")
        return value

    def flag(self, key: str) -> bool:
        """The boolean at *key*.

        :raises BadReply: when it is anything else.
        """
        value = self.member(key).value
        if not isinstance(value, bool):
            raise BadReply(f"{key!r} is neither true nor false")
        return value


def find_verdict(
    text: str, keys: Sequence[str], seal: str | None, judged: str, *, optional: Collection[str] = ()
) -> Found:
    """The object in *text* that is the verdict: the last one that bears the *seal*.

    Objects are looked for in prose and code fences too; one inside another object is none of its own. With no *seal* the
    last object with all *keys* counts that does not occur in *judged*, the message with the judged text: a model that
    echoes the text has given no verdict. Keys beside *keys* and *optional* are refused: one that was not asked for may have
    swallowed what the model wrote. Only a score, a choice or a flag is let pass, which a model adds that other judges ask too.

    :raises BadReply: when there is none, it repeats a key or has one too many, one of *keys* is missing, or the judged text
        may have written what decides.
    """
    message = JudgedMessage(judged)
    found = _sealed(text, seal) if seal is not None else _own(text, keys, message)
    names = [member.key for member in found.members]
    if len(set(names)) < len(names):
        raise BadReply("the verdict repeats a key")
    for key in keys:
        found.member(key)
    if any(_may_swallow(member, found, seal) for member in found.members if member.key not in {*keys, *optional}):
        raise BadReply("the verdict has a key that was not asked for")
    _refuse_splice(text, found, message)
    return found


def _may_swallow(member: Member, found: Found, seal: str | None) -> bool:
    """Whether a key that was not asked for may hold what the model wrote; a number, a flag or a choice of a verdict cannot."""
    if member.key == "seal":
        return member.value != seal and member != found.members[0]
    if member.key == "winner":
        return member.value not in WINNERS
    return member.key not in ("score", CONSTRAINTS) or not isinstance(member.value, float | bool)


def _refuse_splice(text: str, found: Found, message: JudgedMessage) -> None:
    """Refuse a verdict whose deciding values the judged text may have written.

    A model that copies the text into its rationale without escaping it lets a quote in there end the rationale, and what
    follows be more keys. Where the rationale comes last, as it is asked for, all others are written by then: another score
    repeats a key. Where it comes earlier, the value after it is refused that stands in the judged text after the same word.
    """
    if found.members[0].key != "seal" and _has_copied_head(text, found, message):
        raise BadReply("the verdict begins as one in the judged text does")
    rationale = next((member for member in found.members if member.key == "rationale"), None)
    after = next((member for member in found.members if rationale and member.start > rationale.start), None)
    if rationale is None or after is None:
        return
    quoted, piece = text[rationale.start + 1 : rationale.end - 1], text[rationale.end - 1 : after.end]
    least = len(_LOOSE.sub("", text[rationale.end - 1 : after.start])) + 1
    if _GOES_ON.match(text, found.end) or message.ends(quoted, piece, least):
        raise BadReply("the judged text ends the verdict; text that is quoted in a string must be escaped")


def _keyed_fault(text: str, keys: Sequence[str]) -> str:
    """Return the reason why no object in *text* has all *keys*."""
    found = [*objects(text)]
    if not found:
        return _json_fault(text)
    names = {member.key for member in found[-1].members}
    return f"the object has no {', '.join(repr(key) for key in keys if key not in names)}"


def _sealed(text: str, seal: str) -> Found:
    found = [one for one in objects(text, holding=seal) if one.has("seal", seal)]
    if not found:
        raise BadReply(f"it holds no JSON object with the seal of this call: {_sealed_fault(text)}")
    return found[-1]


def _sealed_fault(text: str) -> str:
    """Return the reason why *text* has no sealed object, in words that quote nothing of it."""
    found = [*objects(text)]
    if not found:
        return _json_fault(text)
    sealed = [one for one in found if any(member.key == "seal" for member in one.members)]
    return "its seal is another one" if sealed else "the object has no 'seal'"


def _json_fault(text: str) -> str:
    """Return the reason why no JSON object can be read in *text*, with the place of the first error."""
    begin = _START.search(text)
    start = text.find("{") if begin is None else begin.start()
    if start < 0:
        return "there is no JSON object in it"
    try:
        _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        what = error.msg.partition(":")[0].removesuffix(" at").removesuffix(" starting")
        return f"the JSON is broken at line {error.lineno}, column {error.colno} (character {error.pos + 1} of {len(text)}: {what})"
    except RecursionError:
        pass
    return f"the object has more than {_DEPTH} levels"


def _own(text: str, keys: Sequence[str], message: JudgedMessage) -> Found:
    complete = [one for one in objects(text) if {member.key for member in one.members}.issuperset(keys)]
    if not complete:
        raise BadReply(f"it holds no JSON object with {', '.join(keys)}: {_keyed_fault(text, keys)}")
    loose = _LOOSE.sub("", message.message)
    quoted = {_essence(one, keys) for one in _everywhere(message.message)}
    for one in reversed(complete):
        if _essence(one, keys) in quoted or _LOOSE.sub("", text[one.start : one.end]) in loose:
            continue
        if not _has_copied_head(text, one, message):
            return one
    raise BadReply("it only repeats what stands in the judged text")


def _has_copied_head(text: str, found: Found, message: JudgedMessage) -> bool:
    """Whether the object begins as one in the judged text does, with a value that decides; its own seal is no such value."""
    first = next((member for member in found.members if member.key != "seal"), None)
    if first is None or first.key == "rationale":
        return False
    return message.holds(text[found.start : first.end])


def _essence(found: Found, keys: Sequence[str]) -> tuple[object, ...]:
    """What makes two verdicts the same one: the values of *keys*, however they are written."""
    values = {member.key: member.value for member in found.members}
    return tuple(" ".join(value.split()) if isinstance(value := values.get(key), str) else value for key in keys)


def objects(text: str, holding: str = "") -> Iterator[Found]:
    """The JSON objects in *text* that stand in no other one, in order, as far as they can be read.

    Only those whose text has *holding* in it are read. The time taken grows with the length of the text, whatever it holds.
    """
    object_ = _patterns()["object"]
    at = _START.search(text)
    while at:
        whole = object_.match(text, at.start())
        if whole and holding in whole[0] and (found := _read(text, whole.start(), whole.end())):
            yield found
        at = _START.search(text, whole.end() if whole else at.start() + 1)


def _everywhere(text: str) -> Iterator[Found]:
    """Every JSON object in *text*: also those in others, and in the strings of others."""
    object_ = _patterns()["object"]
    for at in _START.finditer(text):
        whole = object_.match(text, at.start())
        found = _read(text, whole.start(), whole.end()) if whole else None
        if found:
            yield found
            for inner in _strings([member.value for member in found.members]):
                yield from _everywhere(inner)


def _strings(values: Sequence[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str) and "{" in value:
            yield value
        elif isinstance(value, tuple):
            yield from _strings(value)


def _read(text: str, start: int, end: int) -> Found | None:
    """The object from *start* to *end*; None when it is not JSON after all (an unknown escape)."""
    try:
        members = tuple(
            Member(str(_decode(one["key"])), _decode(one["value"]), one.start("value"), one.end("value"))
            for one in _patterns()["member"].finditer(text, start + 1, end)
        )
    except ValueError:
        return None
    return Found(members, start, end)


_DECODER = json.JSONDecoder(parse_int=float)


def _decode(text: str) -> object:
    """The value of JSON text, numbers as floats (of any length, without Python's limit on digits), containers hashable."""
    return _plain(_DECODER.decode(text))


def _plain(value: object) -> object:
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    return tuple(sorted(value)) if isinstance(value, dict) else value


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """An object of no more than ``_DEPTH`` levels, and a member of one; compiled when the first reply is read."""
    value = scalar = f"{_STRING}|{_NUMBER}|NaN|true|false|null"
    for _ in range(_DEPTH - 1):
        value = f"{scalar}|{_items(value, '[', ']')}|{_items(_member(value), '{', '}')}"
    named = f"(?P<key>{_STRING}){_BLANKS}:{_BLANKS}(?P<value>{value}){_BLANKS},?"
    return {"object": re.compile(_items(_member(value), "{", "}")), "member": re.compile(named)}


def _member(value: str) -> str:
    return f"{_STRING}{_BLANKS}:{_BLANKS}(?:{value})"


def _items(item: str, opening: str, closing: str) -> str:
    """Items between brackets, with commas between them and none after the last."""
    comma = f"(?:,{_BLANKS}(?!\\{closing})|(?=\\{closing}))"
    return f"\\{opening}{_BLANKS}(?:(?:{item}){_BLANKS}{comma})*\\{closing}"
