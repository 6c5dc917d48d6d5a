"""Are the brackets and quotation marks of an output balanced, or is it a program of its language?"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import attrs

from dicast import ConfigError, Failure, Score, Subject
from dicast.toolkit.json_values import MISSING, check_field, locate

from .content import texts
from .grammar import CALLED, MAX_CODE_BYTES, check_language, syntax_errors
from .scanner import Fault, Scanner

_PLACES = ("code", "output", "result", "content")
_MAX_LISTED = 10


@attrs.frozen
class Syntax:
    r"""1 if brackets and quotes are balanced or, with a language, if its grammar can read the text; else 0.

    Without ``language`` the text may be prose, Markdown or any code. Brackets inside quotation marks and backticks are not
    checked. These are no quotation marks: an apostrophe (in a word, at its end, or before a shortened word as in 'tis), a
    mark of inches (5"), an escaped mark (a backslash takes the next character, so ``"a\\"`` is closed), or a typographic
    mark. A text in ' ends on its line. A text in " may go on (and open each of its paragraphs), as may texts in three
    of them. Backticks follow Markdown: as many close as opened, and a backslash between them has no meaning. The brackets of
    "1) this" and :) need no partner. Comments are text like any other.

    With ``language`` a grammar checks the whole text. If it cannot read the text, but the text has code fenced by ```, the
    code in the fences is checked: the fences that name the language or else all fences. More than 8 MiB are not read.

    The text of an object is the first of ``code``, ``output``, ``result`` and ``content`` that has one, else its first string.
    Without any text the score is 0.

    :param check_balanced_brackets: ( [ { are closed, in order. Without effect together with ``language``.
    :param check_balanced_quotes: quotation marks and backticks are closed; if false, they are ordinary characters, and the
        brackets between them count. Without effect together with ``language``.
    :param language: the grammar's name, such as ``python``, ``javascript``, ``tsx``, ``rust``, ``cpp``, ``csharp``, ``json``
        or ``sql``; needs ``dicast[grammars]``.
    :param field: check only this place in the output, a dotted path (``steps.0.code``) or a JSON pointer
        (``/steps/0/code``); text is read as JSON to get there. A missing field is empty.
    """

    name = "syntax"
    tier = "proxy"
    needs_output = "always"

    check_balanced_brackets: bool = True
    check_balanced_quotes: bool = True
    language: str | None = attrs.field(default=None, validator=check_language)
    field: str | None = attrs.field(default=None, validator=check_field)
    _scanner: Scanner = attrs.field(init=False, eq=False, repr=False)
    _passed: Score = attrs.field(init=False, eq=False, repr=False)

    @_scanner.default
    def _make_scanner(self) -> Scanner:
        return Scanner.of(self.check_balanced_brackets, self.check_balanced_quotes)

    @_passed.default
    def _name_checks(self) -> Score:
        checks = {"balanced_brackets": self.check_balanced_brackets, "balanced_quotes": self.check_balanced_quotes}
        return Score(1.0, signals={name: True for name, is_made in checks.items() if is_made})

    def __attrs_post_init__(self) -> None:
        if self.language is None and not (self.check_balanced_brackets or self.check_balanced_quotes):
            raise ConfigError("nothing is checked: switch brackets or quotes on, or name a language")

    def score(self, subject: Subject) -> Score | Failure:
        """Look at the output of *subject*, or at its field."""
        value = subject.output if self.field is None else locate(subject.output, self.field)
        text = _code(value)
        if not text or text.isspace():
            why = f": the output has no field {self.field!r}" if value is MISSING else ""
            return Score(0.0, details=f"No code found{why}", signals={"code_found": False})
        return self._scan(text) if self.language is None else self._read(text, self.language)

    def _scan(self, text: str) -> Score:
        fault = self._scanner.fault(text)
        if fault is None:
            return self._passed
        check = "balanced_brackets" if fault.message[0] in "()[]{}" else "balanced_quotes"
        return Score(0.0, details=str(fault), signals={check: False, "line": fault.line, "column": fault.column})

    def _read(self, text: str, language: str) -> Score | Failure:
        if len(text) > MAX_CODE_BYTES:
            large = f"{len(text):,} characters of code at {self.field or 'the output'} are too many"
            return Failure("missing_input", f"{large}: with a language proxy/syntax reads {MAX_CODE_BYTES:,}")
        faults, rest = _first(syntax_errors(text, language))
        blocks = _fenced(text, language) if faults else []
        if blocks:
            faults, rest = _first(
                itertools.chain.from_iterable(syntax_errors(code, language, line) for line, code in blocks)
            )
        signals = {language: not faults, "fenced": bool(blocks)}
        if not faults:
            return Score(1.0, signals=signals)
        summary = "; ".join(map(str, faults)) + (f"; and {rest} more" if rest else "")
        errors = [attrs.asdict(fault) for fault in faults]
        return Score(0.0, details=summary, signals={**signals, "errors": errors, "errors_total": len(faults) + rest})


def _code(value: object) -> str:
    """Return the text of an output to check: the output, or the text at one of the usual places of an object."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        named = (value.get(place) for place in _PLACES)
        text_ = next((text for text in named if isinstance(text, str) and text.strip()), None)
        return text_ or next((text for text in value.values() if isinstance(text, str)), "")
    return next(iter(texts(value)), "") if isinstance(value, list | tuple) else ""


def _first(faults: Iterable[Fault]) -> tuple[list[Fault], int]:
    """Return the first faults, and the number of the others."""
    rest = iter(faults)
    return list(itertools.islice(rest, _MAX_LISTED)), sum(1 for _ in rest)


def _fenced(text: str, language: str) -> list[tuple[int, str]]:
    """Return the blocks of code between ``` in *text*, each with its first line. An open block extends to the end."""
    blocks: list[tuple[str, int, list[str]]] = []
    is_open = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            is_open = not is_open
            if is_open:
                blocks.append((line.strip().strip("`").strip().lower(), number + 1, []))
        elif is_open:
            blocks[-1][2].append(line)
    labelled = [block for block in blocks if CALLED.get(block[0], block[0]) == language]
    return [(number, code) for _, number, lines in labelled or blocks if (code := "\n".join(lines)).strip()]
