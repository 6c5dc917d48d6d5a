"""Metrics in worker processes: the verdicts of one process, and a worker that dies costs the call it was at."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import attrs
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dicast import ConfigError, PluginError, Score
from dicast.testing import FakeChatModel, run_pipeline, sample

pytestmark = pytest.mark.skipif(os.name != "posix", reason="worker processes of POSIX")

CPU = """
import ctypes, os, pathlib, re, signal, time

@metric(tier="proxy")
def act(subject, *, salt: int = 0):
    '''Do what the output says.'''
    match subject.output:
        case "die": os._exit(3)
        case "kill": os.kill(os.getpid(), signal.SIGKILL)
        case "crash": ctypes.string_at(0)
        case "busy":
            while True: pass
        case "regex": re.match(r"(a+)+$", "a" * 40 + "!")
        case "deaf":
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
            time.sleep(60)
        case "raise": raise RuntimeError("on purpose")
        case "exit": raise SystemExit(9)
        case "refused": raise AccessRefused("401 from nobody")
        case "none": return None
        case "nan": return Score(float("nan"))
        case "odd": return Score(0.5, signals={"odd": object()})
        case "fail": return Failure("refused", "on purpose")
        case "print": print("printed", flush=True)
        case "unreadable": return Score(1.0, signals=Unreadable(a=1))
        case "fork":
            if (child := os.fork()) == 0:
                time.sleep(60)
                os._exit(0)
            return Score(1.0, details=str(child))
    text = subject.text
    return Score(len(text) % 7 / 6, details=text[:20], signals={"length": len(text)}, raw=len(text))

class Unreadable(dict):
    def __reduce__(self): return int, ("no number",)

@metric(tier="truth")
def deep(subject, *, value: float = 0.5):
    '''Say the same.'''
    return Score(value)

@metric(tier="proxy")
def bare(subject):
    '''A number on another scale.'''
    return len(subject.text)

@metric(tier="proxy")
def where(subject):
    '''Say in which process it is asked.'''
    return Score(1.0, details=str(os.getpid()))

@metric(tier="proxy")
async def later(subject):
    '''Wait, and say where.'''
    return Score(1.0, details=str(os.getpid()))

@attrs.frozen
class Asks:
    '''Has a model inside.'''
    tier = "truth"
    model: ChatModel
    def score(self, subject): return Score(1.0, details=str(os.getpid()))

@attrs.frozen
class Opens:
    '''Is opened.'''
    tier = "proxy"
    def open(self, run): raise NotImplementedError
    def score(self, subject): raise NotImplementedError

@attrs.frozen
class Together:
    '''Scores many at once.'''
    tier = "proxy"
    def score(self, subject): return Score(1.0)
    def score_batch(self, subjects): return [Score(1.0, details=str(os.getpid()))] * len(subjects)

@attrs.frozen
class Stays:
    '''Cannot be loaded anywhere else: with *file* its loading there ends the process, as soon as the file is there.'''
    tier = "proxy"
    file: str = ""
    pickles: bool = True
    def __reduce__(self):
        if not self.pickles: raise TypeError("no pickling")
        return load, (self.file,)
    def score(self, subject):
        if subject.output == "die":
            pathlib.Path(self.file).touch()
            os._exit(3)
        return Score(1.0, details=str(os.getpid()))

def load(file):
    if not file: raise LookupError("not here")
    if pathlib.Path(file).exists(): os._exit(5)
    return Stays(file)

@hookimpl
def dicast_metrics(): return [act, deep, bare, where, later, Asks, Opens, Together, Stays]
"""


@pytest.fixture
def cpu(plugin):
    return plugin("cpu", CPU)


def run(metrics, outputs, executor="dicast/processes: {workers: 2}", extra="", **components):
    text = f"metrics: {metrics}\nexecutor: {{{executor}}}\ngate: {{min_coverage: 0}}\n{extra}"
    return run_pipeline(text, subjects=[sample(output, id=str(n)) for n, output in enumerate(outputs)], **components)


def found(done):
    """Return the result of a run, without the parts that differ between two equal runs."""
    neutral = {"eval_id": "", "created_at": "", "run_id": "", "judge_latency_ms": 0}
    failed = [
        (event.subject_id, event.payload["failure_mode"], event.payload["error_message"]) for event in failures(done)
    ]
    return [attrs.evolve(verdict, **neutral) for verdict in done.verdicts], failed


def failures(done):
    return done.of("eval.failed")


def places(done):
    """The processes that the metrics say they were asked in."""
    return {item["details"] for verdict in done.verdicts for item in verdict.scores}


OUTPUTS = st.lists(
    st.sampled_from(["raise", "exit", "none", "nan", "odd", "fail"]) | st.text() | st.just({"a": [1]}), max_size=40
)


@pytest.mark.slow
@pytest.mark.usefixtures("cpu")
@settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(OUTPUTS.filter(bool), st.sampled_from([0.1, 0.5]), st.sampled_from([1, 2]))
def test_verdicts_and_failures_are_those_of_one_process(outputs, threshold, rollouts):
    metrics = (
        "[cpu/act, {cpu/act: {as: soft, on_failure: exclude}}, {cpu/bare: {range: [0, 1000]}}, cpu/deep, cpu/together]"
    )
    extra_text = f"scoring: {{threshold: {threshold}, rollouts: {rollouts}, audit: {{rate: 0.5}}}}\n"
    assert found(run(metrics, outputs, extra=extra_text)) == found(
        run(metrics, outputs, "dicast/async: {}", extra_text)
    )


@pytest.mark.slow
@pytest.mark.usefixtures("cpu")
def test_verdicts_come_in_the_order_of_the_subjects():
    outputs = ["x" * (n % 50) for n in range(1500)]
    done = run("[cpu/act]", outputs)
    assert [verdict.subject_id for verdict in done.verdicts] == [str(n) for n in range(1500)]
    assert found(done) == found(run("[cpu/act]", outputs, "dicast/async: {}"))


@pytest.mark.slow
@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize(
    ("word", "how"),
    [("die", "ended with exit code 3"), ("kill", "was killed by SIGKILL"), ("crash", "was killed by SIGSEGV")],
)
def test_a_worker_that_dies_costs_its_subject_and_no_other(word, how):
    outputs = [word if n % 20 == 7 else "fine" for n in range(60)]
    done = run("[cpu/act]", outputs)
    died = [str(n) for n, output in enumerate(outputs) if output == word]
    assert [event.subject_id for event in failures(done)] == died
    assert {(event.payload["failure_mode"], event.payload["error_message"]) for event in failures(done)} == {
        ("crashed", f"cpu/act: its worker process {how}")
    }
    assert done.document["scored"] == 57
    assert [verdict.subject_id for verdict in done.verdicts] == [str(n) for n in range(60) if str(n) not in died]


@pytest.mark.slow
@pytest.mark.usefixtures("cpu")
def test_workers_that_die_again_and_again_cost_no_other_subject():
    outputs = ["die" if n % 2 else "fine" for n in range(14)]
    done = run("[cpu/act, cpu/act: {as: other}]", outputs, "dicast/processes: {workers: 1}")
    assert [verdict.subject_id for verdict in done.verdicts] == [str(n) for n in range(0, 14, 2)]
    assert done.document["failures"] == {"crashed": 7}


@pytest.mark.usefixtures("cpu")
def test_a_metric_that_is_excused_leaves_the_subject_its_others():
    done = run("[{cpu/act: {on_failure: exclude}}, cpu/deep]", ["fine", "die", "fine"])
    assert [verdict.skipped for verdict in done.verdicts] == [(), ({"metric": "cpu/act", "reason": "crashed"},), ()]


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("word", ["busy", "regex", "deaf"])
def test_a_call_that_takes_too_long_is_ended_also_where_it_hears_no_timer(word):
    began = time.monotonic()
    done = run("[cpu/act: {timeout: 0.3}]", ["fine", word, "fine", "fine"])
    assert time.monotonic() - began < 30
    (event,) = failures(done)
    assert (event.subject_id, event.payload["failure_mode"]) == ("1", "timeout")
    assert event.payload["error_message"] == "cpu/act: no answer within 0.3 s"
    assert done.document["scored"] == 3


@pytest.mark.slow
@pytest.mark.usefixtures("cpu")
def test_a_timeout_is_tried_again():
    done = run("[cpu/act: {timeout: 0.5, retries: 1}]", ["busy", "fine"])
    assert done.document["failures"] == {"timeout": 1}


@pytest.mark.slow
@pytest.mark.usefixtures("cpu")
def test_metrics_that_compute_are_asked_in_workers_and_the_others_here():
    here, model = str(os.getpid()), {"model": FakeChatModel("")}
    there = places(run("[cpu/where]", "abcdefgh"))
    assert here not in there
    assert 1 <= len(there) <= 2
    assert places(run("[cpu/later]", "abc")) == {here}
    assert places(run("[cpu/asks: {model: model}]", "abc", components=model)) == {here}
    assert places(run("[cpu/together]", "abc")) == {here}
    assert places(run("[cpu/stays]", "abc")) == {here}
    assert len(places(run("[cpu/where, cpu/later]", "abc", "dicast/processes: {workers: 1}"))) == 2


@pytest.mark.usefixtures("cpu")
def test_no_worker_is_left_after_the_run():
    for place in places(run("[cpu/where]", "abcdefgh")):
        with pytest.raises(ProcessLookupError):
            os.kill(int(place), 0)


@pytest.mark.slow
@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("then", ["fine", "die"])
def test_what_a_metric_forks_ends_with_its_worker_and_keeps_nobody_waiting(then):
    began = time.monotonic()
    done = run("[cpu/act: {timeout: 5}]", ["fork", then], "dicast/processes: {workers: 1}")
    assert time.monotonic() - began < 30
    assert done.document["failures"] == ({"crashed": 1} if then == "die" else {})
    child = next(verdict.scores[0]["details"] for verdict in done.verdicts if verdict.subject_id == "0")
    while lives(child) and time.monotonic() - began < 50:
        time.sleep(0.01)
    assert not lives(child)


@pytest.mark.slow
@pytest.mark.usefixtures("cpu")
def test_an_answer_that_cannot_be_read_fails_its_subject_and_nothing_hangs():
    done = run("[cpu/act]", ["fine", "unreadable"], "dicast/processes: {workers: 1}")
    assert [event.subject_id for event in failures(done)][-1] == "1"
    assert "crashed" in done.document["failures"]


def lives(pid):
    try:
        os.kill(int(pid), 0)
        stat = Path(f"/proc/{pid}/stat").read_text()  # one that has ended, and nobody has asked how, is still listed
    except (ProcessLookupError, FileNotFoundError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@attrs.frozen
class OfTheTest:
    """A metric of a module that a worker cannot import."""

    tier = "proxy"

    def score(self, subject):
        return Score(1.0, details=str(os.getpid()))


def test_a_metric_that_a_worker_cannot_import_is_asked_here(only_here):
    only_here(OfTheTest)
    assert places(run("[mine]", "abc", components={"mine": OfTheTest()})) == {str(os.getpid())}


@dataclass
class Odd:
    text: str


@pytest.fixture
def only_here(monkeypatch):
    """Let a class be of a module that no other process can import."""

    def change(cls):
        module = ModuleType("made_for_this_test")
        setattr(module, cls.__name__, cls)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(cls, "__module__", module.__name__)

    return change


@pytest.mark.usefixtures("cpu")
def test_a_subject_that_cannot_be_sent_is_judged_here():
    @dataclass
    class Local:
        text: str

    assert str(os.getpid()) in places(run("[cpu/where]", [Local("x")]))


@pytest.mark.usefixtures("cpu")
def test_a_subject_that_a_worker_cannot_read_is_a_failure_that_says_so(only_here):
    only_here(Odd)
    (event,) = failures(run("[cpu/where]", [Odd("x"), "y"]))
    assert event.subject_id == "0"
    assert "use dicast/async" in event.payload["error_message"]


@pytest.mark.usefixtures("cpu")
def test_an_access_that_is_refused_ends_the_run():
    done = run("[cpu/act]", ["fine", "refused", *["fine"] * 500])
    assert done.document["stopped"] == {"reason": "refused_by_provider", "message": "401 from nobody"}


@pytest.mark.usefixtures("cpu")
def test_what_a_metric_prints_does_not_get_among_the_answers(capfd):
    assert run("[cpu/act]", ["print"] * 3).document["scored"] == 3
    out, err = capfd.readouterr()
    # Two processes write: the end of one's line may come after the other's beginning.
    assert (out, err.count("printed"), err.replace("printed", "").strip()) == ("", 3, "")


@pytest.mark.usefixtures("cpu")
def test_a_worker_that_cannot_start_is_an_error_before_anything_is_judged(tmp_path):
    (tmp_path / "there").touch()
    with pytest.raises(PluginError, match="did not start: it ended with exit code 5"):
        run(json.dumps([{"cpu/stays": {"file": str(tmp_path / "there")}}]), "abc")


@pytest.mark.usefixtures("cpu")
def test_where_no_worker_can_be_started_any_more_the_rest_fails(tmp_path):
    metrics = json.dumps([{"cpu/stays": {"file": str(tmp_path / "there")}}])
    done = run(metrics, ["a", "die", *"bcdefghij"], "dicast/processes: {workers: 1}")
    message = {event.subject_id: event.payload["error_message"] for event in failures(done)}
    assert message.pop("1") == "cpu/stays: its worker process ended with exit code 3"
    message.pop("0", None)  # it may have been judged, and told, before
    assert set(message) == {str(n) for n in range(2, 11)}
    assert set(message.values()) == {
        "cpu/stays: a worker process of dicast/processes did not start: it ended with exit code 5"
    }


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("option", ["workers", "concurrency"])
def test_an_option_below_one_is_refused(option):
    with pytest.raises(ConfigError, match=f"{option}, expected 1 or more, got 0"):
        run("[cpu/where]", "a", f"dicast/processes: {{{option}: 0}}")
