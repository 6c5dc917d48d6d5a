"""Causes of failed verdicts, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ..verdicts.outcomes import Outcome

_WORDS = {
    "judge_call_failed": "the endpoint gave no reply",
    "judge_output_invalid": "the reply was not usable",
    "timeout": "the call took too long",
    "missing_input": "the subject lacks an input",
}
_STEPS = {
    "judge_call_failed": "check that it answers (dicast verdicts --failed lists the errors) and run the file again",
    "judge_output_invalid": "dicast verdicts --failed shows the replies",
}


def causes(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Yield one line for each cause among the failed *outcomes*, the most frequent first."""
    counts = Counter((outcome.failure, outcome.cap) for outcome in outcomes if outcome.failure is not None)
    for (kind, cap), count in counts.most_common():
        verdicts = f"{count:,} verdict{'s' if count > 1 else ''} failed"
        if cap is not None:
            yield f"{verdicts}: the cap {cap} prevented the call; raise it under 'budget' and run the file again"
        else:
            step = f"; {_STEPS[str(kind)]}" if kind in _STEPS else "; dicast verdicts --failed lists them"
            yield f"{verdicts}: {_WORDS.get(str(kind), 'the judge gave no verdict')} ({kind}){step}"
