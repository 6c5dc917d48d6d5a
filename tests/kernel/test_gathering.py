"""Metrics that score many subjects at once: asked about those under way together, each answer checked as if it were alone."""

from __future__ import annotations

import asyncio
import math

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import Cost, Failure, Interrupted, Score
from dicast.testing import run_pipeline, sample


def single(subject):
    """Return the score for the output: a number is the score, a word a way to fail."""
    if subject.output == "raise":
        raise RuntimeError("on purpose")
    if subject.output == "fail":
        return Failure("refused", "on purpose")
    if subject.output == "odd":
        return Score(0.5, signals={"odd": object()})
    return {"none": None, "bare": 0.5}.get(subject.output) if isinstance(subject.output, str) else Score(subject.output)


@attrs.frozen
class Together:
    """A metric that notes how many subjects it is asked about at once."""

    tier = "proxy"
    sizes: list[int] = attrs.field(factory=list, eq=False)

    def score(self, subject):
        self.sizes.append(0)
        return single(subject)

    def score_batch(self, subjects):
        self.sizes.append(len(subjects))
        return [single(subject) for subject in subjects]


@attrs.frozen
class TogetherLater(Together):
    async def score(self, subject):
        return Together.score(self, subject)

    async def score_batch(self, subjects):
        await asyncio.sleep(0)
        return Together.score_batch(self, subjects)


@attrs.frozen
class Alone:
    tier = "proxy"

    def score(self, subject):
        return single(subject)


@attrs.frozen
class Answers(Together):
    """A judge with a predefined answer for a batch."""

    what: object = None

    def score_batch(self, subjects):
        self.sizes.append(len(subjects))
        return self.what(subjects)


def run(component, outputs, options="", concurrency=8):
    text = f"metrics: [it: {{as: it{options}}}]\nexecutor: {{dicast/async: {{concurrency: {concurrency}}}}}\n"
    subjects = [sample(output, id=str(n)) for n, output in enumerate(outputs)]
    return run_pipeline(text, subjects=subjects, components={"it": component})


def came_of(done):
    """Each subject's score or failure, in the order of the run."""
    ends = [event for event in done.events if event.type in ("eval.completed", "eval.failed")]
    keys = ("subject_id", "score", "signals", "failure_mode")
    return [tuple(event.payload.get(key) for key in keys) for event in ends]


EITHER = pytest.mark.parametrize("kind", [Together, TogetherLater])


@EITHER
def test_subjects_under_way_are_asked_about_together(kind):
    component = kind()
    done = run(component, [n / 20 for n in range(20)])
    assert done.document["scored"] == 20
    assert sum(component.sizes) == 20
    assert max(component.sizes) == 8
    assert len(component.sizes) <= 4


@pytest.mark.slow
@EITHER
@settings(max_examples=3 * settings.default.max_examples // 10, deadline=None)  # two runs
@given(
    outputs=st.lists(
        st.floats(0, 1) | st.sampled_from(["raise", "fail", "odd", "none", "bare"]), min_size=1, max_size=20
    ),
    concurrency=st.integers(1, 9),
)
def test_what_comes_of_it_is_what_comes_of_each_alone(kind, outputs, concurrency):
    assert came_of(run(kind(), outputs, concurrency=concurrency)) == came_of(run(Alone(), outputs))


@EITHER
def test_a_bad_answer_fails_its_own_subject(kind):
    component = kind()
    done = run(component, [0.25, "odd", "none", "fail", 1])
    assert component.sizes == [5]
    assert [end[3] for end in came_of(done)] == [None, "invalid_score", "invalid_score", "refused", None]


@EITHER
def test_a_batch_that_raises_is_asked_about_one_by_one(kind):
    component = kind()
    done = run(component, [0.25, "raise", 1])
    assert component.sizes == [3, 0, 0, 0]
    assert [end[3] for end in came_of(done)] == [None, "crashed", None]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (lambda subjects: [Score(1.0)], "returned 1 answers for 3 subjects"),
        (lambda subjects: [Score(1.0)] * 4, "returned 4 answers for 3 subjects"),
        (lambda subjects: None, "returned NoneType, not a list, for 3 subjects"),
        (lambda subjects: Score(1.0), "returned Score, not a list, for 3 subjects"),
    ],
)
def test_another_number_of_answers_fails_all_of_the_batch(what, message):
    done = run(Answers(what=what), [0.25, 0.5, 1])
    assert done.document["failures"] == {"crashed": 3}
    assert all(message in event.payload["error_message"] for event in done.of("eval.failed"))


def test_a_batch_that_takes_too_long_is_asked_about_one_by_one():
    def hang(subjects):
        while True:
            pass

    component = Answers(what=hang)
    assert run(component, [0.25, 1], ", timeout: 0.2").document["scored"] == 2
    assert component.sizes == [2, 0, 0]


def test_a_later_batch_that_takes_too_long_is_asked_about_one_by_one():
    async def hang(subjects):
        await asyncio.Event().wait()

    assert run(Answers(what=hang), [0.25, 1], ", timeout: 0.1").document["scored"] == 2


def test_numbers_on_another_scale_are_brought_to_ours():
    done = run(Answers(what=lambda subjects: [subject.output for subject in subjects]), [2, 11, 5], ", range: [0, 10]")
    assert [end[1] for end in came_of(done)] == [0.2, None, 0.5]
    assert done.document["failures"] == {"invalid_score": 1}


def test_nan_is_no_answer():
    done = run(Answers(what=lambda subjects: [math.nan] * len(subjects)), [1, 1])
    assert done.document["failures"] == {"invalid_score": 2}


def test_what_may_cost_is_asked_about_alone():
    @attrs.frozen
    class Paid(Together):
        tier = "truth"

        def estimate(self, subject):
            return Cost("0.01")

    component = Paid()
    assert run(component, [1, 1, 1]).document["scored"] == 3
    assert component.sizes == [0, 0, 0]


def test_an_exception_of_the_kernels_own_kind_is_the_metrics_fault():
    def raises(subjects):
        raise Interrupted("by nobody")

    assert run(Answers(what=raises), [1, 1]).document["scored"] == 2


def test_two_metrics_each_gather_their_own():
    first, second = Together(), TogetherLater()
    text = "metrics: [first, second]\nscoring: {threshold: 0, rollouts: 2}\n"
    subjects = [sample(1, id=str(n)) for n in range(10)]
    done = run_pipeline(text, subjects=subjects, components={"first": first, "second": second})
    assert done.document["scored"] == 10
    assert first.sizes == second.sizes == [10, 10]
