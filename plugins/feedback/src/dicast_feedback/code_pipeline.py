"""How far did a piece of code get?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from dicast import ConfigError, Failure, Problem, Score, Subject, nearest
from dicast.toolkit.json_values import check_field

from .inputs import cut, judged, parsed, shorten

STAGES = ("parse", "compile", "execute", "test")
_MAX_ERROR = 500
"""The number of characters of an error that are repeated."""


def _names(texts: Iterable[str]) -> tuple[str, ...]:
    if isinstance(texts, str):
        raise ConfigError(f"stages are a list: write [{texts}]")
    names = tuple(texts)
    if not names or len(set(names)) < len(names):
        raise ConfigError("stages are one or more different names, in their order")
    return names


@attrs.frozen
class CodePipeline:
    """The share of stages that code passed before its first failed stage.

    The output has the result of each stage, as an object ``{parse: true, compile: true, execute: "ZeroDivisionError"}`` or
    as a list ``[{stage: parse, success: true}, {stage: execute, success: false, error: "ZeroDivisionError"}]``. A stage's
    result is true, false, the text of its error, or ``{success, error}``. The stages after the first failed stage do not count,
    with any result. A stage without a result has not been reached. No reference is needed. ``signals`` has
    ``passed`` and ``stages`` (numbers), ``failed_at`` and ``last_passed`` (names, or null); the details and the feedback have
    the error.

    An output that is no such record is a Failure, because the harness wrote the record, not the model. A stage outside
    ``stages`` is a Failure too.

    :param stages: their names, in their order.
    :param field: the place of the record in the output, a dotted path (``ci.stages``) or a JSON pointer (``/ci/stages``); text
        is read as JSON to get there. A missing field scores 0.
    """

    name = "code_pipeline"
    tier = "proxy"
    needs_output = "always"

    stages: tuple[str, ...] = attrs.field(default=STAGES, converter=_names)
    field: str | None = attrs.field(default=None, validator=check_field)

    def score(self, subject: Subject) -> Score | Failure:
        """Go through the stages in the output of *subject* up to the first that failed."""
        output = judged(subject, self.field)
        if isinstance(output, Score | Failure):
            return output
        place = f"the output of {subject.id!r}" + ("" if self.field is None else f" at {self.field!r}")
        try:
            return self._walk(_results(parsed(output)))
        except _NoRecord as wrong:
            return Failure("missing_input", f"{place} {wrong}")

    def _walk(self, results: Mapping[str, object]) -> Score:
        for name in results:
            if name not in self.stages:
                message = f"has the stage {shorten(name)}; stages are {', '.join(self.stages)}"
                raise _NoRecord(str(Problem(message, hint=nearest(str(name), self.stages))))
        lines: list[str] = []
        error = None
        for name in self.stages:
            error = _error(results[name], name) if name in results else "not reached"
            lines.append(f"{name}: {error or 'passed'}")
            if error is not None:
                break
        passed = len(lines) - (error is not None)
        signals: dict[str, object] = {
            "passed": passed,
            "stages": len(self.stages),
            "failed_at": None if error is None else self.stages[passed],
            "last_passed": self.stages[passed - 1] if passed else None,
        }
        details = "" if error is None else f"failed at {self.stages[passed]}: {cut(error)}"
        return Score(passed / len(self.stages), details=details, feedback="\n".join(lines), signals=signals)


class _NoRecord(ValueError):
    """The fault of a record of stages, as the end of a sentence about it."""


def _results(record: object) -> Mapping[str, object]:
    """Stage to result."""
    if isinstance(record, Mapping):
        return record
    if not isinstance(record, list | tuple):
        raise _NoRecord(f"is no record of stages: {shorten(record)}")
    results: dict[str, object] = {}
    for place, item in enumerate(record):
        name = item.get("stage") if isinstance(item, Mapping) else None
        if not isinstance(name, str):
            raise _NoRecord(f"has in place {place} {shorten(item)}, not an object with a 'stage'")
        if name in results:
            raise _NoRecord(f"has the stage {shorten(name)} twice")
        results[name] = item
    return results


def _error(result: object, stage: str) -> str | None:
    """Why *stage* failed; None when it passed."""
    success, error = result, None
    if isinstance(result, str):
        success, error = False, result
    elif isinstance(result, Mapping):
        error = result.get("error")
        success = result.get("success", None if error is None else False)
    if not isinstance(success, bool):
        raise _NoRecord(
            f"has for the stage {stage!r} {shorten(result)}, not true, false, an error or {{success, error}}"
        )
    if success:
        return None
    return cut(error, _MAX_ERROR) if error not in (None, "") else "failed"
