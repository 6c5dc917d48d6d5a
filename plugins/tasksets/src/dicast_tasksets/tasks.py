"""The fields of a task, and the subject of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dicast import Subject

from .patterns import compiled
from .places import Path
from .shape import (
    ANY,
    COUNT,
    NUMBER,
    SHARE,
    TEXT,
    Fault,
    either,
    fits,
    is_number,
    listed,
    mapped,
    one_of,
    record,
    shorten,
)

TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
"""The types that a field may be expected to have: those of JSON, and whole numbers."""

CONSTRAINTS = (
    "max_tokens",
    "max_latency",
    "must_use_file",
    "must_not_modify",
    "require_tests",
    "budget_msats",
    "custom",
)

_NUMBERS = ("max_tokens", "max_latency", "budget_msats")
_FILES = ("must_use_file", "must_not_modify")


def _pattern(value: Any, path: Path) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield Fault(path, f"a pattern is a text, not {shorten(value)}")
        return
    try:
        compiled(value)
    except ValueError as error:
        yield Fault(path, f"{value!r:.60} is no regular expression of RE2: {error}")


_CONSTRAINT = record(
    "a constraint", {"kind": one_of(*CONSTRAINTS), "description": TEXT, "value": ANY}, required=("kind",)
)


def _constraint(value: Any, path: Path) -> Iterator[Fault]:
    yield from _CONSTRAINT(value, path)
    if isinstance(value, Mapping) and value.get("kind") in _NUMBERS + _FILES:
        checks = COUNT if value["kind"] in _NUMBERS else TEXT
        if value.get("value") is not None:
            yield from checks(value["value"], (*path, "value"))
        else:
            yield Fault(path, f"the constraint {value['kind']} needs a 'value'")


_FIELD = record(
    "an expected field",
    {
        "value": ANY,
        "type": one_of(*TYPES),
        "expected_type": one_of(*TYPES),
        "min": NUMBER,
        "max": NUMBER,
        "pattern": _pattern,
    },
)


def _field(value: Any, path: Path) -> Iterator[Fault]:
    yield from _FIELD(value, path)
    if isinstance(value, Mapping):
        if "value" not in value and all(limit is None for limit in value.values()):
            yield Fault(path, "an expected field says value, type, min, max or pattern")
        low: Any = value.get("min")
        high: Any = value.get("max")
        if is_number(low) and is_number(high) and low > high:
            yield Fault((*path, "min"), f"min {low} is more than max {high}")


EXPECTED = record(
    "what is expected",
    {
        "fields": mapped(_field),
        "pass_commands": listed(TEXT),
        "required_patterns": listed(_pattern),
        "forbidden_patterns": listed(_pattern),
    },
)
"""The shape of a task's ``expected``."""

_COMPARISON = either(
    record("a comparison", {"contains_patterns": listed(_pattern)}, required=("contains_patterns",)),
    one_of("exact", "semantic", "ast_equivalent"),
)
_NAMED = fits(lambda value: isinstance(value, str) and value != "", "a text that is not empty")

TASK = record(
    "a task",
    {
        "id": _NAMED,
        "goal": TEXT,
        "repo": record("a repo", {"source": TEXT, "ref_spec": TEXT, "ref": TEXT, "focus_files": listed(TEXT)}),
        "constraints": listed(_constraint),
        "gold_files": listed(
            record(
                "a gold file", {"path": TEXT, "content": TEXT, "comparison": _COMPARISON}, required=("path", "content")
            )
        ),
        "expected": EXPECTED,
        "metadata": record(
            "metadata",
            {
                "tags": listed(TEXT),
                "difficulty": SHARE,
                "estimated_time_secs": COUNT,
                "source": TEXT,
                "extra": mapped(ANY),
            },
        ),
    },
    required=("id", "goal"),
)
"""JSON form of a task."""

TASK_SET = record(
    "a task set",
    {
        "name": TEXT,
        "description": TEXT,
        "version": TEXT,
        "tasks": fits(lambda value: isinstance(value, list), "a list"),
    },
    required=("tasks",),
)
"""JSON form of a task set."""

_IN_CONTEXT = ("constraints", "gold_files", "expected", "metadata")


def as_subject(task: Mapping[str, Any], kind: str, task_set: Mapping[str, Any], row: Mapping[str, Any]) -> Subject:
    """Return the subject of *task*, with the values in *row* of the outputs. Both have been checked.

    Its input has the goal and the repository; the content of the gold file is the reference.
    """
    repo, gold, columns = task.get("repo") or {}, task.get("gold_files"), dict(row)
    values = {
        "goal": task["goal"],
        "repo_source": repo.get("source"),
        "repo_ref": repo.get("ref_spec") or repo.get("ref"),
        "focus_files": repo.get("focus_files"),
        "expected_commands": (task.get("expected") or {}).get("pass_commands"),
    }
    output, session = columns.pop("output", None), columns.pop("session_id", None)
    context = columns | {name: task[name] for name in _IN_CONTEXT if task.get(name) is not None}
    if task_set:
        context["task_set"] = dict(task_set)
    return Subject(
        kind,
        task["id"],
        {name: value for name, value in values.items() if value},
        output,
        gold[0]["content"] if gold else None,
        context,
        (),
        session,
    )
