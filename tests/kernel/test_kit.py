"""The kit for plugin authors: each check detects its fault, fakes record their calls, runs leave nothing behind."""

from __future__ import annotations

import asyncio
import importlib
import pickle
import re
import subprocess
import sys
import time
from contextlib import nullcontext
from textwrap import dedent, indent

import pytest

from dicast import (
    ChatRequest,
    ConfigError,
    Cost,
    Failure,
    Judgment,
    LedgerError,
    Message,
    PluginError,
    Query,
    Reply,
    Score,
    ScoringError,
    Usage,
)
from dicast.testing import (
    GOLDEN,
    REQUESTS,
    ChatModelConformance,
    ComparisonConformance,
    FakeChatModel,
    FakeJudge,
    FakeMetric,
    JudgeConformance,
    LedgerConformance,
    MemoryLedger,
    MemorySink,
    MetricConformance,
    SinkConformance,
    SourceConformance,
    run_pipeline,
    sample,
)
from dicast.testing.members import unread_fault
from dicast.testing.pipeline import Bench, typical_events

CONTRACTS = {
    "metric": MetricConformance,
    "judge": JudgeConformance,
    "model": ChatModelConformance,
    "source": SourceConformance,
    "sink": SinkConformance,
}
SCORES = "def score(self, subject): return Score(1.0)"
JUDGES = "def judge(self, subject, children): return Judgment(1.0)"


@pytest.fixture
def check(plugin, tmp_path, monkeypatch):
    """Run one inherited check on a component that has *body*: ``check("test_is_frozen", "metric", "body")``."""

    def run(test, kind, body, doc="A component.", **attributes):
        module = f"import asyncio, contextlib, dicast.toolkit.rate_limit, pathlib, socket, time\n@attrs.frozen\nclass X:\n    '''{doc}'''\n    name = 'x'\n"
        module += indent(f"tier = 'proxy'\n{dedent(body)}", "    ")
        plugin("x", f"{module}\n@hookimpl\ndef dicast_{kind}s(): return [X]\n")
        contract = type("TestX", (CONTRACTS[kind],), {kind: "x/x", **attributes})()
        bench = Bench(tmp_path, contract.components)
        components = {"bench": bench, "monkeypatch": monkeypatch, "events": typical_events()}
        method = getattr(contract, test)
        wanted = method.__code__.co_varnames[1 : method.__code__.co_argcount]
        if "component" in wanted:
            components["component"] = bench.build(kind, "x/x", contract.options)
        method(**{name: components[name] for name in wanted})

    return run


ANSWERS = "test_answers_every_subject_with_a_score_or_a_failure"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "body", "found"),
    [
        (ANSWERS, "def score(self, subject): return 0.5", r"unicode: returned 0\.5, not a Score"),
        (ANSWERS, "def score(self, subject): return Score(len(subject.output))", "no-output: raised TypeError"),
        (ANSWERS, "def score(self, subject): return Score(1.0, signals={'x': object()})", "signals that are not JSON"),
        ("test_estimate_is_a_cost", f"{SCORES}\ndef estimate(self, subject): return 0.01", r"dicast\.Cost, not 0\.01"),
        (
            "test_costs_no_more_than_the_estimate",
            "def score(self, subject): return Score(0.5, cost=dicast.Cost('0.002'))",
            r"x/x about .*: costs 0\.002 usd without an estimate; add estimate",
        ),
        (
            "test_costs_no_more_than_the_estimate",
            """
            def estimate(self, subject): return dicast.Cost("0.001")
            @contextlib.asynccontextmanager
            async def open(self, run): yield type("Live", (), {"score": self.score})()
            def score(self, subject): return Score(0.5, cost=dicast.Cost("0.002"))
            """,
            r"costs 0\.002 usd, more than the estimate of 0\.001 usd",
        ),
        ("test_every_option_is_documented", f"words: int = 1\n{SCORES}", "does not mention words"),
        (
            "test_options_survive_a_round_trip",
            f"words: int = attrs.field(default=1, converter=lambda given: given + 1)\n{SCORES}",
            "build another component",
        ),
        (
            "test_same_subject_gets_the_same_answer",
            """
            seen: list = attrs.field(factory=list, init=False, eq=False)
            def score(self, subject):
                self.seen.append(1)
                return Score(1 / len(self.seen))
            """,
            "other answers the second time, about empty, ",
        ),
        (
            "test_leaves_the_subject_as_it_was",
            """
            def score(self, subject):
                subject.context["seen"] = True
                return Score(1.0)
            """,
            "assert",
        ),
        (
            "test_def_is_quick",
            """
            def score(self, subject):
                end = time.thread_time() + 0.06
                while time.thread_time() < end: pass
                return Score(1.0)
            """,
            "takes more than 50 ms of CPU about",
        ),
    ],
)
def test_checks_of_metrics_find_what_is_wrong(check, test, body, found):
    with pytest.raises(AssertionError, match=found):
        check(test, "metric", body, subjects=[*GOLDEN[:6], sample("x", context={})])


def test_failures_and_scoring_errors_are_answers(check):
    body = """
    def score(self, subject):
        if subject.output:
            raise ScoringError("no")
        return Failure("refused", "no")
    """
    check(ANSWERS, "metric", body)


def test_what_samples_may_answer_anew(check):
    body = """
    seen: list = attrs.field(factory=list, init=False, eq=False)
    def score(self, subject):
        self.seen.append(1)
        return Score(1 / len(self.seen))
    """
    check("test_same_subject_gets_the_same_answer", "metric", body, deterministic=False)


@pytest.mark.parametrize("is_queued", [False, True])
def test_time_that_a_busy_machine_takes_is_not_the_component_s(check, monkeypatch, is_queued):
    body = "def score(self, subject):\n    time.sleep(0.3)\n    return Score(1.0)\n"
    monkeypatch.setattr("dicast.testing.watching._queued_seconds", time.monotonic if is_queued else lambda: 0.0)
    with nullcontext() if is_queued else pytest.raises(AssertionError, match="blocks the event loop for 0.3"):
        check("test_leaves_the_event_loop_free", "metric", body, subjects=[sample("x")])


def test_judge_that_swallows_its_cancellation_is_found(check, monkeypatch):
    monkeypatch.setattr("dicast.testing.judging.CANCEL_SECONDS", 0.05)
    body = """
    async def judge(self, subject, children):
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            await asyncio.sleep(0.2)
        return Judgment(1.0)
    """
    with pytest.raises(AssertionError, match="still running 0.05 s after being canceled, about sample"):
        check("test_cancelled_call_ends", "judge", body, subjects=[sample("x")])


def test_judge_that_lets_itself_be_cancelled_passes(check):
    body = """
    async def judge(self, subject, children):
        await asyncio.sleep(9)
        return Judgment(1.0)
    """
    check("test_cancelled_call_ends", "judge", body, subjects=[sample("x")])


def test_judge_of_an_odd_kind_needs_subjects_of_it(check):
    body = f"accepts = ('molecule',)\n{JUDGES}"
    with pytest.raises(AssertionError, match="none of the subjects is of these kinds; give it some"):
        check(ANSWERS, "judge", body)


def test_component_without_a_docstring_is_found(check):
    with pytest.raises(AssertionError, match="needs a docstring"):
        check("test_has_name_version_and_summary", "metric", SCORES, doc="")


def test_rubrics_secrets_paths_and_nested_components_survive_a_round_trip(check, tmp_path):
    (tmp_path / "r.yaml").write_text("id: r\nversion: '1'\n")
    body = f"""
    rubric: Rubric
    key: Secret
    grader: Judge
    price: Cost
    path: pathlib.Path = pathlib.Path("out/here")
    words: tuple[str, ...] = ("a", "b")
    {SCORES}
    """
    options = {"rubric": "r.yaml", "key": "s3cret", "grader": "fake", "price": "0.01 usd", "path": "there"}
    check("test_options_survive_a_round_trip", "metric", body, options=options, components={"fake": FakeJudge()})


def test_network_while_building_is_found(check):
    body = f"""
    {SCORES}
    def __attrs_post_init__(self):
        socket.getaddrinfo("localhost", 80)
    """
    with pytest.raises(ConfigError, match="the network was used while the component was built"):
        check("test_building_uses_no_network", "metric", body)


def test_component_that_cannot_be_pickled_is_found(check):
    body = f"call: object = attrs.field(factory=lambda: lambda: 1, init=False)\n{SCORES}"
    with pytest.raises((AttributeError, pickle.PicklingError)):
        check("test_can_be_pickled", "metric", body)


REPLIES = "async def complete(self, request): return Reply('yes')"
ANSWERED = "test_answers_every_request_with_a_reply_or_a_failure"


@pytest.mark.parametrize(
    ("test", "body", "found"),
    [
        (ANSWERED, "def complete(self, request): return 'yes'", r"requests\[0\]: returned 'yes', not a Reply"),
        (ANSWERED, "def complete(self, request): return 1 / 0", "raised ZeroDivisionError.* or raise AccessRefused"),
        (ANSWERED, "def complete(self, request): return Reply(None)", "text is None, not a text"),
        (ANSWERED, "def complete(self, request): return Reply('', cost=0)", r"cost is 0, not a dicast\.Cost"),
        (ANSWERED, "def complete(self, request): return Reply('', usage=Usage(-1, 0))", "usage is Usage"),
        (ANSWERED, "def complete(self, request): return Reply('', logprobs=(Token('a', 0.5),))", "logprobs are"),
        (ANSWERED, "def complete(self, request): return Reply('', metrics={'x': object()})", "metrics are not JSON"),
        (
            ANSWERED,
            "def complete(self, request): return Reply('', retry={'attempts': 2})",
            "retry is {'attempts': 2}, not",
        ),
        (
            ANSWERED,
            """
            def complete(self, request):
                tried = [{'attempt': 3, 'error': '500'}]
                return Failure('timeout', '', retry={'attempts': 2, 'max_attempts': 2, 'history': tried})
            """,
            "retry is .*numbered from 1",
        ),
        ("test_estimate_is_a_cost", f"{REPLIES}\ndef estimate(self, request): return 0.01", r"dicast\.Cost, not 0\.01"),
        (
            "test_costs_no_more_than_the_estimate",
            """
            def complete(self, request): return Reply("", cost=Cost("0.03"))
            def estimate(self, request): return Cost("0.02")
            """,
            r"requests\[0\]: costs 0\.03 usd, more than the estimate of 0\.02 usd",
        ),
        (
            "test_identity_is_json_without_secrets",
            f"key: Secret = Secret('s3cret')\n{REPLIES}\ndef identity(self): return {{'key': self.key.value}}",
            "holds a secret",
        ),
        ("test_identity_is_json_without_secrets", f"{REPLIES}\ndef identity(self): return 'x'", "return a mapping"),
        (
            "test_repr_holds_no_secret",
            f"key: Secret = Secret('s3cret')\n{REPLIES}\ndef __repr__(self): return self.key.value",
            "assert not",
        ),
        (
            "test_has_the_methods_of_its_kind",
            "@contextlib.asynccontextmanager\nasync def open(self, run): yield 1",
            "==",
        ),
    ],
)
def test_checks_of_chat_models_find_what_is_wrong(check, test, body, found):
    with pytest.raises(AssertionError, match=found):
        check(test, "model", body)


def test_chat_model_that_fails_or_is_refused_has_answered(check):
    body = """
    def complete(self, request):
        if request.attempt:
            raise AccessRefused("no")
        return Failure("timeout", "no answer")
    """
    check(ANSWERED, "model", body)


DEAD = "test_a_dead_endpoint_ends_the_run"
FAILS = """
url: str = ''
seen: object = attrs.field(factory=lambda: dicast.toolkit.rate_limit.Reachability(10, 50), init=False, eq=False)
async def complete(self, request):
    return await self.seen.watch(self.answer())
async def answer(self):
    return Failure('judge_call_failed', 'no connection'), {reached}
"""


def test_chat_model_that_never_ends_the_run_of_a_dead_endpoint_is_found(check):
    with pytest.raises(AssertionError, match="the last of its calls gave Failure"):
        check(DEAD, "model", FAILS.format(reached=True), unreachable={"url": "http://127.0.0.1:9"})


@pytest.mark.parametrize("attributes", [{"unreachable": {"url": "http://127.0.0.1:9"}}, {}])
def test_chat_model_that_ends_the_run_of_a_dead_endpoint_or_has_none_is_right(check, attributes):
    check(DEAD, "model", FAILS.format(reached=not attributes), **attributes)


def test_chat_model_that_opens_only_once_is_found(check):
    body = f"""
    opened: list = attrs.field(factory=list, init=False, eq=False)
    {REPLIES}
    @contextlib.asynccontextmanager
    async def open(self, run):
        assert not self.opened, "again"
        self.opened.append(run)
        yield self
    """
    with pytest.raises(PluginError, match="AssertionError: again"):
        check("test_opens_again_after_it_was_closed", "model", body)


SOURCE = "kinds = ('row',)\ndef subjects(self):\n    yield from {}\n"
ROWS = "(Subject('row', str(n)) for n in range(3))"


@pytest.mark.parametrize(
    ("test", "body", "found"),
    [
        ("test_yields_subjects_one_by_one", f"def subjects(self): return list({ROWS})", "returns a list, no iterator"),
        ("test_yields_subjects_one_by_one", SOURCE.format("(Subject('row', 'a') for _ in '12')"), "ids occur twice"),
        ("test_yields_subjects_one_by_one", SOURCE.format("()"), "yields nothing"),
        ("test_order_is_stable", SOURCE.format("[Subject('row', str(time.perf_counter_ns()))]"), "other subjects"),
        ("test_kinds_are_those_it_declares", SOURCE.format("[Subject('turn', '1')]"), "yields .'turn'. and declares"),
        (
            "test_digest_is_stable",
            f"{SOURCE.format(ROWS)}def check(self): return str(time.perf_counter_ns())",
            "digests",
        ),
    ],
)
def test_checks_of_sources_find_what_is_wrong(check, test, body, found):
    with pytest.raises(AssertionError, match=found):
        check(test, "source", body)


def test_missing_file_that_is_an_os_error_is_found(check, tmp_path):
    (tmp_path / "here").touch()
    body = "path: pathlib.Path\ndef subjects(self):\n    yield Subject('row', self.path.read_text())\n"
    with pytest.raises(FileNotFoundError):
        check("test_missing_file_is_a_wrong_request", "source", body, options={"path": "here"})


@pytest.mark.parametrize(
    ("option", "found"),
    [
        ("api_key: str", r"X\.api_key is a str, .* use dicast\.Secret"),
        ("token: str = ''", r"X\.token is a str, .* use dicast\.Secret"),
        ("key: str | None = None", r"X\.key is a str, .* use dicast\.Secret"),
        ("db_password: str = ''", r"X\.db_password is a str, .* use dicast\.Secret"),
        ("folder: str", r"X\.folder is a str, .* use pathlib\.Path"),
        ("file: str = 'words.txt'", r"X\.file is a str, .* use pathlib\.Path"),
    ],
)
def test_text_option_with_the_name_of_a_secret_or_a_path_is_found(check, option, found):
    with pytest.raises(AssertionError, match=found):
        check("test_options_have_the_types_of_secrets_and_paths", "metric", f"{option}\n{SCORES}")


@pytest.mark.parametrize(
    "option",
    ["api_key: dicast.Secret", "key: str = 'score'", "sort_key: str", "max_tokens: int = 1", "path: pathlib.Path"],
)
def test_option_with_the_name_of_a_secret_or_a_path_and_its_type_passes(check, option):
    check("test_options_have_the_types_of_secrets_and_paths", "metric", f"{option}\n{SCORES}")


@pytest.mark.parametrize("option", ["path: str", "cache_dir: str | None = None"])
def test_text_option_with_the_name_of_a_path_of_a_sink_is_found(check, option):
    body = f"{option}\ndef write(self, events): pass\ndef close(self): pass"
    with pytest.raises(AssertionError, match=r"X\.\w+ is a str, .* use pathlib\.Path"):
        check("test_options_have_the_types_of_secrets_and_paths", "sink", body)


def test_component_that_writes_in_the_current_directory_is_found(check):
    body = "def write(self, events): pathlib.Path('left.txt').touch()\ndef close(self): pass"
    with pytest.raises(
        AssertionError, match=r"x/x writes left\.txt in the current directory; use the type pathlib\.Path"
    ):
        check("test_writes_nothing_in_the_current_directory", "sink", body)


WRITES = "def write(self, events): pass\n"
FILE = "rewrites = True\npath: pathlib.Path\n"


@pytest.mark.parametrize(
    ("test", "body", "found"),
    [
        ("test_takes_the_events_of_a_run", "def write(self, events): return 'ok'\ndef close(self): ...", "not 'ok'"),
        ("test_close_twice_does_nothing_more", f"{WRITES}def close(self): return 1", "second close"),
        (
            "test_file_appears_when_it_is_whole",
            f"{FILE}def write(self, events): self.path.write_text('half')\ndef close(self): ...",
            "is there before close",
        ),
        ("test_file_appears_when_it_is_whole", f"{FILE}{WRITES}def close(self): ...", "is not there after close"),
    ],
)
def test_checks_of_sinks_find_what_is_wrong(check, test, body, found):
    with pytest.raises(AssertionError, match=found):
        check(test, "sink", body, options={"path": "out.txt"} if "path:" in body else {})


def test_result_with_nan_is_not_called_random(plugin, tmp_path):
    source = "@attrs.frozen\nclass Odd:\n    'Odd.'\n    def compare(self, a, b): return {'x': float('nan')}\n"
    plugin("x", f"{source}@hookimpl\ndef dicast_comparisons(): return [Odd]\n")
    contract = type("TestX", (ComparisonConformance,), {"comparison": "x/odd"})()
    contract.test_says_the_same_again(Bench(tmp_path).build("comparison", "x/odd", {}), Bench(tmp_path))


def test_relative_path_as_a_default_is_found(check):
    body = f"path: pathlib.Path = pathlib.Path('x.txt')\n{WRITES}def close(self): pass"
    message = r"X\.path has the default 'x\.txt', which is relative to the current directory"
    with pytest.raises(AssertionError, match=message):
        check("test_options_have_the_types_of_secrets_and_paths", "sink", body)


WORDS = """
@attrs.frozen
class Words:
    'Words. The most is a number.'
    tier = 'proxy'
    most: int = 1
    def score(self, subject):
        return Score(1 / (self.most + len(subject.text)))

@hookimpl
def dicast_metrics(): return [Words]
"""


@pytest.mark.parametrize(("text", "message"), [(b"a = 1\ndef f(:\n", ":2: invalid syntax"), (b"a = 1\0\n", ":1: ")])
def test_module_that_is_not_python_is_named_only_where_an_option_seems_unread(tmp_path, monkeypatch, text, message):
    package = tmp_path / "dicast_halves"
    package.mkdir()
    header = "import attrs\nfrom dicast import *\n"
    unread = WORDS.replace("Words", "Unread").replace("self.most", "1").replace("most", "least")
    (package / "__init__.py").write_text(f"{header}{WORDS}{unread}")
    (package / "broken.py").write_bytes(text)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        halves = importlib.import_module("dicast_halves")
        assert unread_fault("metric", halves.Words) is None
        fault = unread_fault("metric", halves.Unread)
    finally:
        sys.modules.pop("dicast_halves", None)
    assert fault is not None
    assert fault.startswith(f"no code reads least of Unread; {package / 'broken.py'}{message}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "options", "message"),
    [
        ("x/gone", {}, r"x/gone does not load: .*gone"),
        ("x/words", {"most": "many"}, r"x/words cannot be built with the options of TestX: .*most"),
    ],
)
def test_component_that_does_not_load_or_build_fails_one_check(plugin, tmp_path, monkeypatch, named, options, message):
    plugin("x", WORDS)
    test = "from dicast.testing import MetricConformance\nclass TestX(MetricConformance):\n"
    (tmp_path / "test_x.py").write_text(f"{test}    metric = {named!r}\n    options = {options!r}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "test_x.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert re.search(message, done.stdout), done.stdout
    assert "dicast/_kernel" not in done.stdout
    assert len(re.findall(r"^(?:FAILED|ERROR) ", done.stdout, re.MULTILINE)) == 1, done.stdout


TRUNCATES = """
path: pathlib.Path
@contextlib.asynccontextmanager
async def open(self, run):
    with self.path.open(MODE) as file:
        def write(events):
            file.writelines(f"{event.type}\\n" for event in events)
            FLUSH
        yield type("Live", (), {"write": staticmethod(write), "close": file.close})()
"""


@pytest.mark.parametrize(("mode", "flush"), [("'w'", "file.flush()"), ("'a'", "pass")])
def test_sink_that_loses_events_after_a_kill_is_found(check, mode, flush):
    body = TRUNCATES.replace("MODE", mode).replace("FLUSH", flush)
    message = r"out.txt has \d+ of \d+ bytes after a kill and a resume.* Set rewrites = True"
    with pytest.raises(AssertionError, match=message):
        check("test_a_resumed_run_loses_no_event", "sink", body, options={"path": "out.txt"})


@pytest.mark.parametrize(
    "body",
    [
        "rewrites = True" + TRUNCATES.replace("MODE", "'w'").replace("FLUSH", "pass"),
        TRUNCATES.replace("MODE", "'a' if run.continued else 'w'").replace("FLUSH", "file.flush()"),
    ],
)
def test_sink_that_rewrites_or_appends_keeps_all_events_after_a_kill(check, body):
    check("test_a_resumed_run_loses_no_event", "sink", body, options={"path": "out.txt"})


def test_unwritable_path_that_nobody_refuses_is_found(check):
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check(
            "test_unwritable_path_is_a_wrong_request",
            "sink",
            f"{FILE}{WRITES}def close(self): ...",
            options={"path": "x"},
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("import numpy", r"importing 'x' brings \['numpy'\]"),
        ("import dicast_other", r"importing 'x' brings other plugins: \['dicast_other'\]"),
        ("import nope_missing", "No module named 'nope_missing'"),
        (
            "import socket\nsocket.create_connection(('127.0.0.1', 9))",
            "the network was used while the plugin was imported",
        ),
        ("import time\nend = time.process_time() + 0.55\nwhile time.process_time() < end: pass", "the import takes"),
    ],
)
def test_fresh_process_shows_what_an_import_brings(install, plugin, monkeypatch, tmp_path, module, message):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    install("numpy", numpy="")
    plugin("other", "")
    plugin("x", module)
    contract = type("TestX", (MetricConformance,), {"metric": "x/x"})()
    with pytest.raises(AssertionError, match=message):
        contract.test_loads_by_entry_point_in_a_fresh_process()


class Excused(MetricConformance):
    metric = "x/x"

    @pytest.mark.xfail(reason="the model is loaded while it is built")
    def test_building_uses_no_network(self):
        raise AssertionError


Excused.__test__ = False


def test_a_check_may_be_replaced_with_a_reason():
    Excused().test_contract_is_intact()


@pytest.mark.parametrize("replacement", [None, lambda self: None, pytest.mark.xfail(lambda self: None)])
def test_a_dropped_or_replaced_check_is_named(replacement):
    contract = type("TestX", (MetricConformance,), {"metric": "x/x", "test_def_is_quick": replacement})()
    with pytest.raises(AssertionError, match="TestX drops or overrides test_def_is_quick; if the component really"):
        contract.test_contract_is_intact()


def test_the_guard_itself_cannot_be_replaced():
    with pytest.raises(TypeError, match="overrides test_contract_is_intact"):
        type("TestX", (MetricConformance,), {"test_contract_is_intact": None})


@pytest.mark.parametrize("named", [{}, {"metric": "words"}])
def test_contract_must_name_a_component(named):
    contract = type("TestX", (MetricConformance,), named)()
    with pytest.raises(TypeError, match='must say which metric it checks: metric = "PLUGIN/NAME"'):
        _ = contract.plugin


class TestMemoryLedger(LedgerConformance):
    ledger = "mem/memory_ledger"

    @pytest.fixture(autouse=True)
    def offered(self, plugin, monkeypatch, tmp_path):
        plugin(
            "mem", "from dicast.testing import MemoryLedger\n@hookimpl\ndef dicast_ledgers(): return [MemoryLedger]\n"
        )
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
        monkeypatch.setattr("dicast.testing.conformance.IMPORT_SECONDS", 5.0)  # this one imports pytest


def test_a_judge_that_passes_on_the_cost_of_a_judge_inside_needs_no_estimate(check):
    body = "inner: Judge\nasync def judge(self, subject, children=()): return await self.inner.judge(subject)"
    inner = FakeJudge(Judgment(1.0, cost=Cost("0.01")))
    check("test_costs_no_more_than_the_estimate", "judge", body, options={"inner": "i"}, components={"i": inner})


def test_two_subjects_with_an_id_are_named(check):
    subjects = (*GOLDEN, sample("x", id=GOLDEN[0].id))
    message = f"several subjects of TestX have the id '{GOLDEN[0].id}'; give each subject its own"
    with pytest.raises(AssertionError, match=message):
        check("test_estimate_is_a_cost", "metric", SCORES, subjects=subjects)


LINES = """
path: pathlib.Path
def subjects(self):
    for number, line in enumerate(self.path.read_text().splitlines()):
        yield Subject("row", str(number), output=line)
def check(self):
    return {digest}
"""


@pytest.mark.parametrize("digest", ["'lines'", "str(self.path)", "str(len(self.path.read_text()))"])
def test_a_digest_that_does_not_change_with_the_data_is_named(check, tmp_path, digest):
    data = {"files": {"a.txt": "one\ntwo\n"}, "options": {"path": "a.txt"}}
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    if "len" in digest:
        data["files"] = {"a.txt": "one"}
        (tmp_path / "a.txt").write_text("one")
    with pytest.raises(AssertionError, match="for other data of a.txt too; digest all data that the subjects have"):
        check("test_digest_changes_with_the_data", "source", LINES.format(digest=digest), **data)
    assert (tmp_path / "a.txt").read_text() == data["files"]["a.txt"]


@pytest.mark.parametrize("digest", ["self.path.read_text()", "str([*self.subjects()])"])
def test_a_digest_of_the_data_or_of_the_subjects_passes(check, tmp_path, digest):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    data = {"files": {"a.txt": "one\ntwo\n"}, "options": {"path": "a.txt"}}
    check("test_digest_changes_with_the_data", "source", LINES.format(digest=digest), **data)


def test_memory_ledger_finds_a_changed_row():
    async def tamper():
        ledger = MemoryLedger()
        async with ledger.open() as live:
            live.append(typical_events()[:4])
            live._book.rows[1] = type(live._book.rows[1])(b"{}", live._book.rows[1].prev, live._book.rows[1].digest)
            return live.verify()

    result = asyncio.run(tamper())
    assert (result.ok, result.bad_seq) == (False, 2)


def test_memory_ledger_refuses_a_reservation_made_twice():
    reserved = next(event for event in typical_events() if event.type == "spend.reserved")

    async def twice():
        async with MemoryLedger().open() as live:
            live.append([reserved])
            with pytest.raises(LedgerError, match="made twice"):
                live.append([reserved])
            return len(list(live.read(Query())))

    assert asyncio.run(twice()) == 1


# Fakes


def test_fake_judge_gives_its_replies_and_remembers_who_was_asked_about():
    judge = FakeJudge([Judgment(0.25), Failure("refused", "no"), ScoringError("no")])
    run = run_pipeline(
        "judges: [judge]", subjects=[sample("x", id=name) for name in "abc"], components={"judge": judge}
    )
    assert [(verdict.subject_id, verdict.score) for verdict in run.verdicts] == [("a", 0.25)]
    assert [event.payload["failure_mode"] for event in run.of("eval.failed")] == ["refused", "crashed"]
    assert [subject.id for subject in judge.asked] == ["a", "b", "c"]
    judge.assert_all_asked()


@pytest.mark.parametrize(
    ("replies", "message"), [([Judgment(1.0)] * 3, "has 3 replies and was asked 2 times"), ([], "0 replies")]
)
def test_fake_judge_that_was_asked_too_little_or_too_much_says_so(replies, message):
    judge = FakeJudge(replies)
    run_pipeline("judges: [judge]", subjects=[sample("x"), sample("y", id="y")], components={"judge": judge})
    with pytest.raises(AssertionError, match=message):
        judge.assert_all_asked()


def test_single_reply_is_given_each_time_and_asked_for_at_least_once():
    metric = FakeMetric(Score(0.75))
    with pytest.raises(AssertionError, match="asked 0 times, about: nobody"):
        metric.assert_all_asked()
    run = run_pipeline("metrics: [metric]", components={"metric": metric})
    assert {verdict.score for verdict in run.verdicts} == {0.75}
    metric.assert_all_asked()


class TestFakeChatModel(ChatModelConformance):
    model = "fake/fake_chat_model"

    @pytest.fixture(autouse=True)
    def offered(self, plugin, monkeypatch, tmp_path):
        source = "from dicast.testing import FakeChatModel\n@hookimpl\ndef dicast_models(): return [FakeChatModel]\n"
        plugin("fake", source)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
        monkeypatch.setattr("dicast.testing.conformance.IMPORT_SECONDS", 5.0)  # this one imports pytest


def complete(model, *requests):
    async def ask():
        return [await model.complete(request) for request in requests]

    return asyncio.run(ask())


def test_fake_chat_model_gives_its_replies_and_remembers_what_was_asked():
    model = FakeChatModel(["one", Reply("two"), Failure("timeout", "no"), OSError("gone")], cost=Cost("0.1"))
    first, second = REQUESTS[:2]
    usage = Usage(first.input_tokens, 3)
    assert complete(model, first, second, first) == [
        Reply("one", "fake", usage=usage, cost=Cost("0.1")),
        Reply("two"),
        Failure("timeout", "no"),
    ]
    with pytest.raises(AssertionError, match="has 4 replies and was asked 3 times"):
        model.assert_all_asked()
    with pytest.raises(OSError, match="gone"):
        complete(model, second)
    assert model.asked == [first, second, first, second]
    model.assert_all_asked()
    with pytest.raises(AssertionError, match="asked for reply 5, and has 4"):
        complete(model, first)


def test_fake_chat_model_may_be_a_function_of_the_request():
    model = FakeChatModel(lambda request: request.messages[-1].content.upper(), "loud")
    (reply,) = complete(model, ChatRequest((Message("user", "hey"),)))
    assert (reply.text, reply.model, model.identity()) == ("HEY", "loud", {"model": "loud"})


def test_two_fakes_of_one_kind_are_told_apart_by_their_names():
    text = "metrics: {proxy: [one], truth: [two]}\njudges: [three, four]\nsinks: [memory]"
    sink = MemorySink(wants=("eval.completed",))
    fakes = {
        "one": FakeMetric(Score(1.0)),
        "two": FakeMetric(Score(0.5)),
        "three": FakeJudge(),
        "four": FakeJudge(Judgment(0.0)),
    }
    run = run_pipeline(text, subjects=[sample("x")], components={**fakes, "memory": sink})
    assert {verdict.judge: verdict.score for verdict in run.verdicts} == {"metrics": 0.75, "three": 1.0, "four": 0.0}
    assert [event.id for event in sink.of("eval.completed")] == [event.id for event in run.of("eval.completed")]
    assert len(sink.events) == 3


def test_slow_fake_is_caught_by_a_timeout():
    slow = FakeJudge(seconds=30)
    run = run_pipeline("judges: [slow: {timeout: 0.02}]", subjects=[sample("x")], components={"slow": slow})
    assert (run.exit_code, run.document["failures"]) == (3, {"timeout": 1})


def test_sink_that_fails_loses_its_events_and_nothing_else():
    run = run_pipeline(
        "metrics: [m]\nsinks: [s]",
        subjects=[sample("x")],
        components={"m": FakeMetric(), "s": MemorySink(error=OSError("full"))},
    )
    assert run.exit_code == 4
    assert run.document["sinks"]["s"]["written"] == 0
    assert "OSError: full" in run.document["sinks"]["s"]["error"]


def test_priced_fake_is_kept_to_the_budget():
    judge = FakeJudge(Judgment(1.0, cost=Cost("0.02")), cost=Cost("0.02"))
    text = "judges: [judge]\nbudget: {run: 0.04 usd}"
    run = run_pipeline(text, subjects=[sample("x", id=str(n)) for n in range(5)], components={"judge": judge})
    assert (len(run.verdicts), run.document["cost"]["usd"], run.exit_code) == (2, "0.04", 3)


# Pipelines and subjects


def test_run_pipeline_judges_the_golden_subjects_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = run_pipeline("metrics: [m]", components={"m": FakeMetric()})
    assert [event.subject_id for event in run.of("subject.read")] == [subject.id for subject in GOLDEN]
    assert (run.exit_code, run.document["scored"], run.document["ledger"]["path"]) == (0, len(GOLDEN), None)
    assert list(tmp_path.iterdir()) == []


def test_run_pipeline_works_inside_a_running_loop():
    async def inside():
        return run_pipeline("metrics: [m]", subjects=[sample("x")], components={"m": FakeMetric()})

    assert asyncio.run(inside()).exit_code == 0


def test_component_of_the_wrong_kind_is_refused_where_it_is_named():
    with pytest.raises(ConfigError, match=r"<text>:1:10: 'm' is MemorySink\(.*\), not a judge"):
        run_pipeline("judges: [m]", components={"m": MemorySink()})
    with pytest.raises(ConfigError, match=r"not a frozen attrs class"):
        run_pipeline("judges: [m]", components={"m": type("M", (), {"judge": None})()})
    with pytest.raises(ConfigError, match=r"'n' is not under 'define'"):
        run_pipeline("judges: [n]", components={"m": FakeJudge()})


def test_golden_subjects_have_ids_of_their_own_and_are_json():
    keys = [(subject.kind, subject.id) for subject in GOLDEN]
    assert len(set(keys)) == len(keys)
    assert {"row", "turn", "tool_cycle", "session", "workload", "candidate"} < {subject.kind for subject in GOLDEN}
    assert len(next(subject for subject in GOLDEN if subject.id == "very-long").text) == 2**20


def test_sample_is_a_row_unless_told_otherwise():
    assert (sample("x").kind, sample("x").id, sample("x").text) == ("row", "sample", "x")
    assert sample("x", kind="turn", id="t1", reference="y").reference == "y"
