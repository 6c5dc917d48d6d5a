"""Random promptfoo configurations with echoed outputs, for a comparison of verdicts."""

from __future__ import annotations

import random
from typing import Any

TEXTS = [
    "The capital of Peru is Lima.", "lima", "Lima, Peru", "I can't help with that.", "As an AI, no.", "Sorry", '{"a": 1}', "[1, 2]",
    'text {"a": {"b": [1, "x"]}} more', '{"a": "1"} {"b": 2}', "one two three", "  spaced  out  ", "größer als", "ÀÉ î", "a\tb\nc",
    '"quoted, text"', "1,234.50", "true", "null", "42", "x" * 50, "U.S. and U.K.", "it's John's dog, isn't it?", 'He said "yes" (twice).',
    "line1\r\nline2", "not appropriate", "We cannot comply",
]  # fmt: skip
WORDS = ["Lima", "lima", "a", "two", "[0-9]+", "^T", r"\w+$", "x{3}", "(a|b)", r"\d", "é", "1", "b c"]
SCHEMAS = [
    None,
    {"type": "object"},
    {"required": ["a"]},
    {"properties": {"a": {"type": "integer"}}},
    {"type": "array"},
    '{"type": "object"}',
]
KINDS = [
    "contains", "icontains", "contains-any", "contains-all", "icontains-any", "icontains-all", "starts-with", "equals", "regex", "is-json",
    "contains-json", "levenshtein", "word-count", "is-refusal",
]  # fmt: skip


class Generator:
    """Makes tests from a *seed*."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  # examples, no secrets

    def configuration(self, count: int) -> dict[str, Any]:
        """Return a configuration with *count* tests."""
        return {"prompts": ["{{out}}"], "providers": ["echo"], "tests": [self._test() for _ in range(count)]}

    def _test(self) -> dict[str, Any]:
        output = self._choose(TEXTS)
        asserts = [self._assertion(output) for _ in range(self._choose([1, 1, 2, 3]))]
        if self._rarely():
            asserts = [{"type": "assert-set", "assert": asserts, "threshold": self._choose([0.3, 0.5, 0.75, 1])}]
        options = {"threshold": self._choose([0, 0.25, 0.5, 0.8, 1])} if self._rarely() else {}
        return {"vars": {"out": output}, "assert": asserts, **options}

    def _assertion(self, output: str) -> dict[str, Any]:
        kind = self._choose(KINDS)
        weight = {"weight": self._choose([0.5, 2, 3])} if self._rarely() else {}
        return {"type": f"{'not-' if self._rarely() else ''}{kind}", **self._options(kind, output), **weight}

    def _options(self, kind: str, output: str) -> dict[str, Any]:
        word, other = self._choose(WORDS), self._choose(WORDS)
        if kind in ("contains", "icontains", "starts-with", "equals"):
            return {"value": self._choose([self._part(output), self._choose(TEXTS), word])}
        if kind in ("contains-any", "contains-all", "icontains-any", "icontains-all"):
            return {"value": self._choose([[self._part(output), word], f"{word}, {other}", f'"{word}, x" , {other}'])}
        if kind == "regex":
            return {"value": self._choose([word, f"^{word}", "[A-Z][a-z]+"])}
        if kind in ("is-json", "contains-json"):
            schema = self._choose(SCHEMAS)
            return {} if schema is None else {"value": schema}
        if kind == "levenshtein":
            limit = {"threshold": self.random.randint(0, 10)} if self._rarely() else {}
            return {"value": self._choose([f"{output[:-2]}z", self._choose(TEXTS), output.upper()]), **limit}
        if kind == "word-count":
            least = self.random.randint(1, 5)
            return {"value": self._choose([least, str(least), {"min": least, "max": least + 2}, {"max": least}])}
        return {}

    def _part(self, text: str) -> str:
        start = self.random.randrange(len(text))
        return text[start : self.random.randrange(start, len(text)) + 1]

    def _choose(self, values: list[Any]) -> Any:
        return self.random.choice(values)

    def _rarely(self) -> bool:
        return self.random.random() < 0.25  # noqa: PLR2004  # one of four
