"""Are a tool call's params what the tool takes?"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import orjson

from dicast import MISSING, Failure, InputPath, Score, Subject, check_field, nearest

from .calls import Call, calls_of
from .schemas import Overrun, Validator, Violation, compile_tools, read_tools

_TOLD = 3  # violations in the details
_LISTED = 20  # violations, and invalid calls, in the signals


@attrs.frozen
class _Finding:
    """What was found out about one call; *why* is empty where it is as it should be."""

    call: Call
    known: bool
    why: str = ""
    violations: tuple[Violation, ...] = ()

    @property
    def signals(self) -> dict[str, object]:
        listed = [attrs.asdict(one) for one in self.violations[:_LISTED]]
        found: dict[str, object] = {"tool": self.call.named, "tool_known": self.known, "params_valid": not self.why}
        return found | {"violations": listed} if listed else found


def _check_tools(metric: ToolParamsSchema, _: object, tools: Mapping[str, object]) -> None:
    compile_tools(tools, metric.formats)


@attrs.frozen
class ToolParamsSchema:
    """1 when a tool call's params keep to the JSON Schema of its tool, else 0; an unknown tool is 0.

    The output is the call, ``{tool, params}``; OpenAI's form ``{name, arguments}`` is taken too, also inside ``function``,
    and its ``arguments`` may be JSON text. Params that are text are text: a tool that takes an object does not take them. A
    tool cycle of a trace is the call in its input. Of an output that lists calls, and of a turn or session of a trace, the
    score is the share of the calls that are valid, and 1 without any.

    :param tools: the tools' names with the JSON Schemas of their params, or a JSON or YAML file of them; also a list of
        function tools as OpenAI, Anthropic and MCP write it. Drafts 4, 6, 7, 2019-09 and 2020-12 by ``$schema``, by default
        2020-12. A ``$ref`` leads into the same schema; nothing is fetched.
    :param formats: check ``format`` (dates, addresses …) too; by default it is a comment, as the draft 2020-12 has it.
    :param field: the call is at this place in the output, a dotted path (``steps.0``) or a JSON pointer (``/steps/0``); text
        is read as JSON to get there.
    """

    name = "tool_params_schema"
    tier = "proxy"

    tools: Mapping[str, object] = attrs.field(
        converter=read_tools,
        validator=_check_tools,
        metadata={"takes": InputPath | Mapping[str, object] | list[object]},
    )
    formats: bool = False
    field: str | None = attrs.field(default=None, validator=check_field)
    _validators: Mapping[str, Validator] = attrs.field(init=False, eq=False, repr=False)
    _passed: Mapping[str, Score] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_validators", compile_tools(self.tools, self.formats))
        valid = {name: Score(1.0, signals=_Finding(Call(name), known=True).signals) for name in self.tools}
        object.__setattr__(self, "_passed", valid)

    def score(self, subject: Subject) -> Score | Failure:
        """Check the call, or the calls, of *subject*."""
        found = calls_of(subject, self.field)
        if found.absence is not None:
            return Score(0.0, details=found.absence, signals=_Finding(Call(MISSING), known=False).signals | _INVALID)
        unknown = next((call for call in found.calls if call.digest is not None), None)
        if unknown is not None:
            message = f"the trace of {subject.id!r} has only a hash of the input of {unknown.named}; record the input"
            return Failure("missing_input", message)
        try:
            if found.single:
                return self._score(found.calls[0])
            return _share([self._check(call) for call in found.calls])
        except Overrun as overrun:
            return Failure(
                "timeout", f"{overrun} takes too many steps on this text; write it without repeats in repeats"
            )

    def _score(self, call: Call) -> Score:
        finding = self._check(call)
        if not finding.why:
            return self._passed[str(call.tool)]
        return Score(0.0, details=finding.why, signals=finding.signals)

    def _check(self, call: Call) -> _Finding:
        tool = call.tool
        validator = self._validators.get(tool) if isinstance(tool, str) else None
        if validator is None:
            return _Finding(call, False, self._name_nearest(call))
        params = None if call.params is MISSING else call.params
        try:
            orjson.dumps(params)  # the library ends the process where values are nested too deep
            valid = validator.is_valid(params)
        except (TypeError, ValueError) as error:
            return _Finding(call, True, f"{call.named}: the params are not JSON: {error}")
        if valid:
            return _Finding(call, True)
        violations = validator.violations(params)
        return _Finding(call, True, _told(call, violations), tuple(violations))

    def _name_nearest(self, call: Call) -> str:
        named = call.named
        if named is None:
            return "the call names no tool"
        near = nearest(named, self._validators)
        return f"unknown tool {named!r}" + (f", did you mean {near!r}?" if near else "")


_INVALID = {"params_valid": False}


def _told(call: Call, violations: list[Violation]) -> str:
    if call.params is MISSING:
        return f"{call.named}: the call has no params"
    told = "; ".join(map(str, violations[:_TOLD]))
    more = len(violations) - _TOLD
    text = "; the params are text, not an object" if isinstance(call.params, str) else ""
    return f"{call.named}: {told}{f'; and {more} more' if more > 0 else ''}{text}"


def _share(findings: list[_Finding]) -> Score:
    """The score of several calls, which names those that are not valid."""
    bad = [(number, one) for number, one in enumerate(findings, 1) if one.why]
    counts = {"calls": len(findings), "tool_known": sum(one.known for one in findings)}
    signals = counts | {"params_valid": len(findings) - len(bad)}
    if not bad:
        return Score(1.0, details="" if findings else "there are no tool calls", signals=signals)
    named = [{"call": one.call.place(number)} | one.signals for number, one in bad[:_LISTED]]
    number, first = bad[0]
    details = f"{len(bad)} of {len(findings)} calls are not valid; call {first.call.place(number)}: {first.why}"
    return Score((len(findings) - len(bad)) / len(findings), details=details, signals=signals | {"invalid": named})
