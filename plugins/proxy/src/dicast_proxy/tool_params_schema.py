"""The check of a tool call's params by the schema of the tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import orjson

from dicast import ConfigError, Failure, InputPath, Score, Subject, nearest
from dicast.toolkit.json_values import MISSING, check_field, locate

from .calls import Call, calls_of
from .schemas import Compiled, Overrun, Validator, Violation, compile_tools, read_tools

_MAX_LISTED = 3  # violations in the details
_LISTED = 20  # violations, and invalid calls, in the signals


@attrs.frozen
class _Finding:
    """The result of checking one call; *why* is empty for a valid call, *schema_error* for a schema that compiles."""

    call: Call
    is_known: bool
    why: str = ""
    violations: tuple[Violation, ...] = ()
    schema_error: str = ""

    @property
    def value(self) -> float:
        """1 for a valid call, 0 for an invalid call, and .5 if the schema does not compile."""
        return 0.5 if self.schema_error else float(not self.why)

    @property
    def signals(self) -> dict[str, object]:
        if self.schema_error:
            return {"tool": self.call.named, "tool_known": self.is_known, "schema_error": self.schema_error}
        listed = [attrs.asdict(violation) for violation in self.violations[:_LISTED]]
        signals: dict[str, object] = {
            "tool": self.call.named,
            "tool_known": self.is_known,
            "params_valid": not self.why,
        }
        return signals | {"violations": listed} if listed else signals


def _check_tools(metric: ToolParamsSchema, _: object, tools: Mapping[str, object] | None) -> None:
    if tools is not None:
        compile_tools(tools, metric.formats)


def _check_place(metric: object, attribute: attrs.Attribute[Any], place: str) -> None:
    check_field(metric, attribute, place)


def _read_tools(source: object) -> Mapping[str, object] | None:
    return None if source is None else read_tools(source)


@attrs.frozen
class ToolParamsSchema:
    """1 if a tool call's params keep to the JSON Schema of its tool, else 0; an unknown tool is 0.

    The output is the call, ``{tool, params}``. OpenAI's form ``{name, arguments}`` is read too, also inside ``function``,
    and its ``arguments`` may be JSON text. Params that are text stay text: a tool that takes an object does not accept them. A
    tool cycle of a trace is the call in its input. For an output that lists calls, and for a turn or session of a trace, the
    score is the share of valid calls, and 1 without any call.

    A schema in the pipeline file that does not compile is an error of the file. Such a schema in the data scores .5 for a call of its
    tool, and ``signals.schema_error`` has its fault.

    :param tools: the tools' names with the JSON Schemas of their params, or a JSON or YAML file of them; also a list of
        function tools in the form of OpenAI, Anthropic and MCP. Drafts 4, 6, 7, 2019-09 and 2020-12 by ``$schema``, by default
        2020-12. A ``$ref`` leads into the same schema; nothing is fetched. Without this option the tools come with each subject.
    :param tools_field: without *tools*, the place of the tools in the subject's context, else in its input: a dotted path or a JSON pointer.
    :param formats: check ``format`` (dates, addresses …) too; by default it is a comment, as in the draft 2020-12.
    :param field: the call is at this place in the output, a dotted path (``steps.0``) or a JSON pointer (``/steps/0``); text
        is read as JSON to get there.
    """

    name = "tool_params_schema"
    tier = "proxy"

    tools: Mapping[str, object] | None = attrs.field(
        default=None,
        converter=_read_tools,
        validator=_check_tools,
        metadata={"takes": InputPath | Mapping[str, object] | list[object] | None},
    )
    tools_field: str = attrs.field(default="tools", validator=_check_place)
    formats: bool = False
    field: str | None = attrs.field(default=None, validator=check_field)
    _validators: Mapping[str, Validator] = attrs.field(init=False, eq=False, repr=False)
    _passed: Mapping[str, Score] = attrs.field(init=False, eq=False, repr=False)
    _compiled: Compiled = attrs.field(factory=Compiled, init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        tools = self.tools or {}
        object.__setattr__(self, "_validators", compile_tools(tools, self.formats))
        valid = {name: Score(1.0, signals=_Finding(Call(name), is_known=True).signals) for name in tools}
        object.__setattr__(self, "_passed", valid)

    def score(self, subject: Subject) -> Score | Failure:
        """Check the call, or the calls, of *subject*."""
        calls = calls_of(subject, self.field)
        if calls.absence is not None:
            return Score(0.0, details=calls.absence, signals=_Finding(Call(MISSING), is_known=False).signals | _INVALID)
        unknown = next((call for call in calls.calls if call.digest is not None), None)
        if unknown is not None:
            message = f"the trace of {subject.id!r} has only a hash of the input of {unknown.named}; record the input"
            return Failure("missing_input", message)
        schemas = self._validators if self.tools is not None else self._of(subject)
        if isinstance(schemas, Failure):
            return schemas
        try:
            if calls.single:
                return self._score(calls.calls[0], schemas)
            return _share([self._check(call, schemas) for call in calls.calls])
        except Overrun as overrun:
            return Failure(
                "timeout", f"{overrun} takes too many steps on this text; write it without repeats in repeats"
            )

    def _of(self, subject: Subject) -> Mapping[str, Validator | str] | Failure:
        """Return the validators of the subject's own tools, or the error of a schema; a failure without tools."""
        tools = locate(subject.context, self.tools_field)
        if tools in (MISSING, None) and subject.input is not None:
            tools = locate(subject.input, self.tools_field)
        if tools in (MISSING, None):
            message = (
                f"{subject.kind} {subject.id} has no tools in context.{self.tools_field}: name the tools with tools"
            )
            return Failure("missing_input", message)
        try:
            return self._compiled.of(read_tools(tools), self.formats)
        except ConfigError as error:
            return Failure(
                "missing_input", f"the tools in {self.tools_field} of {subject.id!r} cannot be read: {error}"
            )

    def _score(self, call: Call, schemas: Mapping[str, Validator | str]) -> Score:
        finding = self._check(call, schemas)
        if not finding.why:
            return self._passed.get(str(call.tool)) or Score(1.0, signals=finding.signals)
        return Score(finding.value, details=finding.why, signals=finding.signals)

    def _check(self, call: Call, schemas: Mapping[str, Validator | str]) -> _Finding:
        tool = call.tool
        validator = schemas.get(tool) if isinstance(tool, str) else None
        if validator is None:
            return _Finding(call, False, _name_nearest(call, schemas))
        if isinstance(validator, str):
            return _Finding(call, True, f"{call.named}: the schema does not compile: {validator}", (), validator)
        params = None if call.params is MISSING else call.params
        try:
            orjson.dumps(params)  # the library ends the process where values are nested too deep
            valid = validator.is_valid(params)
        except (TypeError, ValueError) as error:
            return _Finding(call, True, f"{call.named}: the params are not JSON: {error}")
        if valid:
            return _Finding(call, True)
        violations = validator.violations(params)
        return _Finding(call, True, _details(call, violations), tuple(violations))


def _name_nearest(call: Call, schemas: Mapping[str, object]) -> str:
    named = call.named
    if named is None:
        return "the call names no tool"
    near = nearest(named, schemas)
    return f"unknown tool {named!r}" + (f", did you mean {near!r}?" if near else "")


_INVALID = {"params_valid": False}


def _details(call: Call, violations: list[Violation]) -> str:
    if call.params is MISSING:
        return f"{call.named}: the call has no params"
    summary = "; ".join(map(str, violations[:_MAX_LISTED]))
    rest = len(violations) - _MAX_LISTED
    text = "; the params are text, not an object" if isinstance(call.params, str) else ""
    return f"{call.named}: {summary}{f'; and {rest} more' if rest > 0 else ''}{text}"


def _share(findings: list[_Finding]) -> Score:
    """Return the score of several calls, with the invalid calls in its signals."""
    bad = [(number, finding) for number, finding in enumerate(findings, 1) if finding.why]
    signals: dict[str, object] = {"calls": len(findings), "tool_known": sum(finding.is_known for finding in findings)}
    signals["params_valid"] = len(findings) - len(bad)
    if broken := next((finding.schema_error for finding in findings if finding.schema_error), ""):
        signals["schema_error"] = broken
    if not bad:
        return Score(1.0, details="" if findings else "there are no tool calls", signals=signals)
    named = [{"call": finding.call.place(number)} | finding.signals for number, finding in bad[:_LISTED]]
    number, first = bad[0]
    details = f"{len(bad)} of {len(findings)} calls are not valid; call {first.call.place(number)}: {first.why}"
    value = sum(finding.value for finding in findings) / len(findings)
    return Score(value, details=details, signals=signals | {"invalid": named})
