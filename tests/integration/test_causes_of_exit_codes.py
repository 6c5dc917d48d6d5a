"""Exit codes of ``dicast ci`` by cause, for a metric, a judge, both, a suite and merged shards. The expected codes are those of the documentation."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import attrs
import pytest

from .conftest import finish, wait_for

HEAD = """\
name: answers
source: {{rows/jsonl: {{path: data.jsonl}}}}
executor: {{dicast/async: {{concurrency: 1}}}}
define:
  m: {{openai/chat: {{base_url: "{url}", model: {model}, api_key: sk-x, price: {{input_per_mtok: 1, output_per_mtok: 1}}, retries: 0}}}}
"""
METRIC = "metrics: [check/contains: {as: city, value: Ankara}]\n"
TASK = "task: {prompt/chat: {model: m, user: 'Name {{ id }}', max_output_tokens: 200}}\n"
JUDGE = "judges: [llm/judge: {as: %s, model: m, criteria: [it is right]}]\n"
FORMS = {
    "metric": METRIC + TASK,
    "judge": JUDGE % "city",
    "both": METRIC + JUDGE % "good",
    "suite": JUDGE % "city" + "experiments: {a: {}, b: {}}\n",
    "shards": JUDGE % "city",
}
GATE = "gate: {on: city, min_score: 0.1}\n"
AGAINST = "gate: {on: city, baseline: main.json, max_drop: 0.02%s}\n"
COUNT = 6
SUBJECT_COST = "0.00012"
CAPS = {"metric": "0.0005", "shards": "0.0037"}
"""Caps that allow about half of the subjects; a shard has half of the cap."""
LOCK = "{ledger/sqlite: {path: %s, busy_timeout: 0.1}}"


@attrs.frozen
class Cause:
    """A cause of an exit code, with the sentence of the documentation about the code.

    :param codes: the exit codes of the forms that do not end with *code*.
    :param line: words of the first line of the summary, or of the error.
    :param comment: words of the comment about the cause.
    :param step: words of the comment about the next step.
    :param lines: words of the first line of the forms that have other words there.
    """

    sentence: str
    code: int
    line: str
    comment: str
    step: str
    codes: dict[str, int] = attrs.field(factory=dict)
    lines: dict[str, str] = attrs.field(factory=dict)


UNANSWERED = "nothing was scored; failed: 6 judge_call_failed (a call to a"
REFUSED = "the run was not completed: "
NO_JUDGE = "(exit code 5: the budget allows no judge)"
CAUSES = {
    "down": Cause(
        "In a run with fewer calls than the limit, the subjects fail one by one, and the summary has the cause once",
        3,
        UNANSWERED,
        "no connection to 127.0.0.1:",
        "next: start the server, ",
        {"both": 0},  # "every clause holds"
        {"both": "gate: passed", "metric": "nothing was scored; failed: 6 task: call failed"},
    ),
    "401": Cause(
        "2: a provider refused the run",
        2,
        REFUSED,
        "/v1/chat/completions: HTTP 401`",
        "next: correct the key, then `dicast ci p.yaml ",
    ),
    "404": Cause(
        "401, 402, 403, 404: The run ends. The exit code is 2 if nothing was spent",
        2,
        REFUSED,
        "/v1/chat/completions: HTTP 404`",
        "next: correct the address or the model, then `dicast ci p.yaml ",
    ),
    "429": Cause(
        "After the last try the subject fails as judge_call_failed",
        3,
        UNANSWERED,
        "/v1/chat/completions: HTTP 429`",
        "next: wait, or lower requests_per_minute of the model or concurrency of the executor (HTTP 429), then `dicast ci p.yaml",
        {"both": 0},  # "every clause holds"
        {"both": "gate: passed", "metric": "nothing was scored; failed: 6 task: call failed"},
    ),
    "half": Cause(
        "3: coverage is below min_coverage (0.95 by default)",
        3,
        "city: coverage 0.",
        "calls not made because of the run_cap: ",
        "next: raise the cap: budget.run is {cap} usd, then `dicast ci p.yaml --resume",
        {"both": 0},
        {"both": "gate: passed"},
    ),
    "zero": Cause(
        "5: the budget allows no judge at all; free metrics may have scores",
        5,
        NO_JUDGE,
        "calls not made because of the run_cap: 6; budget.run is 0 usd",
        "next: raise the cap: budget.run is 0 usd, then `dicast ci p.yaml",
    ),
    "day": Cause(
        "5: the budget allows no judge at all; free metrics may have scores",
        5,
        NO_JUDGE,
        "calls not made because of the daily_cap: 6; budget.day is ",
        "or wait for the next day (UTC), then `dicast ci p.yaml",
    ),
    "early stop": Cause(
        "A run ends normally at the end of its source, or by an early stop",
        0,
        "gate: passed",
        "`: passed\n",
        "1 scored, ",
    ),
    "another judge": Cause(
        "has another judge or metric of the label, or another scoring: not comparable: the gate passes",
        0,
        "gate: passed",
        "passed, without an answer on `city`\n\n- `city is not compared with main.json",
        "judge the baseline again, in the same way`",
    ),
    "another judge, exit3": Cause(
        "with `undecided: exit3` in the clause the exit code is 3",
        3,
        "gate: undecided: city is not compared with main.json",
        "`city is not compared with main.json",
        "judge the baseline again, in the same way`",
    ),
    "another pass_at": Cause(
        "Means, and clauses with `max_drop`, do not depend on `pass_at`",
        0,
        "gate: passed",
        "`city`: a row passes at 0.7 in this run, and at 0.5 in the baseline",
        "the passes of both runs are counted at 0.7",
    ),
    "no baseline": Cause(
        "file is missing: `dicast ci` refuses to run (exit code 2), and the comment has the reason",
        2,
        "and there is no file main.json",
        "there is no file main.json",
        "dicast baseline save NAME RUN --file main.json",
    ),
    "locked": Cause(
        "2: the request was wrong. Nothing was judged or spent",
        2,
        "another process has kept the ledger",
        "the ledger cannot be used: another process has kept the ledger",
        "let it finish, or wait longer with --ledger",
    ),
    "locked later": Cause(
        "4: a sink or the ledger lost data",
        4,
        "(exit code 4: a sink or the ledger lost data)",
        "the ledger could not be written (`ledger_failed`)",
        "next: remove this cause, then `dicast ci p.yaml",
        {"suite": 2},  # "an experiment that ends with 130, 2 or 70 is its last": the second one cannot open the ledger
    ),
}
SLOW_CAUSES = ("another", "day", "early", "locked")
EXCEPT = {
    ("metric", "another judge"),  # the model of a task may change
    ("metric", "another judge, exit3"),
    ("both", "another judge"),  # the label of the gate is of the metric, which asks no model
    ("both", "another judge, exit3"),
    ("shards", "early stop"),  # refused
    ("shards", "locked later"),
}


def reported_cap(form):
    """Return the cap of the cause ``half`` as the comment has it: a merged run reports the cap of the whole run."""
    return CAPS.get(form, "0.0019")


def cases():
    for name, cause in CAUSES.items():
        for form in FORMS:
            if (form, name) not in EXCEPT:
                marks = [pytest.mark.slow] if name.startswith(SLOW_CAUSES) or form in ("suite", "shards") else []
                yield pytest.param(name, form, marks=marks, id=f"{form}: {name}: {cause.sentence}")


class Job:
    """A job that judges the pipeline in one *form* with ``dicast ci``."""

    def __init__(self, shop, server, form):
        self.shop, self.server, self.form = shop, server, form
        shop.rows(*["Ankara"] * COUNT)
        server.answer = "Ankara" if form == "metric" else lambda asked: server.sealed(score=0.8, confidence=0.9)

    def write(self, sections=GATE, *, url=None, model="m-1", pass_at=None):
        parts = FORMS[self.form]
        if pass_at is not None:
            parts = parts.replace("as: city,", f"as: city, pass_at: {pass_at},")
        self.shop.write("p.yaml", HEAD.format(url=url or self.server.url, model=model) + parts + sections)

    def shards(self):
        return [self.shop.dicast("run", "p.yaml", "--shard", f"{n}/2", "--ledger", f"s{n}.db") for n in (1, 2)]

    def run(self, *options, ledger="merged.db"):
        if self.form == "shards":
            self.shards()
            options = ("--merge", "s1.db", "s2.db", "--ledger", ledger)
        return self.shop.dicast("ci", "p.yaml", "--comment", "c.md", *options)

    def save_baseline(self):
        assert self.run().code == 0
        ledger = ["--ledger", "merged.db"] if self.form == "shards" else []
        name = "answers/a" if self.form == "suite" else "answers"
        assert self.shop.dicast("baseline", "save", "main", name, "--file", "main.json", *ledger).code == 0
        for path in self.shop.folder.glob("*.db"):
            path.unlink()

    def comment(self):
        return (self.shop / "c.md").read_text("utf-8")

    def locked_at(self, number, path):
        """Lock the ledger at the reply *number* of the model; return the connection that holds it."""
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        usual = self.server.answer

        def answer(asked):
            if asked.number == number:
                other.execute("BEGIN IMMEDIATE")
            return usual

        self.server.answer = answer
        return other

    def meet(self, cause, unused_port):
        """Run the pipeline under the *cause*."""
        ledger = f"ledger: {LOCK % 'l.db'}\n"
        match cause:
            case "down":
                self.write(url=f"http://127.0.0.1:{unused_port()}/v1")
            case "401" | "404" | "429":
                self.server.answer = int(cause)
                self.write()
            case "half":
                self.write(GATE + f"budget: {{run: {CAPS.get(self.form, '0.0019')} usd}}\n")
            case "zero":
                self.write(GATE + "budget: {run: 0 usd}\n")
            case "day":
                self.write()
                self.run()
                self.write(GATE + f"budget: {{day: {SUBJECT_COST} usd}}\n")
            case "early stop":
                self.write(GATE + "early_stop: [stats/threshold: {metric: scores.city, threshold: 0.5}]\n")
            case "another judge" | "another judge, exit3" | "another pass_at":
                self.write(pass_at=0.5 if "pass_at" in cause else None)
                self.save_baseline()
                gate = AGAINST % (", undecided: exit3" if "exit3" in cause else "")
                self.write(gate, **({"pass_at": 0.7} if "pass_at" in cause else {"model": "m-2"}))
            case "no baseline":
                self.write(AGAINST % "")
            case "locked":
                self.write(GATE + ledger)
                with closing(sqlite3.connect("l.db", isolation_level=None)) as other:
                    other.execute("BEGIN EXCLUSIVE")
                    return self.run(ledger=LOCK % "l.db")
            case "locked later":
                self.write(GATE + ledger)
                with closing(self.locked_at(3, "l.db")):
                    return self.run()
        return self.run()


@pytest.mark.parametrize(("cause", "form"), [*cases()])
def test_a_cause_has_its_exit_code_its_words_and_the_next_step(shop, chat_server, unused_port, cause, form):
    known = CAUSES[cause]
    job = Job(shop, chat_server, form)
    done = job.meet(cause, unused_port)
    assert done.code == known.codes.get(form, known.code), done.out + done.err + job.comment()
    text = job.comment()
    for words in (known.comment, known.step.replace("{cap}", reported_cap(form))):
        assert words in text
    if form == "suite":
        return
    (paragraph,) = re.findall(r"\A(?:.*\n)(?:  .*\n)*", done.out or done.err)
    assert known.lines.get(form, known.line) in re.sub(r"\s+", " ", paragraph)


@pytest.mark.slow
@pytest.mark.parametrize("form", [*FORMS])
def test_a_killed_job_leaves_its_cause_and_the_command_that_judges_the_rest(shop, chat_server, form):
    """3: the run did not end normally after a verdict. The resumed run has the code of an undisturbed run."""
    job = Job(shop, chat_server, form)
    job.write()
    usual, stuck = chat_server.answer, chat_server.reply("", fault="hang")
    chat_server.answer = lambda asked: stuck if asked.number == 3 else usual
    is_shard = form == "shards"
    command = (
        ["run", "p.yaml", "--shard", "1/2", "--ledger", "s1.db"] if is_shard else ["ci", "p.yaml", "--comment", "c.md"]
    )
    process = shop.start(*command)
    wait_for(lambda: chat_server.count == 3, 20)
    wait_for(lambda: is_shard or "judged before the end: at least" in job.comment(), 20)
    process.kill()
    assert finish(process).code == -9
    if is_shard:
        shop.dicast("run", "p.yaml", "--shard", "2/2", "--ledger", "s2.db")
        merge = ["ci", "p.yaml", "--comment", "c.md", "--merge", "s1.db", "s2.db", "--ledger"]
        done = shop.dicast(*merge, "early.db")
        assert (done.code, "shard 1/2" in job.comment()) == (3, True)
        assert shop.dicast(*command, "--resume").code == 0
        assert shop.dicast(*merge, "merged.db").code == 0
        return
    (words,) = re.findall(r"- next: `dicast (ci p.yaml --resume.*?)` with the ledger", job.comment())
    done = shop.dicast(*words.split())
    assert (done.code, chat_server.count) == (0, (12 if form == "suite" else COUNT) + 1)
    assert "`: passed\n" in job.comment()


def test_a_task_whose_model_costs_more_than_its_estimate_reserves_as_much_from_then_on(shop, chat_server):
    job = Job(shop, chat_server, "metric")
    job.write()
    done = shop.dicast("run", "p.yaml", "--json", "--set", "task.max_output_tokens=20")
    assert (done.code, done.json["scored"], done.json["overruns"], done.json["throttled"]) == (0, COUNT, 1, {})
