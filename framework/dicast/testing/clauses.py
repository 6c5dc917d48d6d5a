"""Checks for keys of the gate that plugins add."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from math import isfinite
from typing import Any

import attrs
import pytest

from .._kernel.contract.implements import implements
from .._kernel.contract.plugin_errors import describe_error, in_brackets, place_of
from .._kernel.contract.registry import gate_clauses, load_gate_clause
from .._kernel.pipeline.clause import missing_members
from .._kernel.plan.clauses import Clause, Finding, GateClause, GatedFile, GatedRun
from .conformance import Contract
from .fakes import FakeMetric
from .members import undocumented, unread_fault
from .pipeline import run_pipeline
from .subjects import sample

_SUBJECTS = tuple(sample("text", id=str(number)) for number in range(4))
_BEFORE = (Finding("metrics", "min_score", 0.5, 1.0, True, "the mean is 1.00", 0.9, 1.0),)


class GateClauseConformance(Contract):
    """Checks for a class that adds keys to the clauses of the gate. Name a key with ``clause = "least_scored"``.

    - ``options``: the keys of a valid clause, such as ``{"least_scored": 20}``.
    - ``invalid``: the keys of a clause with a fault, such as ``{"least_scored": -1}``, if ``faults`` yields any.
    """

    clause: str
    options: Mapping[str, object] = {}
    invalid: Mapping[str, object] = {}

    @pytest.fixture
    def cls(self) -> type[Any]:
        """Return the class of the key."""
        return load_gate_clause(self.clause)

    @property
    def keys(self) -> list[str]:
        """The keys of the class: the entry points with its target."""
        offers = gate_clauses()
        return [key for key, offer in offers.items() if offer.target == offers[self.clause].target]

    def gated_run(self, on: str = "metrics") -> GatedRun:
        """Return the figures of a small run with the metrics ``m`` and ``n`` for a clause about the label *on*, also one of these metrics."""
        components = {"m": FakeMetric(), "n": FakeMetric()}
        document = run_pipeline("metrics: [m, n]", subjects=_SUBJECTS, components=components).document
        return GatedRun(on, "point", document, dict.fromkeys(("metrics", "m", "n"), "0" * 64), {})

    def decided(self, cls: type[Any], findings: Sequence[Finding], run: GatedRun) -> list[Finding]:
        """Return the findings of the clause about *run*."""
        try:
            answer = cls(**self.options).decide(findings, run)
            if not isinstance(answer, Iterable):
                place = in_brackets(place_of(cls.decide))
                pytest.fail(f"{self.clause}: decide returned {answer!r:.100}, not the findings{place}")
            return list(answer)
        except Exception as error:
            raise AssertionError(f"{self.clause}: decide raised {describe_error(error, cls.__module__)}") from error

    def test_class_is_a_frozen_clause_with_a_field_for_each_key(self, cls: type[Any]) -> None:
        """A key without a field is refused, and a field without a key cannot be written."""
        assert attrs.has(cls), f"{cls.__qualname__} is not an attrs class; decorate it with @attrs.frozen"
        clause = cls(**self.options)
        assert implements(clause, GateClause), missing_members(cls)
        fields = {field.name for field in attrs.fields(cls) if field.init}
        assert fields == set(self.keys), (
            f"{cls.__qualname__} has the fields {sorted(fields)}, and the entry points are {sorted(self.keys)}"
        )
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(clause, self.clause, None)

    def test_every_key_is_documented(self, cls: type[Any]) -> None:
        """The description of a key is in the JSON Schema for editors."""
        silent = undocumented(cls, "")
        assert not silent, f"the docstring of {cls.__qualname__} does not mention {', '.join(silent)}"

    def test_every_key_is_read(self, cls: type[Any]) -> None:
        """A key that no code reads decides nothing."""
        fault = unread_fault("executor", cls)
        assert fault is None, f"{fault}. Such a key has no effect"

    def test_label_key_is_a_key_of_the_class(self, cls: type[Any]) -> None:
        """The kernel looks for the ``label_key`` in the file."""
        key = cls(**self.options).label_key
        assert key is None or key in self.keys, f"label_key is {key!r}, none of {sorted(self.keys)}"

    def test_faults_name_keys_of_the_class(self, cls: type[Any]) -> None:
        """A fault is reported at the place of its key. The valid ``options`` have none."""
        for options in (self.options, self.invalid):
            file = GatedFile("metrics", has_audit=True, audited=("metrics",))
            faults = list(cls(**options).faults(Clause(on="metrics"), file))
            wrong = [
                fault
                for fault in faults
                if not (isinstance(fault, tuple) and len(fault) == 2 and fault[0] in self.keys)
            ]
            assert not wrong, f"faults() yields {wrong[0]!r}, not a key of {sorted(self.keys)} and a message"
            is_valid = options is self.options
            assert not (is_valid and faults), f"the valid options {dict(options)} have a fault: {faults[0]}"
            assert is_valid or faults or not options, f"the invalid options {dict(options)} have no fault"

    def test_keeps_the_findings_of_the_kernel(self, cls: type[Any]) -> None:
        """A clause adds findings; without the kernel's own a failed rule would pass. It may replace a finding of the same rule."""
        findings = self.decided(cls, _BEFORE, self.gated_run())
        rules = [(finding.on, finding.rule) for finding in findings]
        lost = [finding.rule for finding in _BEFORE if (finding.on, finding.rule) not in rules]
        assert not lost, f"{self.clause} drops the finding about {lost[0]}; return [*findings, …]"

    def test_findings_can_be_recorded(self, cls: type[Any]) -> None:
        """A finding has a rule, a reason, and an answer: True, False or None."""
        for on in ("metrics", "m"):
            findings = self.decided(cls, (), self.gated_run(on))
            wrong = [fault for finding in findings for fault in _faults(finding)]
            assert not wrong, f"{self.clause}: {wrong[0]}"

    def test_decides_the_same_again_and_leaves_the_run_as_it_was(self, cls: type[Any]) -> None:
        """A gate is decided again from the ledger."""
        run = self.gated_run()
        before = deepcopy(run.document)
        first, second = (self.decided(cls, _BEFORE, run) for _ in range(2))
        assert run.document == before, f"{self.clause} changes the document of the run; change a copy (copy.deepcopy)"
        assert first == second, f"{self.clause} decides otherwise the second time"


def _faults(finding: object) -> list[str]:
    if not isinstance(finding, Finding):
        return [f"decide returned {finding!r:.100}, not a Finding"]
    answers = (
        [f"passed is {finding.passed!r}, not True, False or None"] if finding.passed not in (True, False, None) else []
    )
    numbers = (finding.line, finding.value, finding.low, finding.high)
    infinite = [
        f"{number} is not a finite number" for number in numbers if isinstance(number, float) and not isfinite(number)
    ]
    return [*answers, *infinite, *([] if finding.reason else ["a finding has no reason"])]
