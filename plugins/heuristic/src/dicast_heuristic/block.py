"""Check of a workload's ``evaluate:`` block, as strict as the check of a pipeline's options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from dicast import ConfigError, Problem, nearest

Check = tuple[Callable[[object], bool], str]
"""A test of a value, and a description of valid values."""


def _one_of(*choices: str) -> Check:
    return lambda value: isinstance(value, str) and value in choices, " or ".join(map(repr, choices))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) and text for text in value)


_TEXT: Check = (lambda value: isinstance(value, str), "a text")
_TEXTS: Check = (_are_texts, "a list of texts that are not empty")
_MAPPING: Check = (lambda value: isinstance(value, Mapping), "a mapping")
BLOCK: Mapping[str, Check] = {
    "rubric": _one_of("heuristic", "llm", "hybrid"),
    "expect_substring_in_final_response": _TEXT,
    "llm_judge_model": _TEXT,
    "weight_per_turn": (_is_number, "a number, 0 or more"),
    "grounding_tokens": _TEXTS,
    "forbidden_grounding": _TEXTS,
    "partial_credit": _MAPPING,
}
PARTIAL_CREDIT: Mapping[str, Check] = {
    "enabled": (lambda value: isinstance(value, bool), "true or false"),
    "criterion": _one_of("test_pass_count_ratio"),
    "map": _one_of("linear", "stepped"),
}


def check_block(block: object) -> Mapping[str, Any]:
    """Return *block* unchanged if it is valid; null is a default.

    :raises ConfigError: with every fault of the block.
    """
    problems = list(_problems(block, BLOCK, "evaluate"))
    if isinstance(block, Mapping) and isinstance(credit := block.get("partial_credit"), Mapping):
        problems += _problems(credit, PARTIAL_CREDIT, "partial_credit")
    if problems or not isinstance(block, Mapping):
        raise ConfigError(problems)
    return block


def _problems(data: object, checks: Mapping[str, Check], name: str) -> Iterator[Problem]:
    if not isinstance(data, Mapping):
        yield Problem(f"{name} is a mapping, not {data!r:.80}", path=name, value=data)
        return
    if unknown := sorted(str(key) for key in data if key not in checks):
        yield Problem(f"unknown {name} keys: {unknown}", path=name, value=unknown, hint=nearest(unknown[0], checks))
    for key, (is_valid, description) in checks.items():
        value = data.get(key)
        if value is not None and not is_valid(value):
            yield Problem(f"{key} is {description}, not {value!r:.80}", path=f"{name}.{key}", value=value)


def options(cls: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return checked *data* as options of *cls*: null becomes the default, a list a tuple."""
    defaults = {field.name: field.default for field in attrs.fields(cls)}
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    return {key: defaults[key] if value is None else value for key, value in values.items()}
