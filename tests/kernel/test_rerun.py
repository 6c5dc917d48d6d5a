"""``dicast run --watch``: judge again after a change, and pay only for the change."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager

import attrs
import pytest

from dicast import Cost, Failure, Judgment, Reply, Subject
from dicast._kernel.api.runs import run_unless_disabled
from dicast._kernel.cli import main, rerun
from dicast._kernel.pipeline.build import load_pipeline
from dicast._kernel.run.request import Request
from dicast._kernel.run.reuse import ReusedReplies
from dicast._kernel.timing.event_loop import in_loop
from dicast.testing import FakeChatModel, FakeJudge

ROWS = [{"id": str(number), "input": "q", "output": f"answer {number}"} for number in range(4)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, ROWS)
    (tmp_path / "run.yaml").write_text(
        "name: again\nsource: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [check/contains: {value: answer}]\n"
    )
    return tmp_path


def write(folder, rows):
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def changes(monkeypatch):
    """Carry out each of the *steps* instead of waiting for a change; Ctrl-C follows the last."""
    steps: list = []

    def wait(before, digests):
        if not steps:
            raise KeyboardInterrupt
        steps.pop(0)()
        return [path for path, state in rerun.signature(before).items() if state != before[path]]

    monkeypatch.setattr(rerun, "wait_for_change", wait)
    return steps


def test_it_judges_again_after_each_change_and_ends_with_the_last_exit_code(folder, changes, capsys):
    changes += [lambda: write(folder, [*ROWS, {"id": "5", "output": "wrong"}]), lambda: write(folder, ROWS[:2])]
    assert main(["run", "run.yaml", "--watch"]) == 0
    out = capsys.readouterr()
    assert [line.split()[0] for line in out.out.splitlines() if "scored" in line] == ["4", "5", "2"]
    first, second, third = re.findall(r"  run \S{20}(\S{6})", out.out)
    assert re.findall("next: dicast compare (.*)", out.out) == [f"{first} {second}", f"{second} {third}"]
    assert [text.count("next: ") for text in out.out.split("details: ")] == [0, 1, 1, 0]


def test_the_last_line_of_each_run_is_its_gate(folder, changes, monkeypatch, capsys):
    text = (folder / "run.yaml").read_text()
    last = []

    def change(content):
        def write():
            last.append(capsys.readouterr().err.splitlines()[-2:])
            (folder / "run.yaml").write_text(content)

        return write

    changes += [change(f"{text}gate: {{min_pass_rate: 0}}\n"), change("source: wrong\n"), change(text)]
    main(["run", "run.yaml", "--watch"])
    (first, gate), (_, second), (_, third) = last
    assert first.startswith("watching ")
    assert gate.startswith("gate: ")
    assert second.startswith("gate: passed")
    assert third.startswith("watching ")


def test_a_run_without_a_score_is_not_compared(folder, changes, capsys):
    text = (folder / "run.yaml").read_text()
    failing = text + 'task: {task/command: {command: ["false"]}}\n'
    changes += [
        lambda: (folder / "run.yaml").write_text(failing),
        lambda: (folder / "run.yaml").write_text(text),
    ]
    assert main(["run", "run.yaml", "--watch"]) == 0
    out = capsys.readouterr()
    first, second, third = re.findall(r"  run (\S{26})", out.out)
    again = f"run run.yaml --resume {second} --retry-failed"
    assert re.findall("next: dicast (.*)", out.out)[1:] == [again, f"compare {first[-6:]} {third[-6:]}"]
    assert [text.count("next: ") for text in out.out.split("details: ")] == [0, 2, 1, 0]


def test_runs_that_compare_refuses_are_named_and_the_next_step_is_another(folder, changes, capsys):
    (folder / "run.yaml").write_text("source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [diff/match]\n")
    rows = [{**row, "reference": row["output"]} for row in ROWS]
    write(folder, rows)
    changed = [{**rows[0], "reference": "other"}, *rows[1:]]
    changes += [lambda: write(folder, changed), lambda: write(folder, [*changed, {**rows[0], "id": "new"}])]
    assert main(["run", "run.yaml", "--watch"]) == 0
    out = capsys.readouterr()
    first, second, third = re.findall(r"  run \S{20}(\S{6})", out.out)
    notes = [line for line in out.err.splitlines() if "comparable" in line]
    assert notes == [
        f"not comparable with run {first} before it, which differs in the input or the reference of subject '0'"
    ]
    steps = re.findall("next: dicast (.*)", out.out)
    assert steps == [f"show 0 --run {second}", f"compare {second} {third}"]
    assert main(steps[1].split()) == 0


def test_the_full_summary_ends_with_the_comparison(folder, changes, capsys):
    changes += [lambda: write(folder, ROWS[:2])]
    assert main(["run", "run.yaml", "--watch", "--full"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("next: dicast compare ")


def test_a_wrong_file_is_reported_and_the_watch_goes_on(folder, changes, capsys):
    text = (folder / "run.yaml").read_text()
    changes += [
        lambda: (folder / "run.yaml").write_text(text.replace("check/contains", "check/contans")),
        lambda: (folder / "run.yaml").write_text(text),
    ]
    assert main(["run", "run.yaml", "--watch"]) == 0
    out = capsys.readouterr()
    assert "did you mean 'check/contains'?" in out.err
    assert out.out.count("\n4 subjects: 4 scored") == 2


def test_the_file_its_includes_and_the_data_are_watched_and_outputs_are_not(folder, monkeypatch, capsys):
    (folder / "base.yaml").write_text("metrics: [check/contains: {value: answer}]\n")
    (folder / "run.yaml").write_text(
        "include: base.yaml\nsource: {rows/jsonl: {path: rows.jsonl}}\nsinks: [csv/rows: {path: out.csv}]\n"
    )
    watched = []

    def wait(before, digests):
        watched.extend(path.name for path in before)
        raise KeyboardInterrupt

    monkeypatch.setattr(rerun, "wait_for_change", wait)
    main(["run", "run.yaml", "--watch"])
    assert sorted(watched) == ["base.yaml", "rows.jsonl", "run.yaml"]


def test_a_change_is_noticed_once_the_file_has_settled(folder, monkeypatch):
    files = [folder / "rows.jsonl", folder / "run.yaml"]
    before, digests = rerun.signature(files), rerun.contents(files)
    waits = iter([lambda: write(folder, ROWS[:1]), lambda: write(folder, ROWS[:3]), lambda: None])
    monkeypatch.setattr("time.sleep", lambda seconds: next(waits)())
    assert rerun.wait_for_change(before, digests) == [folder / "rows.jsonl"]
    assert next(waits, None) is None


def test_a_write_of_the_same_bytes_is_no_change(folder, monkeypatch):
    files = [folder / "rows.jsonl", folder]
    before, digests = rerun.signature(files), rerun.contents(files)
    steps = iter(
        [lambda: write(folder, ROWS), *[lambda: None] * 3, lambda: write(folder, ROWS[:2]), *[lambda: None] * 3]
    )
    (folder / "rows.jsonl").touch()
    monkeypatch.setattr("time.sleep", lambda seconds: next(steps)())
    assert rerun.wait_for_change(before, digests) == files
    assert len((folder / "rows.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("option", ["--json", "--metric-lines", "--resume"])
def test_options_for_a_single_document_are_refused(folder, option, capsys):
    assert main(["run", "run.yaml", "--watch", option]) == 2
    out = capsys.readouterr()
    assert "--watch runs again and again" in out.out + out.err


PAID = """
source: {rows/jsonl: {path: rows.jsonl}}
judges: [paid: {as: helpful}]
"""


def judged(judge, replies, text=PAID):
    """Run the pipeline with a paid judge and the replies of earlier runs; return its document."""
    pipeline = load_pipeline(text, ready={"paid": judge})
    replies.begin(pipeline)
    return in_loop(run_unless_disabled(pipeline, Request(reuse=replies))).document


def paid_judge(score=0.75):
    return FakeJudge(Judgment(score, cost=Cost("0.01")))


def test_an_unchanged_subject_is_not_paid_for_again(folder):
    judge, replies = paid_judge(), ReusedReplies()
    first, second = judged(judge, replies), judged(judge, replies)
    assert len(judge.asked) == 4
    assert (first["cost"]["usd"], second["cost"]["usd"]) == ("0.04", "0")
    assert second["judges"]["helpful"]["mean"] == 0.75
    assert second["scored"] == 4
    assert replies.used == 4


def test_only_a_changed_subject_is_paid_for(folder):
    judge, replies = paid_judge(), ReusedReplies()
    judged(judge, replies)
    write(folder, [*ROWS[:3], {**ROWS[3], "output": "another answer"}, {"id": "new", "output": "new"}])
    done = judged(judge, replies)
    assert [subject.id for subject in judge.asked[4:]] == ["3", "new"]
    assert done["cost"]["usd"] == "0.02"
    again = judged(judge, replies)
    assert (again["cost"]["usd"], len(judge.asked)) == ("0", 6)


def test_a_subject_that_changes_back_costs_nothing(folder):
    judge, replies = paid_judge(), ReusedReplies()
    judged(judge, replies)
    write(folder, [{**ROWS[0], "output": "other"}, *ROWS[1:]])
    judged(judge, replies)
    write(folder, ROWS)
    done = judged(judge, replies)
    assert [subject.id for subject in judge.asked[4:]] == ["0"]
    assert (done["cost"]["usd"], replies.used) == ("0", 4)


def test_a_subject_that_is_left_out_for_a_run_costs_nothing_later(folder):
    judge, replies = paid_judge(), ReusedReplies()
    judged(judge, replies)
    write(folder, ROWS[:1])
    judged(judge, replies)
    write(folder, ROWS)
    judged(judge, replies)
    assert len(judge.asked) == 4


def test_a_judge_or_metric_that_changes_back_costs_nothing(folder):
    first, second, replies = paid_judge(), paid_judge(0.25), ReusedReplies()
    for judge in (first, second, first, second):
        judged(judge, replies)
    assert (len(first.asked), len(second.asked)) == (4, 4)
    metric = "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [paid: {as: tone}, proxy/format: {as: tone2}]\n"
    for text in (metric, metric.replace("format", "length: {max_chars: 9}, check/contains"), metric):
        judged(first, replies, text.replace("check/contains", "proxy/format"))
    assert len(first.asked) == 8


def test_a_run_that_fails_in_the_middle_keeps_its_replies(folder):
    judge, replies, failing = paid_judge(), ReusedReplies(), [True]

    @attrs.frozen
    class Breaking:
        kinds = ("row",)

        async def subjects(self):
            for row in ROWS[:3]:
                yield Subject("row", row["id"], output=row["output"])
            for _ in range(100):  # the judge is asked in the meantime
                await asyncio.sleep(0)
            if failing.pop():
                raise RuntimeError("the source broke")

    def run():
        pipeline = load_pipeline(
            "source: data\njudges: [paid: {as: helpful}]\n", ready={"paid": judge, "data": Breaking()}
        )
        replies.begin(pipeline)
        in_loop(run_unless_disabled(pipeline, Request(reuse=replies)))

    with pytest.raises(Exception, match="broke"):
        run()
    failing.append(False)
    run()
    assert len(judge.asked) == 3
    assert len(replies.scored_runs) == 1


def test_a_changed_judge_is_asked_about_every_subject(folder):
    before, after, replies = paid_judge(), paid_judge(0.25), ReusedReplies()
    judged(before, replies)
    done = judged(after, replies)
    assert len(after.asked) == 4
    assert done["judges"]["helpful"]["mean"] == 0.25


def test_an_unchanged_judge_is_not_asked_again_because_another_has_changed(folder):
    text = PAID.replace("judges: [paid: {as: helpful}]", "judges: [paid: {as: helpful}, other: {as: tone}]")

    def run(other):
        pipeline = load_pipeline(text, ready={"paid": kept, "other": other})
        replies.begin(pipeline)
        in_loop(run_unless_disabled(pipeline, Request(reuse=replies)))

    kept, changed, replies = paid_judge(), paid_judge(0.5), ReusedReplies()
    run(paid_judge(0.25))
    run(changed)
    assert (len(kept.asked), len(changed.asked)) == (4, 4)


@attrs.frozen
class OpenedModel:
    """A chat model with ``open``, like the models of plugins."""

    live: FakeChatModel

    @asynccontextmanager
    async def open(self, run):
        yield self.live


def test_a_model_makes_only_the_outputs_of_changed_subjects_again_and_all_after_a_change_of_its_prompt(folder):
    text = "task: {prompt/chat: {model: chat, user: 'P {{ input }}'}}\nmetrics: [proxy/format]\n"
    text = "source: {rows/jsonl: {path: rows.jsonl}}\n" + text
    chat, replies = FakeChatModel("fine", cost=Cost("0.01")), ReusedReplies()

    def asked(text):
        before = len(chat.asked)
        pipeline = load_pipeline(text, ready={"chat": OpenedModel(chat)})
        replies.begin(pipeline)
        done = in_loop(run_unless_disabled(pipeline, Request(reuse=replies))).document
        assert done["scored"] == 4
        return len(chat.asked) - before

    assert (asked(text), asked(text)) == (4, 0)
    write(folder, [*ROWS[:3], {**ROWS[3], "input": "another question"}])
    assert (asked(text), asked(text)) == (1, 0)
    assert asked(text.replace("P {{", "Q {{")) == 4
    assert asked(text) == 0


def test_a_failed_run_in_between_costs_nothing_after_the_prompt_is_corrected(folder):
    text = """source: {rows/jsonl: {path: rows.jsonl}}
task: {prompt/chat: {model: chat, user: "P {{ input }}"}}
judges: [paid: {as: helpful}]
"""
    chat, judge, replies = FakeChatModel("fine", cost=Cost("0.01")), paid_judge(), ReusedReplies()

    def run(text):
        pipeline = load_pipeline(text, ready={"chat": OpenedModel(chat), "paid": judge})
        replies.begin(pipeline)
        return in_loop(run_unless_disabled(pipeline, Request(reuse=replies))).document

    run(text)
    conditional = "P {% if input %}{{ inptu }}{% endif %}"
    failed, done = run(text.replace("P {{ input }}", conditional)), run(text)
    assert (failed["scored"], failed["failures"]) == (0, {"missing_input": 4})
    assert (done["scored"], done["cost"]["usd"]) == (4, "0")
    assert (len(chat.asked), len(judge.asked)) == (4, 4)
    assert replies.used == 8
    assert len(replies.scored_runs) == 2


def test_replies_of_a_task_that_the_ledger_does_not_keep_are_reported(folder):
    text = """source: {rows/jsonl: {path: rows.jsonl}}
task: {prompt/chat: {model: chat, user: "P {{ input }}"}}
metrics: [proxy/format]
"""
    chat, replies = FakeChatModel("fine", cost=Cost("0.01")), ReusedReplies()
    for number, content in enumerate(("store", "digest", "digest")):
        ledger = f"ledger: {{ledger/sqlite: {{path: {number}.db, content: {content}}}}}\n"
        pipeline = load_pipeline(text + ledger, ready={"chat": OpenedModel(chat)})
        replies.begin(pipeline)
        assert in_loop(run_unless_disabled(pipeline, Request(reuse=replies))).document["scored"] == 4
        assert not replies.loses_replies  # nothing was bought, or everything is kept
    replies.begin(pipeline := load_pipeline(text.replace("P {", "Q {") + ledger, ready={"chat": OpenedModel(chat)}))
    in_loop(run_unless_disabled(pipeline, Request(reuse=replies)))
    assert replies.loses_replies


def test_outputs_of_a_task_without_a_model_are_judged_anew(folder):
    text = PAID + "task: {task/command: {command: [printf, hello]}}\n"
    judge, replies = paid_judge(), ReusedReplies()
    judged(judge, replies, text)
    judged(judge, replies, text)
    assert len(judge.asked) == 8


TASK = """source: {rows/jsonl: {path: rows.jsonl, fields: {input: input, reference: reference}}}
task: {prompt/chat: {model: chat, user: "P {{ input }}", retries: 0}}
metrics: [diff/match]
judges: [paid: {as: helpful}]
"""
QUESTIONS = [{"id": str(number), "input": f"q{number}", "reference": "fine"} for number in range(3)]


def test_a_task_is_asked_again_only_where_its_request_has_changed(folder):
    write(folder, QUESTIONS)
    changed = [{**QUESTIONS[0], "reference": "other", "topic": "new"}, *QUESTIONS[1:]]
    chat, judge, replies = FakeChatModel("fine", cost=Cost("0.01")), paid_judge(), ReusedReplies()

    def asked(text, rows, model=chat):
        write(folder, rows)
        before = len(model.asked), len(judge.asked)
        pipeline = load_pipeline(text, ready={"chat": OpenedModel(model), "paid": judge})
        replies.begin(pipeline)
        assert in_loop(run_unless_disabled(pipeline, Request(reuse=replies))).document["scored"] == 3
        return len(model.asked) - before[0], len(judge.asked) - before[1]

    assert asked(TASK, QUESTIONS) == (3, 3)
    assert asked(TASK, changed) == (0, 1)  # the judge reads the reference
    assert asked(TASK, changed) == (0, 0)
    assert asked(TASK, QUESTIONS) == (0, 0)
    with_reference = TASK.replace("P {{ input }}", "P {{ input }} {{ reference }}")
    assert asked(with_reference, QUESTIONS) == (3, 0)  # the judge reads the output, which is as before
    assert asked(with_reference, changed) == (1, 0)
    assert asked(TASK.replace("retries", "temperature: 0.5, retries"), QUESTIONS) == (3, 0)
    other = FakeChatModel("other", cost=Cost("0.01"), model="other")
    assert asked(TASK, QUESTIONS, other) == (3, 3)


@pytest.mark.parametrize(
    "failure", [Failure("judge_call_failed", "the server broke"), Reply("  ", "fake", cost=Cost("0.01"))]
)
def test_a_subject_whose_task_failed_is_asked_about_again(folder, failure):
    write(folder, QUESTIONS)
    broken = [True]

    def answer(request):
        return failure if broken[0] and "q1" in request.messages[-1].content else "fine"

    chat, judge, replies = FakeChatModel(answer, cost=Cost("0.01")), paid_judge(), ReusedReplies()

    def run():
        pipeline = load_pipeline(TASK, ready={"chat": OpenedModel(chat), "paid": judge})
        replies.begin(pipeline)
        return in_loop(run_unless_disabled(pipeline, Request(reuse=replies))).document

    assert run()["failed"] == 1
    broken[0] = False
    assert (run()["scored"], len(chat.asked), len(judge.asked)) == (3, 4, 3)
    assert (run()["scored"], len(chat.asked), len(judge.asked)) == (3, 4, 3)


@pytest.mark.parametrize(
    ("user", "calls"),
    [
        ("P {{ input }}{# a comment #}", (0, 0)),
        ("P {{ input }}{% if reference == 'rare' %} briefly{% endif %}", (1, 1)),
        ("Q {{ input }}", (3, 3)),
    ],
)
def test_a_change_of_a_template_counts_only_where_it_changes_a_prompt(folder, user, calls):
    write(folder, [*QUESTIONS[:2], {**QUESTIONS[2], "reference": "rare"}])
    chat = FakeChatModel(lambda request: request.messages[-1].content.upper(), cost=Cost("0.01"))
    judge, replies = paid_judge(), ReusedReplies()

    def asked(text):
        before = len(chat.asked), len(judge.asked)
        pipeline = load_pipeline(text, ready={"chat": OpenedModel(chat), "paid": judge})
        replies.begin(pipeline)
        assert in_loop(run_unless_disabled(pipeline, Request(reuse=replies))).document["scored"] == 3
        return len(chat.asked) - before[0], len(judge.asked) - before[1]

    assert asked(TASK) == (3, 3)
    assert asked(TASK.replace("P {{ input }}", user)) == calls
    assert (replies.calls, replies.used) == (sum(calls), 6 - sum(calls))
    assert asked(TASK) == (0, 0)


def test_a_model_without_an_identity_is_asked_again_after_any_change_of_its_task(folder):
    write(folder, QUESTIONS)
    asked, replies = [], ReusedReplies()

    @attrs.frozen
    class Anonymous:
        def estimate(self, request):
            return Cost("0.01")

        async def complete(self, request):
            asked.append(request)
            return Reply("fine", "anonymous", cost=Cost("0.01"))

    for text, count in ((TASK, 3), (TASK, 3), (TASK.replace("{{ input }}", "{{ input }}{# a comment #}"), 6)):
        pipeline = load_pipeline(text, ready={"chat": Anonymous(), "paid": paid_judge()})
        replies.begin(pipeline)
        in_loop(run_unless_disabled(pipeline, Request(reuse=replies)))
        assert len(asked) == count


@pytest.mark.parametrize("price", ["0", "0.01"])
def test_failed_calls_and_their_tries_are_counted(folder, price):
    write(folder, [{"id": name, "input": name, "reference": "fine"} for name in ("one", "two", "three")])
    replies = ReusedReplies()

    @attrs.frozen
    class Flaky:
        def estimate(self, request):
            return Cost(price)

        async def complete(self, request):
            text = str(request.messages)
            if "one" in text:
                return Failure("judge_call_failed", "503", retry={"attempts": 4, "max_attempts": 4, "history": []})
            if "two" in text:
                raise TimeoutError
            return Reply("fine", "m", cost=Cost(price), retry={"attempts": 2, "max_attempts": 4, "history": []})

    pipeline = load_pipeline(TASK, ready={"chat": Flaky(), "paid": FakeJudge(Judgment(0.5))})
    for calls in (
        "3 calls made (2 failed, 7 requests with all tries)",
        "2 calls made (2 failed, 5 requests with all tries)",
    ):
        replies.begin(pipeline)
        in_loop(run_unless_disabled(pipeline, Request(reuse=replies)))
        assert rerun._replies_text(replies).startswith(f"{calls}, ")


def test_the_calls_and_the_reused_replies_of_a_run_are_counted():
    assert _counts(0, 124) == "0 calls made, 124 replies of earlier runs reused"
    assert _counts(1, 1) == "1 call made, 1 reply of earlier runs reused"


def _counts(calls, used):
    replies = ReusedReplies()
    replies.calls = calls
    replies._used = {("row", str(number), "record", "", 0) for number in range(used)}
    return rerun._replies_text(replies)
