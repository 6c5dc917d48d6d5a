"""Tasks with a failed output or a failed record are failed subjects, and the counts add up."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import DataError, Due, ReadCounts
from dicast_tasksets import Files


def task(name: str, **fields: object) -> dict[str, object]:
    return {"id": name, "goal": f"do {name}", **fields}


def read(source: Files) -> tuple[dict[str, str | None], ReadCounts]:
    with source.reading() as live:
        live.check()
        subjects = {}
        for subject in live.subjects():
            due = subject if isinstance(subject, Due) else Due(subject)
            assert due.failure is None or due.failure.kind == "source_error"
            subjects[due.subject.id] = due.failure and due.failure.message
        return subjects, live.read_counts()


@pytest.fixture
def tasks(tmp_path):
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([task("a"), task("b", metadata={"tags": ["x"]}), task("c")]))
    return path


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"error": {"code": "expired", "message": "too late"}}, "expired: too late"),
        ({"output": None, "error": "too late"}, "too late"),
        ({"output": "", "error": {"status": 500}}, '{"status":500}'),
    ],
)
def test_an_error_in_place_of_an_output_fails_its_task_alone(tasks, tmp_path, line, message):
    outputs = tmp_path / "outputs.jsonl"
    outputs.write_text(
        "\n".join(
            map(
                json.dumps,
                [{"id": "a", "output": "x"}, {"id": "b", **line}, {"id": "c", "output": "y", "error": "data"}],
            )
        )
    )
    assert read(Files(tasks, outputs)) == ({"a": None, "b": message, "c": None}, ReadCounts(3, failed=1))


def test_a_line_without_an_output_and_without_an_error_refuses_the_file(tasks, tmp_path):
    outputs = tmp_path / "outputs.jsonl"
    outputs.write_text(
        "\n".join(map(json.dumps, [{"id": "a"}, {"id": "b", "output": "x"}, {"id": "c", "output": "x"}]))
    )
    with pytest.raises(DataError, match="no 'output'"):
        read(Files(tasks, outputs))


def test_tasks_that_the_filters_leave_out_are_counted_as_dropped(tasks):
    assert read(Files(tasks, tags=("x",))) == ({"b": None}, ReadCounts(3, dropped={"filtered": 2}))


@pytest.mark.parametrize("name", ["tasks.json", "tasks.jsonl"])
def test_a_lone_surrogate_fails_its_task_alone(tmp_path, name):
    lines = r'{"id": "a", "goal": "half \ud83d"}', r'{"id": "b", "goal": "whole \ud83d\ude00"}'
    (tmp_path / name).write_text("\n".join(lines) if name.endswith("l") else f"[{','.join(lines)}]")
    subjects, counts = read(Files(tmp_path / name))
    assert "lone surrogate \\ud83d" in subjects["a"]
    assert (subjects["b"], counts) == (None, ReadCounts(2, failed=1))


def test_a_lone_surrogate_in_an_output_fails_its_task_alone(tasks, tmp_path):
    outputs = tmp_path / "outputs.jsonl"
    outputs.write_text(
        "\n".join(
            rf'{{"id": "{name}", "output": "{text}"}}' for name, text in (("a", "x"), ("b", r"\ud83d"), ("c", "y"))
        )
    )
    subjects, counts = read(Files(tasks, outputs))
    assert "lone surrogate" in subjects["b"]
    assert counts == ReadCounts(3, failed=1)


shapes = st.sampled_from(["good", "failed", "surrogate", "dropped"])


@pytest.mark.parametrize("name", ["tasks.json", "tasks.jsonl"])
@given(st.lists(shapes, min_size=1, max_size=8).filter(lambda kinds: set(kinds) != {"dropped"}))
def test_what_was_read_adds_up_to_what_the_files_have(tmp_path_factory, name, chosen):
    folder = tmp_path_factory.mktemp("tasks")
    tags = [[] if shape == "dropped" else ["x"] for shape in chosen]
    texts = [json.dumps(task(str(at), metadata={"tags": tags[at]})) for at in range(len(chosen))]
    texts = [
        text.replace("do ", r"do \udc00 ") if shape == "surrogate" else text
        for text, shape in zip(texts, chosen, strict=True)
    ]
    (folder / name).write_text("\n".join(texts) if name.endswith("l") else f"[{','.join(texts)}]")
    bad = {"output": None, "error": "too late"}
    rows = [{"id": str(at), **(bad if shape == "failed" else {"output": "x"})} for at, shape in enumerate(chosen)]
    (folder / "outputs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    shapes_, counts = read(Files(folder / name, folder / "outputs.jsonl", tags=("x",)))
    dropped = chosen.count("dropped")
    failed = chosen.count("failed") + chosen.count("surrogate")
    assert counts == ReadCounts(len(chosen), dropped={"filtered": dropped} if dropped else {}, failed=failed)
    assert len(shapes_) == len(chosen) - dropped
    assert sum(why is not None for why in shapes_.values()) == failed
