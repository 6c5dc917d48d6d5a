"""``task/python``: a function of a module next to the pipeline file, or of an installed module."""

from __future__ import annotations

import sys

import pytest

import dicast

ROWS = '{"id": "1", "input": "one", "reference": "ONE"}\n'


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text(ROWS)
    before = list(sys.path)

    def run(code=None, target="answers:reply"):
        if code is not None:
            (tmp_path / "answers.py").write_text(code)
        file = tmp_path / "pipeline.yaml"
        file.write_text(
            f"source: {{rows/jsonl: {{path: rows.jsonl}}}}\ntask: {{task/python: {{target: {target}}}}}\nmetrics: [diff/match]\n"
        )
        run = dicast.run(file)
        assert sys.path == before
        return run

    yield run
    sys.modules.pop("answers", None)


def test_a_function_beside_the_pipeline_makes_the_output(shop):
    assert shop("def reply(input):\n    return input.upper()\n").score["mean"] == 1.0


def test_it_can_import_what_lies_beside_it(shop, tmp_path):
    (tmp_path / "answers_help.py").write_text("def up(text):\n    return text.upper()\n")
    assert (
        shop("def reply(row):\n    import answers_help\n    return answers_help.up(row['input'])\n").score["mean"]
        == 1.0
    )


def test_an_edited_module_is_read_anew_and_is_another_task(shop):
    first = shop("def reply(input):\n    return input.upper()\n")
    second = shop("def reply(input):\n    return input.title()  # longer\n")
    assert (first.score["mean"], second.score["mean"]) == (1.0, 0.0)
    started = {}
    dicast.read_ledger(
        None,
        lambda ledger: started.update(
            (entry.event.run_id, entry.event.payload) for entry in ledger.read(dicast.Query(types=("run.started",)))
        ),
    )
    old_task, new_task = (started[run.run_id]["fingerprints"]["task"] for run in (first, second))
    assert old_task != new_task


def test_an_installed_module_and_a_method_do(shop):
    assert shop(target="textwrap:dedent").scored == 1
    assert (
        shop("class Bot:\n    @staticmethod\n    def reply(input):\n        return 'ONE'\n", "answers:Bot.reply").score[
            "mean"
        ]
        == 1.0
    )


@pytest.mark.parametrize(
    ("code", "target", "message"),
    [
        ("x = 1\n", "answer:reply", r"there is no module 'answer' in .*, did you mean 'answers'\?"),
        ("def reply(input): ...\n", "answers:replay", r"answers has no 'replay', did you mean 'reply'\?"),
        ("reply = 3\n", "answers:reply", r"a task is a function .*, not 3"),
        (
            "import nothing_like_this\n",
            "answers:reply",
            r"answers failed to import: ModuleNotFoundError: .* \(answers.py:1\)",
        ),
        (
            "",
            "answers.reply",
            r"pipeline.yaml:2:\d+: target is MODULE:FUNCTION, such as answers:reply, not 'answers.reply'",
        ),
    ],
)
def test_what_cannot_be_called_is_refused_before_anything_is_judged(shop, code, target, message):
    with pytest.raises(dicast.RequestError, match=message):
        shop(code, target)
