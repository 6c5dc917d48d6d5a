"""Good components of every kind, and faults to plant in them: each fault is a replacement of text in the good module."""

from __future__ import annotations

from typing import NamedTuple

METRIC = '''
import asyncio, copy, random, time

SEEN = []

@attrs.frozen
class Brief:
    """Return 1.0 for a brief text, and less for more.

    :param words: the number of them.
    :param key: the key of the service.
    :param patience: the time limit of the service in seconds.
    """

    tier = "truth"
    default_pass_at = 0.6
    words: int = 2
    key: Secret | None = None
    patience: float = attrs.field(default=2.0, metadata={"counts": False})

    def estimate(self, subject):
        return Cost("0.002")

    def score(self, subject):
        service = (self.patience, self.key)
        if subject.output is None:
            return Failure("missing_input", "there is no output")
        count = len(subject.text.split())
        value = min(1.0, self.words / max(1, count))
        return Score(value, details=f"{count} words, {service!r}", cost=Cost("0.002"))

@hookimpl
def dicast_metrics(): return [Brief]
'''

JUDGE = '''
import asyncio

@attrs.frozen
class Calm:
    """Return 1.0 for a text with few exclamation marks.

    :param marks: the number of marks.
    """

    accepts = ("row", "turn")
    default_pass_at = 0.6
    marks: int = 1

    async def judge(self, subject, children):
        await asyncio.sleep(0)
        count = subject.text.count("a")
        return Judgment(float(count <= self.marks), 0.8, judge_kind="heuristic", signals={"marks": count})

@hookimpl
def dicast_judges(): return [Calm]
'''

SINK = '''
import contextlib, json, pathlib

class Lines:
    def __init__(self, path, continued):
        self._path = path
        self._lines = json.loads(path.read_text()) if continued and path.exists() else []

    def write(self, events):
        self._lines += [event.id for event in events]
        self._path.write_text(json.dumps(self._lines))
        return len(events)

    def close(self):
        return 0

@attrs.frozen
class Ids:
    """Write the ids of events.

    :param path: the file.
    :param token: the token of a service.
    """

    wants = ("eval.completed", "eval.failed")
    path: pathlib.Path
    token: Secret | None = None

    @contextlib.asynccontextmanager
    async def open(self, run):
        auth = self.token
        if not self.path.parent.is_dir():
            raise ConfigError(f"{self.path.parent} is no folder")
        yield Lines(self.path, run.continued)

@hookimpl
def dicast_sinks(): return [Ids]
'''

SOURCE = '''
import random

@attrs.frozen
class Numbers:
    """The numbers from 1, as rows.

    :param count: the number of rows.
    """

    kinds = ("row",)
    count: int = 10

    def subjects(self):
        for number in range(1, self.count + 1):
            yield Subject("row", str(number), output=str(number))

    def check(self):
        return f"numbers-{self.count}"

@hookimpl
def dicast_sources(): return [Numbers]
'''

MODEL = '''
import asyncio, logging, time

@attrs.frozen
class Echo:
    """Repeat the message.

    :param loud: in capitals.
    :param key: the key of the endpoint.
    """

    loud: bool = False
    key: Secret | None = None

    def estimate(self, request):
        return Cost("0.01")

    def identity(self):
        return {"loud": self.loud}

    async def complete(self, request):
        auth = self.key
        message = request.messages[-1].content
        text = message.upper() if self.loud else message
        return Reply(text, "echo-1", usage=Usage(request.input_tokens, len(text)), cost=Cost("0.01"))

@hookimpl
def dicast_models(): return [Echo]
'''

LEDGER = '''
import contextlib
from dicast.testing.ledger import Live, Book

class Kept(Live):
    """Live ledger in memory."""

    def append(self, events):
        return super().append(events)

    def head(self):
        return super().head()

@attrs.frozen
class Memory:
    """A ledger in memory."""

    _book: Book = attrs.field(init=False, factory=Book, eq=False, repr=False)

    @contextlib.asynccontextmanager
    async def open(self, run=None, create=True):
        yield Kept(self._book)

    def __reduce__(self):
        return Memory, ()

@hookimpl
def dicast_ledgers(): return [Memory]
'''

TASK = '''
import asyncio, time

@attrs.frozen
class Upper:
    """Put the input into capitals.

    :param suffix: the text at the end.
    """

    suffix: str = ""

    def estimate(self, subject):
        return Cost("0.01")

    async def produce(self, subject):
        await asyncio.sleep(0)
        if not isinstance(subject.input, str):
            return Failure("missing_input", "the input is no text")
        return attrs.evolve(subject, output=subject.input.upper() + self.suffix)

@hookimpl
def dicast_tasks(): return [Upper]
'''

EXTRACTOR = '''
import time

@attrs.frozen
class Words:
    """The number of words in the output."""

    writes = ("words",)

    def extract(self, record):
        response = record.get("response") or {}
        return {"words": len(response.get("content", "").split())}

@hookimpl
def dicast_extractors(): return [Words]
'''

AGGREGATE = '''
import contextlib

class Sum:
    rows = 0

    def __init__(self):
        self.scores = []

    def add(self, record):
        if (score := record["metrics"].get("score")) is not None:
            self.scores.append(score)

    def finish(self):
        return {"mean": sum(self.scores) / len(self.scores) if self.scores else None, "rows": len(self.scores)}

@attrs.frozen
class Total:
    """The mean score."""

    @contextlib.asynccontextmanager
    async def open(self, run):
        yield Sum()

@hookimpl
def dicast_aggregates(): return [Total]
'''

COMPARISON = '''
import random

@attrs.frozen
class MoreRows:
    """The number of additional rows of the variant."""

    def compare(self, baseline, variant):
        return {"more": len([*variant.records()]) - len([*baseline.records()])}

@hookimpl
def dicast_comparisons(): return [MoreRows]
'''

EARLY_STOP = '''
import contextlib

class Counter:
    def __init__(self, most):
        self.most, self.rows = most, 0

    def observe(self, record):
        self.rows += record["metrics"].get("score") is not None
        return {"rows": self.rows} if self.rows >= self.most else None

@attrs.frozen
class Enough:
    """Stop after enough rows.

    :param most: the number of rows.
    """

    most: int = 5

    @contextlib.asynccontextmanager
    async def open(self, run):
        yield Counter(self.most)

@hookimpl
def dicast_early_stops(): return [Enough]
'''

PRESET = '''
@attrs.frozen
class Short:
    """A short text.

    :param words: the largest number of words.
    """

    words: int = 20

    def metrics(self):
        return ["proxy/format", {"proxy/length": {"max": self.words, "unit": "words"}}]

@hookimpl
def dicast_presets(): return [Short]
'''

EXECUTOR = '''
@attrs.frozen
class Few:
    """Judge a few subjects at a time.

    :param concurrency: the number of subjects.
    """

    concurrency: int = 2

    async def host(self, slots):
        return {}

@hookimpl
def dicast_executors(): return [Few]
'''

CLAUSE = '''
from dicast.reporting import Finding

@attrs.frozen
class LeastScored:
    """Require a number of scored subjects.

    :param least_scored: the number.
    """

    least_scored: int = 0

    @property
    def label_key(self):
        return "least_scored"

    def faults(self, clause, file):
        if self.least_scored < 0:
            yield "least_scored", "least_scored is 0 or more"

    def decide(self, findings, run):
        count = run.figures["scored"]
        line, passed = float(self.least_scored), count >= self.least_scored
        reason = f"{count} subjects have a score"
        return [*findings, Finding(run.on, "least_scored", line, float(count), passed, reason)]
'''

RUBRIC = """---
id: tone-v1
version: "1.0"
---
Score 1 for a friendly text, and 0 for a rude text.
"""


class Fault(NamedTuple):
    """A fault in the good component of a *kind*: *old* becomes *new*, and *check* fails with *message*, a regular expression.

    ``LINE`` in the message is the first changed line, ``NEXT`` the line after it.
    """

    kind: str
    name: str
    old: str
    new: str
    check: str
    message: str


def metric(name: str, old: str, new: str, check: str, message: str) -> Fault:
    return Fault("metric", name, old, new, check, message)


RETURNS = "        return Score(value, "
ANSWERS = "test_answers_every_subject_with_a_score_or_a_failure"
WRONG_METRICS = (
    metric("always 1.0", "min(1.0, self.words / max(1, count))", "1.0 if self.words else 0.0",
           "test_scores_differ_between_subjects", r"x/brief gives all \d+ subjects the same score, \(1\.0, 1\.0\)"),
    metric("always missing input", "subject.output is None", "'answer' not in subject.context",
           "test_scores_at_least_one_subject", r"x/brief scores none of \d+ subjects \(missing_input: \d+\)"),
    metric("blocks the loop", "    def score(self, subject):\n", "    async def score(self, subject):\n        time.sleep(0.06 if subject.id == 'right' else 0)\n",
           "test_leaves_the_event_loop_free", r"blocks the event loop for 0\.\d+ s \(dicast_x\.py:NEXT\)"),
    metric("changes the subject", RETURNS, f"        subject.context['seen'] = True\n{RETURNS}",
           "test_leaves_the_subject_as_it_was", r"changes the subject \S+ \(dicast_x\.py:LINE\)"),
    metric("ignores its option", "self.words / ", "3 / ", "test_every_option_is_read", "no code reads words of Brief"),
    metric("unknown kind of failure", '"missing_input"', '"missing"', ANSWERS,
           r"no-output: UnknownName: unknown failure kind 'missing', did you mean 'missing_input'\?.*\(dicast_x\.py:LINE\)"),
    metric("leaks the key", "{service!r}", "{service[1] and service[1].value}", "test_shows_no_secret",
           r"x/brief shows the value of a secret option in an answer or a repr: .*words, \(secret\)"),
    metric("costs more than the estimate", 'cost=Cost("0.002"))\n', 'cost=Cost("0.02"))\n',
           "test_costs_no_more_than_the_estimate", r"costs 0\.02 usd, more than the estimate of 0\.002 usd"),
)  # fmt: skip
"""Plausible metrics that a test of their own would not find."""

FAULTS = (
    *WRONG_METRICS,
    metric("def that sleeps", RETURNS, f"        time.sleep(0.06 if subject.id == 'right' else 0)\n{RETURNS}",
           "test_leaves_the_event_loop_free", r"blocks the event loop for 0\.\d+ s \(dicast_x\.py:LINE\)"),
    metric("misspelled estimate", "def estimate(", "def estimat(", "test_members_have_the_names_that_dicast_reads",
           r"Brief\.estimat is not a member of a metric, did you mean 'estimate'\? .*\(dicast_x\.py:LINE\)"),
    metric("misspelled pass line", "default_pass_at", "default_pas_at", "test_members_have_the_names_that_dicast_reads",
           r"Brief\.default_pas_at is not a member of a metric, did you mean 'default_pass_at'"),
    metric("misspelled pass line as an option", "default_pass_at =", "default_pas_at: float =",
           "test_members_have_the_names_that_dicast_reads", "default_pas_at is an option, did you mean the member 'default_pass_at'"),
    metric("member of another kind", "    default_pass_at", "    accepts = ('row',)\n    default_pass_at",
           "test_members_have_the_names_that_dicast_reads", "Brief.accepts has no effect on a metric; it is a member of a judge"),
    metric("estimate without effect", ', cost=Cost("0.002"))\n', ")\n", "test_estimate_is_spent",
           "has an estimate of 0.002 usd, and no answer has a cost"),
    metric("estimate that is a number", 'return Cost("0.002")\n\n', "return 0.002\n\n", "test_estimate_is_a_cost",
           r"dicast\.Cost, not 0\.002"),
    metric("score above 1", RETURNS, "        return Score(value + 1, ", ANSWERS,
           r"InvalidScore: value must be a finite number in \[0, 1\], got \S+ \(dicast_x\.py:LINE\)"),
    metric("random score", "min(1.0, ", "min(random.random(), ", "test_same_subject_gets_the_same_answer", "other answers the second time"),
    metric("state between subjects", RETURNS, f"        SEEN.append(count)\n        value = value if count >= SEEN[-2:][0] else 0.0\n{RETURNS}",
           "test_answer_does_not_depend_on_earlier_subjects", "other answers in another order of the subjects"),
    metric("prints", RETURNS, f"        print('score', value)\n{RETURNS}", "test_prints_nothing_on_standard_output",
           r"x/brief prints on standard output: 'score' \(dicast_x\.py:LINE\)"),
    metric("undocumented option", ":param words: the number of them.", "The swords.", "test_every_option_is_documented", "does not mention words"),
    metric("option outside the fingerprint", "self.words / max(1, count))", "self.words * self.patience / max(1, count))",
           "test_options_outside_the_fingerprint_change_no_score", "the option patience changes the answer about .* no fingerprint has it"),
    Fault("judge", "misspelled accepts", "    accepts =", "    acepts =", "test_members_have_the_names_that_dicast_reads",
          r"Calm\.acepts is not a member of a judge, did you mean 'accepts'"),
    Fault("judge", "swallows its cancellation", "        await asyncio.sleep(0)\n",
          "        try:\n            await asyncio.sleep(9)\n        except asyncio.CancelledError:\n            await asyncio.sleep(0.2)\n",
          "test_cancelled_call_ends", r"still running 0\.05 s after being canceled"),
    Fault("judge", "unknown judge kind", '"heuristic"', '"heuristics"', ANSWERS,
          r"UnknownName: unknown judge kind 'heuristics', did you mean 'heuristic'\?"),
    Fault("judge", "number instead of a judgment", "return Judgment(float(count <= self.marks), 0.8,", "return float(count <= self.marks) or (1.0, 0.8,",
          ANSWERS, ""),
    Fault("sink", "changes an event", "        self._lines += [", "        events[0].payload.clear()\n        self._lines += [",
          "test_leaves_the_events_as_they_are", r"x/ids changes an event \(dicast_x\.py:LINE\)"),
    Fault("sink", "truncates", "if continued and path", "if 0 and path", "test_a_resumed_run_loses_no_event", "Set rewrites = True"),
    Fault("sink", "text in wants", '("eval.completed", "eval.failed")', '"eval.completed"', "test_wants_event_types", "wants is the text 'eval.completed'; write a tuple"),
    Fault("sink", "unknown event type", '("eval.completed", ', '("eval.complete", ', "test_wants_event_types", "did you mean 'eval.completed'"),
    Fault("sink", "misspelled wants", "    wants =", "    want =", "test_members_have_the_names_that_dicast_reads", "Ids.want is not a member of a sink, did you mean 'wants'"),
    Fault("sink", "second close", "        return 0\n", "        return 1\n", "test_close_twice_does_nothing_more", "second close"),
    Fault("sink", "logs the token", "        auth = self.token\n", "        import logging; logging.getLogger('ids').info('token %s', self.token and self.token.value)\n",
          "test_shows_no_secret", r"shows the value of a secret option in a log record: token \(secret\)"),
    Fault("source", "list", "    def subjects(self):\n        for", "    def subjects(self):\n        return [*self._each()]\n\n    def _each(self):\n        for",
          "test_yields_subjects_one_by_one", "returns a list, no iterator"),
    Fault("source", "ids twice", "str(number), output", "'a', output", "test_yields_subjects_one_by_one", "ids occur twice"),
    Fault("source", "random order", "in range(1, self.count + 1)", "in random.sample(range(1000), self.count)", "test_order_is_stable", "other subjects"),
    Fault("source", "prints", "            yield", "            print(number)\n            yield", "test_prints_nothing_on_standard_output", r"prints on standard output: '1' \(dicast_x\.py:LINE\)"),
    Fault("model", "key in the repr", "    def estimate", "    def __repr__(self):\n        return f'Echo({self.key and self.key.value})'\n\n    def estimate",
          "test_shows_no_secret", r"shows the value of a secret option in an answer or a repr: Echo\(\(secret\)\)"),
    Fault("model", "key in the identity", '{"loud": self.loud}', '{"loud": self.loud, "key": self.key and self.key.value}', "test_shows_no_secret", "secret option"),
    Fault("model", "blocks the loop", "        auth = self.key\n", "        time.sleep(0.06 if request.attempt else 0)\n        auth = self.key\n",
          "test_leaves_the_event_loop_free", r"blocks the event loop for .*\(dicast_x\.py:LINE\)"),
    Fault("ledger", "loses an event", "super().append(events)", "super().append(events[:-1])", "test_returns_what_was_appended", ""),
    Fault("metric", "imports the kernel", "import asyncio, copy, random, time\n", "import asyncio, copy, random, time, dicast._kernel.values\n",
          "test_imports_public_modules_of_dicast_alone", "imports dicast._kernel.values, which is private; import dicast, or a public module"),
    Fault("ledger", "append without the head", "return super().append(events)", "super().append(events)", "test_chains_its_rows",
          "append returned None; return the new Head"),
    Fault("ledger", "no head", "        return super().head()", "        return None", "test_chains_its_rows", ""),
    Fault("task", "another id", "attrs.evolve(subject, ", "attrs.evolve(subject, id='x', ", "test_the_subject_stays_the_same_one", "x/upper changes id"),
    Fault("task", "output alone", "return attrs.evolve(subject, output=subject.input.upper() + self.suffix)", "return subject.input.upper() + self.suffix",
          "test_makes_an_output_of_every_subject_or_says_why_not", "is neither a Subject nor a Failure"),
    Fault("task", "unknown failure kind", '"missing_input"', '"missing_inputs"', "test_makes_an_output_of_every_subject_or_says_why_not",
          r"UnknownName: .*'missing_inputs'.* \(dicast_x\.py:LINE\); return a Failure of a known kind"),
    Fault("task", "float estimate", 'return Cost("0.01")', "return Cost(0.01)", "test_estimate_is_a_cost", "never float"),
    Fault("extractor", "writes elsewhere", '{"words": len', '{"count": len', "test_writes_only_what_it_declares_in_json_under_proper_names", "count"),
    Fault("extractor", "changes the record", '        response = record.get("response") or {}\n', '        response = record.pop("response", {})\n',
          "test_leaves_the_records_as_they_are", r"x/words changes a record \(dicast_x\.py:LINE\)"),
    Fault("extractor", "sleeps", "        response =", "        time.sleep(0.06)\n        response =", "test_leaves_the_event_loop_free", r"blocks the event loop for .*\(dicast_x\.py:LINE\)"),
    Fault("aggregate", "state between runs", "        self.scores = []\n", "        self.scores = Sum.all\n\n    all = []\n", "test_each_run_begins_anew",
          "returns another result the second time"),
    Fault("aggregate", "number that is not finite", "if self.scores else None", "if self.scores else float('nan')", "test_comes_to_json_without_made_up_numbers", "not finite"),
    Fault("aggregate", "set", '"rows": len(self.scores)', '"at": [{3}]', "test_comes_to_json_without_made_up_numbers",
          r"the result is not JSON: the result\['at'\]\[0\] is \{3\}"),
    Fault("aggregate", "changes the record", "        if (score", "        record['metrics']['seen'] = True\n        if (score", "test_leaves_the_records_as_they_are", "changes a record"),
    Fault("comparison", "random", '{"more": len', '{"more": random.random() + len', "test_says_the_same_again", "draw with a seed"),
    Fault("comparison", "NaN", '{"more": len', '{"mean": float("nan"), "more": len', "test_compares_any_two_runs_in_json", "not finite"),
    Fault("early_stop", "needs the metric", '["metrics"].get("score")', '["metrics"]["score"]', "test_says_nothing_or_why_in_json",
          r"x/enough raises KeyError: 'score' \(dicast_x\.py:LINE\)"),
    Fault("early_stop", "state between runs", "most, 0\n", "most, 0\n        self.shared = Counter.shared = getattr(Counter, 'shared', 0) + 1\n        self.rows = self.shared\n",
          "test_each_run_begins_anew", "answers otherwise the second time"),
    Fault("early_stop", "keys of the kernel", '{"rows": self.rows}', '{"reason": "enough"}', "test_says_nothing_or_why_in_json",
          "x/enough returns 'reason', a key that dicast writes itself"),
    Fault("preset", "unknown metric", '"proxy/format"', '"proxy/fromat"', "test_every_metric_can_be_built", "offers no metric 'fromat'"),
    Fault("executor", "no concurrency", "concurrency: int = 2", "concurrency: int = 0", "test_concurrency_is_a_positive_integer", "concurrency is 0, not an integer of 1 or more"),
    Fault("executor", "another concurrency once it is open", "    async def host(", "    @__import__('contextlib').asynccontextmanager\n    async def open(self, run):\n        yield attrs.evolve(self, concurrency=9)\n\n    async def host(",
          "test_concurrency_is_the_same_once_it_is_open", "has the concurrency 2, and 9 once it is open; the component's value counts"),
    Fault("executor", "misspelled host", "async def host(", "async def hosts(", "test_members_have_the_names_that_dicast_reads", "Few.hosts is not a member of a executor, did you mean 'host'"),
    Fault("executor", "invents scores", "        return {}\n", "        async def one(caller, call, subject):\n            return Score(1.0)\n        return {slot.path: one for slot in slots}\n",
          "test_verdicts_are_those_of_the_usual_executor", r"x/few gives 1\.0 for .* and dicast/async gives"),
    Fault("clause", "drops findings", "[*findings, Finding(", "[Finding(", "test_keeps_the_findings_of_the_kernel", "least_scored drops the finding about min_score"),
    Fault("clause", "decides nothing", "return [*findings, Finding", "[*findings, Finding", "test_findings_can_be_recorded",
          r"least_scored: decide returned None, not the findings \(dicast_x\.py:\d+\)"),
    Fault("clause", "knows no single metric", 'run.figures["scored"]', 'run.document["labels"][run.on]["scored"]', "test_findings_can_be_recorded",
          r"least_scored: decide raised KeyError: 'm' \(dicast_x\.py:\d+\)"),
    Fault("clause", "misspelled faults", "    def faults(", "    def fault(", "test_class_is_a_frozen_clause_with_a_field_for_each_key",
          r"LeastScored has no faults; rename its 'fault' to 'faults' \(dicast_x\.py:\d+\)"),
    Fault("clause", "undocumented key", ":param least_scored: the number.", "", "test_every_key_is_documented", "does not mention least_scored"),
    Fault("clause", "ignores its key", "self.least_scored", "0", "test_every_key_is_read", "no code reads least_scored"),
    Fault("clause", "fault of another key", 'yield "least_scored", "', 'yield "least", "', "test_faults_name_keys_of_the_class", "not a key of"),
    Fault("rubric", "another id", "id: tone-v1", "id: tone-v2", "test_has_its_id_and_a_version", "has the id 'tone-v2'"),
    Fault("rubric", "version that is a number", '"1.0"', "1.0", "test_has_its_id_and_a_version", "quote a version that is a number"),
    Fault("rubric", "no instructions", "Score 1 for a friendly text, and 0 for a rude text.\n", "\n", "test_has_instructions", "the rubric 'tone-v1' has no instructions"),
)  # fmt: skip
