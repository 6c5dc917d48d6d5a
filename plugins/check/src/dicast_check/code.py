"""Checks by functions of the user: ``check/python`` and ``check/javascript``, with a separate process for each call."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf, isfinite
from pathlib import Path
from shutil import which
from typing import Any, ClassVar, Literal

import attrs
import orjson

from dicast import ConfigError, Failure, RunContext, Score, Subject, Within, columns
from dicast.toolkit.command import OutputTooLong, call_command
from dicast.toolkit.files import file_sha256
from dicast.toolkit.json_values import MISSING as MISSING_FIELD
from dicast.toolkit.json_values import check_field, locate

from .check import Answer, Outcome, no_output

_FOLDER = Path(__file__).parent
_LINES = 3


@attrs.frozen(kw_only=True)
class CodeCheck:
    """A check by a function of the user, as an option of the pipeline or an item of a row's list.

    :param negate: reverse the answer.
    :param field: pass only this place in the output to the function, a dotted path or a JSON pointer.
    :param threshold: the least returned number that holds; 0.5 by default.
    :param above: hold only numbers above this one; replaces ``threshold``.
    :param complete: accept an object only with ``pass``, ``score`` and ``reason``, as promptfoo does.
    :param timeout: seconds for one call; then its process is killed.
    """

    tier = "truth"
    needs_output: ClassVar[bool | Literal["always"]] = "always"
    language: ClassVar[str]
    joint_threshold: ClassVar[bool] = False
    """True if a threshold also applies to a result with ``pass``."""

    file: Path
    function: str | None = None
    negate: bool = False
    field: str | None = attrs.field(default=None, validator=check_field)
    threshold: float | None = None
    above: float | None = None
    complete: bool = False
    timeout: float = attrs.field(
        default=30, validator=Within(0, inf, "more than 0 seconds", open=True), metadata={"counts": False}
    )

    @property
    def default_pass_at(self) -> float:
        """The threshold."""
        return 0.5 if self.threshold is None else self.threshold

    @property
    def default_timeout(self) -> float:
        """The function's time limit, plus time to start and end its process."""
        return self.timeout + 10

    def reads(self, base: Path) -> dict[str, Path]:
        """Return the function's file."""
        return {self.file.name: base / self.file}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[LiveCode]:
        """Yield the live check.

        :raises ConfigError: if the file is missing or not trusted, or its language is not installed.
        """
        yield LiveCode(self, Code.of(self.file, self.language, run))


@attrs.frozen(kw_only=True)
class Python(CodeCheck):
    """Check each output with a function of a local Python file: ``def name(output, row)``.

    ``row`` is a dict of the row's columns. The function returns true or false; a number in [0, 1]; or a dict with ``score``,
    ``reason`` and, to decide itself, ``pass``. It may be ``async def``. Each call runs in a separate process, which starts in
    the pipeline's folder, has dicast's rights and may import modules next to the file. Its stdout is ignored. An
    exception is a Failure ``crashed``, a call over its time limit is ``timeout``, another result is ``invalid_score``.

    The file runs only with consent: ``trust: [FILE]`` in the pipeline file, or ``dicast run --yes``. Its SHA-256 is computed when the run
    starts and is part of the fingerprint; a file that changes during the run is not run.

    :param file: the Python file; needs consent.
    :param function: the function's name in the file.
    """

    name = "python"
    language = "python"
    joint_threshold = True

    function: str = attrs.field(kw_only=True)


@attrs.frozen(kw_only=True)
class Javascript(CodeCheck):
    """Check each output with a function of a local JavaScript file: ``(output, row) => …``. Needs ``node``.

    ``row`` is an object of the row's columns. The function returns true or false; a number in [0, 1]; an object with ``score``,
    ``reason`` and, to decide itself, ``pass``; or a promise of one. The file is a module of Node (``.js``, ``.cjs``, ``.mjs``).
    Each call runs in a separate process, which starts in the pipeline's folder and has dicast's rights. Its stdout is
    ignored. An exception is a Failure ``crashed``, a call over its time limit is ``timeout``, another result is ``invalid_score``.

    The file runs only with consent: ``trust: [FILE]`` in the pipeline file, or ``dicast run --yes``. Its SHA-256 is computed when the run
    starts and is part of the fingerprint; a file that changes during the run is not run.

    :param file: the JavaScript file; needs consent.
    :param function: the name of an exported function; by default the module's default export, or ``module.exports`` itself.
    """

    name = "javascript"
    language = "javascript"


@attrs.frozen
class Code:
    """A trusted file of code with its digest at the time of opening."""

    path: Path
    language: str
    digest: str
    words: tuple[str, ...]
    folder: Path

    @classmethod
    def of(cls, file: Path, language: str, run: RunContext) -> Code:
        """Return *file* ready for calls.

        :raises ConfigError: if it is missing or not trusted, or its language is not installed.
        """
        path = run.base / file
        digest = _digest(path, file, language)
        check_trust({file: language}, run)
        return cls(path, language, digest, _program(language), run.base)

    async def call(self, function: str | None, output: object, row: Mapping[str, Any], seconds: float) -> Any:
        """Return the function's result, or a Failure."""
        data = orjson.dumps({"output": output, "row": row}, option=orjson.OPT_NON_STR_KEYS)
        words = [*self.words, str(self.path.absolute()), function or "", self.digest]
        try:
            async with asyncio.timeout(seconds):
                end = await call_command(words, data, folder=self.folder)
        except TimeoutError:
            return Failure("timeout", f"{self._name(function)} took longer than {seconds:g} s")
        except OutputTooLong as error:
            return Failure("invalid_score", f"{self._name(function)} returned too much: {error}")
        except OSError as error:
            return Failure("crashed", f"{self._name(function)} could not be started: {error.strerror or error}")
        try:
            reply = orjson.loads(end.output)
        except orjson.JSONDecodeError:
            tail = " / ".join(end.errors.decode(errors="replace").strip().splitlines()[-_LINES:])
            return Failure("crashed", f"{self._name(function)}: {end.how}; {tail or 'it wrote nothing to stderr'}")
        if "error" in reply:
            return Failure(reply["kind"], f"{self._name(function)}: {reply['error']}")
        return reply["result"]

    def _name(self, function: str | None) -> str:
        return f"{self.path.name}:{function}" if function else self.path.name


def check_trust(files: Mapping[Path, str], run: RunContext) -> None:
    """Check that the run trusts all *files*, mapped to their languages.

    :raises ConfigError: naming every file that is not trusted.
    """
    untrusted = {file: language for file, language in files.items() if not run.trusts(run.base / file)}
    if not untrusted:
        return
    paths = {file: run.base / file for file in untrusted}
    names = {
        file: str(path.relative_to(run.base) if path.is_relative_to(run.base) else path) for file, path in paths.items()
    }
    prefixed = [
        f"check/{language}: {names[file]} (SHA-256 {_digest(paths[file], file, language)[:12]}…) is code and not trusted"
        for file, language in untrusted.items()
    ]
    them = "it" if len(prefixed) == 1 else "them"
    raise ConfigError(
        f"{'; '.join(prefixed)}. Read {them}, then add trust: [{', '.join(names.values())}] to the pipeline file, or run with --yes"
    )


def _digest(path: Path, file: Path, language: str) -> str:
    """Return the SHA-256 of the code at *path*.

    :raises ConfigError: where it cannot be read.
    """
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"check/{language}: {file} is not a file")
        return file_sha256(path)
    except OSError as error:
        raise ConfigError(f"check/{language}: cannot read {file}: {error.strerror or error}") from error


def _program(language: str) -> tuple[str, ...]:
    """Return the words that start the runner of *language*.

    :raises ConfigError: where the language is not installed.
    """
    if language == "python":
        return (sys.executable, "-B", str(_FOLDER / "run_python.py"))
    node = which("node")
    if node is None:
        raise ConfigError("check/javascript needs Node.js: no program node is on the PATH. Install it")
    return (node, str(_FOLDER / "run_javascript.mjs"))


@attrs.frozen
class LiveCode:
    """A check of the user's code with its opened file."""

    check: CodeCheck
    code: Code

    @property
    def default_timeout(self) -> float:
        """The check's time limit."""
        return self.check.default_timeout

    async def score(self, subject: Subject) -> Score | Failure:
        """Call the function and return its number; a result with ``pass`` counts 1 or 0."""
        outcome = await self.outcome(subject)
        if isinstance(outcome, Failure):
            return outcome
        value, signals = outcome.value, dict[str, object](sha256=self.code.digest)
        if outcome.signals.get("decided"):
            value, signals["score"] = float(outcome.holds), outcome.value
        if not 0 <= value <= 1:
            return Failure("invalid_score", f"{self.code.path.name} returned {value:g}; a score is in [0, 1]")
        if self.check.negate and outcome.signals.get("graded"):
            value = 1 - value
        return Score(value, details=outcome.why, signals=signals)

    async def outcome(self, subject: Subject) -> Outcome | Failure:
        """Call the function and return whether the check holds."""
        check = self.check
        if subject.output is None:
            return no_output(subject)
        output = subject.output if check.field is None else locate(subject.output, check.field)
        if output is MISSING_FIELD:
            return Outcome(False, 0.0, f"the output has no field {check.field!r}")
        result = await self.code.call(check.function, output, columns(subject), check.timeout)
        if isinstance(result, Failure):
            return result
        answer = _answer(result, check)
        if isinstance(answer, Failure):
            return answer
        holds = answer.holds is not check.negate
        decided = isinstance(result, Mapping) and ("pass" in result or "pass_" in result)
        value = float(holds) if answer.value is None else answer.value
        return Outcome(
            holds,
            value,
            answer.why if not holds else "",
            signals={"decided": decided, "graded": answer.value is not None and not decided},
        )


def _answer(result: object, check: CodeCheck) -> Answer | Failure:
    """Return the answer that a function's *result* states."""
    if isinstance(result, bool):
        return Answer(result, f"is {'accepted' if result else 'refused'} by {check.file.name}")
    if isinstance(result, int | float):
        return _number(float(result), check, "")
    if isinstance(result, Mapping) and not (check.complete and not _is_complete(result)):
        score, passes = result.get("score"), result.get("pass", result.get("pass_"))
        reason = result.get("reason")
        reason = reason if isinstance(reason, str) else ""
        if isinstance(passes, bool) and (score is None or _is_number(score)):
            value = float(passes) if score is None else float(score)
            low = check.joint_threshold and check.threshold is not None and value < check.threshold
            return Answer(
                passes and not low, f"{'passes' if passes else 'fails'} in {check.file.name}: {reason or value}", value
            )
        if passes is None and _is_number(score):
            return _number(float(score), check, reason)  # type: ignore[arg-type]  # a number, as asked above
    form = "{pass, score, reason}" if check.complete else "{score, reason}"
    return Failure(
        "invalid_score", f"{check.file.name} returned {result!r:.80}; return true or false, a number, or {form}"
    )


def _is_complete(result: Mapping[str, Any]) -> bool:
    passes = result.get("pass", result.get("pass_"))
    return isinstance(passes, bool) and _is_number(result.get("score")) and isinstance(result.get("reason"), str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _number(value: float, check: CodeCheck, reason: str) -> Answer:
    if check.above is not None:
        holds, limit = value > check.above, f"above {check.above:g}"
    else:
        least = check.default_pass_at
        holds, limit = value >= least, f"at least {least:g}"
    return Answer(
        holds, f"scores {value:g} by {check.file.name}, not {limit}" + (f": {reason}" if reason else ""), value
    )
