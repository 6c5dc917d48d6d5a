from dicast import Classes, Metric, Score, Subject, hookimpl, metric
from local import politeness


@metric(tier="truth")
def polite(subject: Subject) -> Score:
    """Score the polite words of an output."""
    return Score(politeness(subject.text))


@hookimpl
def dicast_metrics() -> Classes[Metric]:
    return [polite]
