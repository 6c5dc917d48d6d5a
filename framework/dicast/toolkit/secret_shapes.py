"""Shapes of secrets and personal data in text: keys and tokens by their documented forms, and four kinds of personal data.

The expressions are in the syntax of RE2 and have a linear running time. A shape is a core expression, the characters that may not
be next to it, and a check in Python where the form alone is not enough.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from .._kernel.classes import frozen

_WORD = rb"[A-Za-z0-9_]"
_TOKEN = rb"[A-Za-z0-9_-]"
_NUMBER = rb"[A-Za-z0-9_]|[.-][0-9]"
_ANY = rb"[^\s\S]"
"""No byte."""

_ESCAPES = (b"\\n", b"\\r", b"\\t")
_EDGE = r"(?:^|[^A-Za-z0-9_]|\\(?:[bfnrt]|u00[0-9a-f]{2}))"
"""The text before a number: no word, or an escape of JSON."""

_END = r"(?:[^A-Za-z0-9_]|$)"


@frozen
class Shape:
    """A *kind* of secret with the *pattern* of its texts.

    Group 1 of the pattern, if it has one, is the secret. *before* and *after* are expressions of the bytes that may not be next to the match.
    *check* returns whether a text that matches is of this kind. *literal* is False for shapes that ordinary text often has. *clue* is an
    expression that matches in every text with the shape, and in its JSON; by default the pattern. Long repetitions and many starts make the
    expression of all shapes slow, so a clue avoids them.
    """

    kind: str
    pattern: str
    after: bytes = _WORD
    before: bytes = _WORD
    check: Callable[[str], bool] | None = None
    literal: bool = True
    clue: str = ""


@frozen
class Found:
    """A secret of a *kind* from *start* to *end* of the UTF-8 bytes of a text."""

    start: int
    end: int
    kind: str


def find_secrets(text: bytes) -> list[Found]:
    """Return the secrets in UTF-8 *text*, in their order. If two secrets overlap, the secret whose shape is first in :data:`SHAPES` counts."""
    if any_shape().search(text) is None:
        return []
    results: list[Found] = []
    has_literal = _literal_shapes().search(text) is not None
    for shape in SHAPES:
        if has_literal or not shape.literal:
            for start, end in _spans(shape, text):
                place = bisect(results, start, key=_start)
                is_free = (not place or results[place - 1].end <= start) and (
                    place == len(results) or end <= results[place].start
                )
                if is_free:
                    results.insert(place, Found(start, end, shape.kind))
    return results


def _start(result: Found) -> int:
    return result.start


@cache
def any_shape() -> Any:
    """Return one expression for the clues of all shapes. UTF-8 text, or the JSON of a text, without a match has no secret."""
    return _compiled("|".join(f"(?:{shape.clue or shape.pattern})" for shape in SHAPES))


@cache
def _literal_shapes() -> Any:
    return _compiled("|".join(f"(?:{shape.clue or shape.pattern})" for shape in SHAPES if shape.literal))


def _spans(shape: Shape, text: bytes) -> Iterator[tuple[int, int]]:
    before, after = re.compile(shape.before), re.compile(shape.after)
    for match in _compiled(shape.pattern).finditer(text):
        start, end = match.span()
        is_escape = text[max(0, start - 1) : start + 1] in _ESCAPES  # of a text inside JSON inside JSON
        start += is_escape
        if (
            not is_escape
            and start
            and before.match(text, start - 1)
            and text[max(0, start - 2) : start] not in _ESCAPES
        ):
            continue
        if after.match(text, end):
            continue
        if match.lastindex:
            start, end = match.span(1)
        if shape.check is None or shape.check(text[start:end].decode()):
            yield start, end


@cache
def _compiled(pattern: str) -> Any:
    try:
        import re2  # type: ignore[import-untyped]  # here, since it is 1.6 MB and only sources need it
    except ImportError:  # the kernel alone is installed: the same matches, more slowly
        return re.compile(pattern.encode())
    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1  # bytes: every shape is ASCII
    options.max_mem = 64 << 20
    return re2.compile(pattern.encode(), options)


def is_card(text: str) -> bool:
    """Return whether *text* is the number of a payment card: a known prefix with its length, and the check digit of Luhn."""
    digits = re.sub(r"[ -]", "", text)
    if not _CARD.fullmatch(digits) or len(set(digits)) == 1:
        return False
    doubled = [int(digit) * (2 - (place % 2 == 0)) for place, digit in enumerate(reversed(digits))]
    return sum(number - 9 * (number > 9) for number in doubled) % 10 == 0


_CARD = re.compile(
    r"4[0-9]{15}|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}|35(?:2[89]|[3-8][0-9])[0-9]{12}"
)

_IBAN_LENGTHS = {
    length: frozenset(countries.split())
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV", 22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL", 24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST", 26: "IS TR", 27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB NI PL SV", 29: "BR EG PS QA UA",
        30: "JO KW MU", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
}  # fmt: skip


def is_iban(text: str) -> bool:
    """Return whether *text* is an IBAN: the length of its country, and the check digits of ISO 13616."""
    compact = text.replace(" ", "")
    if compact[:2] not in _IBAN_LENGTHS.get(len(compact), ()):
        return False
    moved = compact[4:] + compact[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


def is_phone(text: str) -> bool:
    """Return whether *text* has the digits of a phone number: 10 to 15 with a country code (E.164), or 10 of North America."""
    digits = sum(character.isdigit() for character in text)
    return 10 <= digits <= 15 if text.startswith("+") else digits == 10


def is_email(text: str) -> bool:
    """Return whether *text* is an e-mail address, and no address of a git server such as ``git@github.com``."""
    local, _, domain = text.partition("@")
    is_name = not (local.startswith(".") or local.endswith(".") or ".." in text or "-." in domain or ".-" in domain)
    return is_name and local not in ("", "git")


def is_password(text: str) -> bool:
    """Return whether *text*, the password of a URL, is no placeholder such as ``$PASSWORD``, ``<password>`` or ``***``."""
    return not text.startswith(("$", "<", "%s", "[")) and bool(text.strip("*x.X"))


_AWS_WORDS = "(?i:key|pwd|pw|password|pass|token|secret)"
_JWT = "[A-Za-z0-9_=-]"
_CARD_DIGITS = "[2-6][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}|3[0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{4,5}"
_PHONE_OF_NORTH_AMERICA = r"\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[ .-][0-9]{4}|[2-9][0-9]{2}[.-][2-9][0-9]{2}[.-][0-9]{4}"

SHAPES: tuple[Shape, ...] = (
    Shape(
        "private-key",
        r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^-]|-[^-])*-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\]*)",
        _ANY,
        _ANY,
        clue="-----BEGIN ",
    ),
    Shape("aws-key", r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}"),
    Shape(
        "aws-secret",
        rf"(?i:aws)[A-Za-z0-9_. -]{{0,20}}{_AWS_WORDS}[A-Za-z0-9_]{{0,8}}['\"\\=:,>(\s]{{1,40}}([0-9A-Za-z/+]{{40}})",
        rb"[0-9A-Za-z/+=]",
        _ANY,
        clue=rf"(?i:aws)[A-Za-z0-9_. -]{{0,20}}{_AWS_WORDS}",
    ),
    Shape("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{20,}", _TOKEN, clue="sk-ant-"),
    Shape(
        "openai-key",
        r"sk-(?:[A-Za-z0-9_-]*T3BlbkFJ[A-Za-z0-9_-]{20,}|(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{48})",
        _TOKEN,
        clue="T3BlbkFJ|sk-(?:proj|svcacct|admin|or-v1)-|sk-[A-Za-z0-9]{16}",
    ),
    Shape(
        "github-token",
        r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}",
        clue="gh[pousr]_[A-Za-z0-9]{8}|github_pat_",
    ),
    Shape(
        "gitlab-token",
        r"gl(?:pat|dt|ft|soat|rt|ptt|imt|agent|wt)-[A-Za-z0-9_-]{20,}|glcbt-(?:[0-9a-fA-F]{2}_)?[A-Za-z0-9_-]{20,}|GR1348941[A-Za-z0-9_-]{20,}",
        _TOKEN,
        clue="gl(?:pat|dt|ft|soat|rt|ptt|imt|agent|wt)-|glcbt-|GR1348941",
    ),
    Shape(
        "slack-token",
        r"(?i:xox[abeposr])(?:-[0-9]{1,20}){0,4}-[0-9A-Za-z]{10,}|xapp-[0-9]-[0-9A-Z]{8,20}-[0-9]{8,20}-[0-9a-f]{32,}",
        _TOKEN,
        clue="(?i:xox[abeposr])-|xapp-[0-9]-",
    ),
    Shape(
        "slack-webhook",
        r"(?i:https://hooks\.slack\.com/services)/T[A-Za-z0-9_]+/B[A-Za-z0-9_]+/[A-Za-z0-9_]+",
        clue=r"(?i:hooks\.slack\.com/services)",
    ),
    Shape("stripe-key", r"[rs]k_live_[0-9A-Za-z]{24,}", clue="[rs]k_live_"),
    Shape("google-key", r"AIza[0-9A-Za-z_-]{35}", _TOKEN, clue="AIza[0-9A-Za-z_-]{8}"),
    Shape("google-oauth", r"GOCSPX-[0-9A-Za-z_-]{28}", _TOKEN, clue="GOCSPX-"),
    Shape("huggingface-token", r"hf_[A-Za-z0-9]{34,}", clue="hf_[A-Za-z0-9]{8}"),
    Shape(
        "npm-token",
        r"npm_[A-Za-z0-9]{36}|//[^\s]+/:_authToken=\s*([A-Fa-f0-9]{8}(?:-[A-Fa-f0-9]{4}){3}-[A-Fa-f0-9]{12})",
        clue="npm_[A-Za-z0-9]{12}|/:_authToken=",
    ),
    Shape("pypi-token", r"pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZw)[A-Za-z0-9_-]{70,}", _TOKEN, clue="pypi-Ag"),
    Shape("sendgrid-key", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}", _TOKEN, clue=r"SG\.[A-Za-z0-9_-]{8}"),
    Shape("square-token", r"sq0csp-[0-9A-Za-z_-]{43}|sq0atp-[0-9A-Za-z_-]{22}", _TOKEN, clue="sq0(?:csp|atp)-"),
    Shape(
        "discord-token",
        r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
        _TOKEN,
        clue=r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
    ),
    Shape("telegram-token", r"[0-9]{8,10}:[0-9A-Za-z_-]{35}", _TOKEN, clue="[0-9]:[0-9A-Za-z_-]{35}"),
    Shape("twilio-key", r"(?:AC|SK)[0-9a-f]{32}", clue="(?:AC|SK)[0-9a-f]{16}"),
    Shape("mailchimp-key", r"[0-9a-z]{32}-us[0-9]{1,2}", clue="[0-9a-z]-us[0-9]"),
    Shape("azure-key", r"AccountKey=([A-Za-z0-9+/=]{88})", rb"[A-Za-z0-9+/=]", clue="AccountKey="),
    Shape(
        "artifactory-token",
        r"AKC[A-Za-z0-9]{10,}|AP[0-9ABCDEF][A-Za-z0-9]{60,}",
        clue="AKC[A-Za-z0-9]{10}|AP[0-9ABCDEF][A-Za-z0-9]{20}",
    ),
    Shape("jwt", rf"eyJ{_JWT}{{5,}}\.eyJ{_JWT}{{5,}}(?:\.{_JWT}*)?", clue=r"\.eyJ"),
    Shape(
        "basic-auth",
        r"://[^{}\s/:@\"'\\]+:([^{}\s/:@\"'\\]+)@",
        _ANY,
        _ANY,
        is_password,
        literal=False,
        clue=r"://[^{}\s/:@\"']+:[^{}\s/:@\"']+@",
    ),
    Shape(
        "email",
        r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}",
        rb"[A-Za-z0-9_@-]",
        rb"[A-Za-z0-9_%+@-]",
        is_email,
        literal=False,
        clue=r"(?:(?:^|[^\\])[A-Za-z0-9._%+-]|\\[^nrt])@[A-Za-z0-9-]{1,63}\.[A-Za-z0-9-]",
    ),
    Shape(
        "iban",
        r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?",
        _WORD,
        _WORD,
        is_iban,
        literal=False,
        clue=f"{_EDGE}[A-Z]{{2}}[0-9]{{2}} ?[A-Z0-9]{{4}} ?[A-Z0-9]{{4}}",
    ),
    Shape(
        "card",
        _CARD_DIGITS,
        _NUMBER,
        rb"[A-Za-z0-9_.-]",
        is_card,
        literal=False,
        clue=f"{_EDGE}(?:{_CARD_DIGITS}){_END}",
    ),
    Shape(
        "phone",
        rf"\+[1-9][0-9]{{0,2}}(?:[ .()-]{{1,2}}[0-9]{{1,5}}){{2,6}}|\+[1-9][0-9]{{9,14}}|{_PHONE_OF_NORTH_AMERICA}",
        _NUMBER,
        rb"[A-Za-z0-9_.+/=-]",
        is_phone,
        literal=False,
        clue=rf"\+[1-9][0-9 .()-]{{9}}|{_EDGE}(?:{_PHONE_OF_NORTH_AMERICA}){_END}",
    ),
)
"""All shapes, in the order in which overlapping matches count."""

KINDS = tuple(dict.fromkeys(shape.kind for shape in SHAPES))
