"""Task files: valid input, refused input with its place, and the join of outputs with their tasks."""

from __future__ import annotations

import asyncio
import gzip
import json
import pickle
from pathlib import Path

import orjson
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import ConfigError, DataError, RunContext, Source
from dicast.testing import run_pipeline
from dicast_tasksets import Files

FULL_TASK = {
    "id": "t1",
    "repo": {"source": "./repo", "ref_spec": "main", "focus_files": ["src/auth.py"]},
    "goal": "Fix the login.",
    "constraints": [
        {"kind": "max_tokens", "description": "Maximum 1000 tokens", "value": 1000},
        {"kind": "must_not_modify", "description": "", "value": "Cargo.lock"},
        {"kind": "require_tests", "description": "Add tests"},
        {"kind": "custom", "description": "Be kind", "value": {"any": ["thing"]}},
    ],
    "gold_files": [
        {"path": "src/auth.py", "content": "fixed", "comparison": "ast_equivalent"},
        {"path": "README", "content": "", "comparison": {"contains_patterns": ["^#"]}},
    ],
    "expected": {
        "fields": {"score": {"expected_type": "number", "min": 0.0, "max": 1.0}, "name": {"pattern": "^[a-z]+$"}},
        "pass_commands": ["cargo test"],
        "required_patterns": ["success"],
        "forbidden_patterns": ["TODO"],
    },
    "metadata": {
        "tags": ["bug-fix"],
        "difficulty": 0.5,
        "estimated_time_secs": 60,
        "source": "internal",
        "extra": {"x": 1},
    },
}


def write(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def lines(*rows: object) -> bytes:
    return b"".join((row if isinstance(row, bytes) else orjson.dumps(row)) + b"\n" for row in rows)


def task(id_: str, *tags: str, difficulty: float | None = None, **fields: object) -> dict[str, object]:
    metadata = {"tags": [*tags]} | ({} if difficulty is None else {"difficulty": difficulty})
    return {"id": id_, "goal": f"do {id_}", "metadata": metadata, **fields}


def ids(source: Files) -> list[str]:
    return [subject.id for subject in source.subjects()]


def problems(source: Files) -> list[tuple[str, int | None, int | None, str, str | None]]:
    with pytest.raises(DataError) as caught:
        source.check()
    return [(Path(p.file or "").name, p.line, p.column, p.message, p.hint) for p in caught.value.problems]


def test_a_task_becomes_a_subject_as_document_003_gives_it_to_a_predictor(tmp_path):
    path = write(tmp_path, "set.json", {"name": "s", "description": "d", "version": "2.0.0", "tasks": [FULL_TASK]})
    (subject,) = Files(path).subjects()
    assert (subject.kind, subject.id, subject.output, subject.reference) == ("task", "t1", None, "fixed")
    assert subject.input == {
        "goal": "Fix the login.",
        "repo_source": "./repo",
        "repo_ref": "main",
        "focus_files": ["src/auth.py"],
        "expected_commands": ["cargo test"],
    }
    names = ("constraints", "gold_files", "expected", "metadata")
    assert subject.context == {**{n: FULL_TASK[n] for n in names}, "task_set": {"name": "s", "version": "2.0.0"}}


def test_a_task_needs_an_id_and_a_goal_alone(tmp_path):
    (subject,) = Files(write(tmp_path, "one.yaml", "id: a\ngoal: g\n")).subjects()
    assert (subject.input, subject.reference, subject.context) == ({"goal": "g"}, None, {})


def test_what_may_be_left_out_may_be_null(tmp_path):
    task = {"id": "a", "goal": "g", "repo": {"source": "x", "ref_spec": None}, "gold_files": None, "constraints": None}
    task["metadata"] = {"tags": None, "difficulty": None, "estimated_time_secs": None, "source": None, "extra": None}
    task["expected"] = {"fields": {"n": {"value": None, "expected_type": "number", "min": 0, "max": None}}}
    full = {"name": "set", "description": None, "tasks": [task, {"id": "b", "goal": "g", "metadata": None}]}
    first, second = Files(write(tmp_path, "set.json", full)).subjects()
    assert (first.input, first.reference) == ({"goal": "g", "repo_source": "x"}, None)
    assert first.context == {name: task[name] for name in ("expected", "metadata")} | {"task_set": {"name": "set"}}
    assert second.context == {"task_set": {"name": "set"}}
    with pytest.raises(DataError, match="no task in these files that passes"):
        [*Files(tmp_path / "set.json", difficulty=(0, 1)).subjects()]
    with pytest.raises(DataError, match="goal is a text, not null"):
        [*Files(write(tmp_path, "no.json", {"id": "a", "goal": None})).subjects()]


FORMS = {
    "set.json": {"tasks": [task("a"), task("b")]},
    "list.json": [task("a"), task("b")],
    "set.yaml": yaml.safe_dump({"name": "n", "tasks": [task("a"), task("b")]}),
    "list.yml": yaml.safe_dump([task("a"), task("b")]),
    "rows.jsonl": lines(task("a"), b"", task("b")),
    "rows.ndjson": b"\xef\xbb\xbf" + lines(task("a"), task("b")),
    "rows.jsonl.gz": gzip.compress(lines(task("a"), task("b"))),
    "set.json.gz": gzip.compress(json.dumps([task("a"), task("b")]).encode()),
    "crlf.yaml": b"- id: a\r\n  goal: x\r\n- id: b\r\n  goal: y\r\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_file_is_read(tmp_path, name):
    assert ids(Files(write(tmp_path, name, FORMS[name]))) == ["a", "b"]


def test_a_folder_is_read_whole_in_the_order_of_names(tmp_path):
    write(tmp_path, "b.json", [task("b")])
    write(tmp_path, "a/z.jsonl", lines(task("az")))
    write(tmp_path, "a.yaml", "id: a\ngoal: g")
    write(tmp_path, ".hidden/x.json", [task("hidden")])
    write(tmp_path, "notes.txt", "not a task")
    assert ids(Files(tmp_path)) == ["az", "a", "b"]


def test_yaml_words_are_words_and_numbers_numbers(tmp_path):
    text = "id: 'no'\ngoal: no\nmetadata: {difficulty: 1e-1, extra: {a: no, b: 012, c: 0x1, d: 2026-01-01, e: ~, f: True, g: 1_0}}"
    (subject,) = Files(write(tmp_path, "t.yaml", text)).subjects()
    assert subject.input == {"goal": "no"}
    assert subject.context["metadata"] == {
        "difficulty": 0.1,
        "extra": {"a": "no", "b": 12, "c": 1, "d": "2026-01-01", "e": None, "f": True, "g": "1_0"},
    }


# Filters


@pytest.fixture
def three(tmp_path):
    tasks = [task("easy", "x", difficulty=0.1), task("hard", "x", "y", difficulty=0.9), task("unknown", "z")]
    return write(tmp_path, "set.json", tasks)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["easy", "hard", "unknown"]),
        ({"tags": ("x",)}, ["easy", "hard"]),
        ({"tags": ("y", "z")}, ["hard", "unknown"]),
        ({"difficulty": (0.1, 0.9)}, ["easy", "hard"]),
        ({"difficulty": (0.0, 0.1)}, ["easy"]),
        ({"ids": ("unknown", "easy")}, ["easy", "unknown"]),
        ({"tags": ("x",), "difficulty": (0.5, 1.0)}, ["hard"]),
    ],
)
def test_filters(three, options, expected):
    assert ids(Files(three, **options)) == expected


def test_a_filter_that_lets_nothing_through_is_an_error(three):
    assert (
        problems(Files(three, tags=("z",), difficulty=(0, 1)))[0][3]
        == "there is no task in these files that passes the filters"
    )


def test_a_tag_or_an_id_that_no_task_has_names_the_nearest(three):
    faults = problems(Files(three, tags=("xx",), ids=("esay",)))
    assert [problem[3:] for problem in faults] == [
        ("no task has the tag 'xx'", "x"),
        ("there is no task 'esay'", "easy"),
    ]


@pytest.mark.parametrize("difficulty", [(0.5, 0.1), (-0.1, 0.5), (0.5, 1.1)])
def test_a_range_of_difficulties_rises_within_0_and_1(three, difficulty):
    with pytest.raises(ValueError, match="low <= high"):
        Files(three, difficulty=difficulty)


# Outputs


def test_outputs_come_to_their_tasks_by_id(tmp_path):
    path = write(tmp_path, "set.json", [task("a"), task("7")])
    rows = lines(
        {"task_id": 7, "output": {"x": 1}, "tokens": 12, "metadata": "the task's own counts"},
        {"id": "a", "output": "o", "session_id": 3},
    )
    first, second = Files(path, write(tmp_path, "out.jsonl", rows)).subjects()
    assert (first.output, first.session_id, first.context) == ("o", "3", {"metadata": {"tags": []}})
    assert (second.output, second.session_id) == ({"x": 1}, None)
    assert second.context == {"tokens": 12, "metadata": {"tags": []}}


def test_a_task_without_an_output_is_named(tmp_path):
    out = write(tmp_path, "out.jsonl", lines({"id": "a", "output": 1}))
    path = write(tmp_path, "set.json", "[\n" + json.dumps(task("a")) + ",\n" + json.dumps(task("b")) + "]")
    ((file, line, _, message, _),) = problems(Files(path, out))
    assert (file, line) == ("set.json", 3)
    assert "has no output for the task 'b'; with allow_missing it is judged without" in message
    assert [s.output for s in Files(path, out, allow_missing=True).subjects()] == [1, None]
    assert ids(Files(path, out, ids=("a",))) == ["a"]


def test_an_output_of_a_task_that_is_filtered_out_is_no_error(three, tmp_path):
    out = write(tmp_path, "out.jsonl", lines(*({"id": id_, "output": 1} for id_ in ("easy", "hard", "unknown"))))
    assert ids(Files(three, out, tags=("y",))) == ["hard"]


def test_what_is_wrong_with_outputs_is_told_at_once(three, tmp_path):
    rows = ({"id": "esay", "output": 1}, {"id": "easy", "ouput": 1}, b"{", {"output": 1}, {"id": "hard", "output": 1},
            {"id": "hard", "output": 2}, {"id": [1], "output": 1}, [1])  # fmt: skip
    faults = problems(Files(three, write(tmp_path, "out.jsonl", lines(*rows))))
    assert [(line, hint) for _, line, _, _, hint in faults] == [
        (1, "easy"), (2, "ouput"), (3, None), (4, None), (6, None), (7, None), (8, None)
    ]  # fmt: skip
    assert faults[4][3] == "duplicate id 'hard', first on line 5"


# What is wrong with tasks


def test_every_fault_of_a_json_set_is_told_with_its_place(tmp_path):
    text = """{"name": "x", "versoin": "1",
 "tasks": [
  {"id": "a", "gaol": "x", "metadata": {"difficulty": 2, "tag": []}},
  {"id": "b", "goal": "y", "constraints": [{"kind": "max_token"}, {"kind": "max_tokens", "value": "many"}],
   "expected": {"fields": {"f": {"typ": 1}, "g": {"type": "numbr"}, "h": {"min": 2, "max": 1}}, "required_patterns": ["(a"]}},
  {"id": "", "goal": "z", "gold_files": [{"path": "p", "content": "c", "comparison": "semantc"}, {"path": "p"}]},
  7]}"""
    faults = problems(Files(write(tmp_path, "bad.json", text)))
    assert [(line, column, hint) for _, line, column, _, hint in faults] == [
        (1, 15, "version"),
        (3, 3, None),
        (3, 15, "goal"),
        (3, 55, None),
        (3, 58, "tags"),
        (4, 53, "max_tokens"),
        (4, 99, None),
        (5, 34, "type"),
        (5, 59, "number"),
        (5, 82, None),
        (5, 119, None),
        (6, 10, None),
        (6, 86, "semantic"),
        (6, 98, None),
        (7, 3, None),
    ]
    assert faults[1][3] == "a task needs 'goal'"
    assert faults[5][3].startswith("kind is max_tokens, max_latency, must_use_file, ")
    assert faults[10][3] == "'(a' is no regular expression of RE2: missing ): (a"


def test_every_fault_of_a_yaml_set_is_told_with_its_place(tmp_path):
    text = "tasks:\n  - id: a\n    gaol: x\n  - id: b\n    goal: ok\n    metadata:\n      difficulty: hard\n"
    faults = problems(Files(write(tmp_path, "bad.yaml", text)))
    assert [(line, column, hint) for _, line, column, _, hint in faults] == [
        (2, 5, None),
        (3, 5, "goal"),
        (7, 19, None),
    ]
    assert faults[2][3] == "difficulty is a number from 0 to 1, not 'hard'"


def test_every_fault_of_json_lines_is_told_with_its_place(tmp_path):
    content = lines(
        {"id": "a"}, b"not json", {"id": "b", "goal": "x", "repo": {"src": 1}}, [1], b"\xff", task("b"), task("b")
    )
    faults = problems(Files(write(tmp_path, "bad.jsonl", content)))
    assert [(line, column, hint) for _, line, column, _, hint in faults] == [
        (1, 1, None), (2, 1, None), (3, 30, "source"), (4, None, None), (5, 1, None), (7, None, None)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "line", "words"),
    [
        ("a.json", "{", 1, "not JSON"),
        ("a.json", "[" * 100_000, 1, "not JSON"),
        (
            "a.json",
            '{"id": "a", "goal": "g", "metadata": {"extra": {"x": ' + "[" * 300 + "]" * 300 + "}}}",
            1,
            "nested too deep",
        ),
        ("a.json", "7", 1, "a task file is a task set, a list of tasks or one task, not 7"),
        ("a.json", b'["\xff"]', 1, "byte 0xff is not UTF-8"),
        ("a.json", b"\n\n\x00", 3, "not JSON"),
        ("a.yaml", "", 1, "not null"),
        ("a.yaml", "a: b: c", 1, "not valid YAML"),
        ("a.yaml", "[" * 100_000, None, ""),
        ("a.yaml", "- &a [1]\n- *b\n", 2, "the alias *b names no anchor before it"),
        ("a.yaml", "id: a\nid: b\n", 2, "the key 'id' is given twice"),
        ("a.yaml", "id: !!python/name:os.system a\n", 1, "the tag !!python/name:os.system does not fit here"),
        ("a.yaml", "id: a\n---\nid: b\n", 2, "a second YAML document begins here"),
        ("a.yaml", "? [a]\n: 1\n", 1, "a key must be text"),
        ("a.yaml", "id: 5\ngoal: g", 1, "id is a text that is not empty, not 5"),
        ("a.jsonl", b'{"id": "a", "goal": ' + b"[" * 100_000, 1, ""),
        ("a.json", '{"name": "n", "taks": []}', 1, "a task set has no 'taks'"),
        ("a.json", '{"tasks": {}}', 1, "tasks is a list, not an object of 0"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(tmp_path, name, content, line, words):
    faults = problems(Files(write(tmp_path, name, content)))
    assert any(words in message for *_, message, _ in faults)
    assert line is None or faults[0][1] == line


def test_the_first_100_problems_are_named_and_the_others_counted(tmp_path):
    path = write(tmp_path, "bad.jsonl", lines(*({"id": str(n)} for n in range(250))))
    faults = problems(Files(path))
    assert len(faults) == 101
    assert faults[-1][3] == "… and 150 more"


def test_ids_are_one_over_all_files(tmp_path):
    write(tmp_path, "a.yaml", "id: t\ngoal: g\n")
    write(tmp_path, "b.json", '[\n{"id": "t", "goal": "g"}]')
    ((file, line, _, message, _),) = problems(Files(tmp_path))
    assert (file, line, message) == ("b.json", 2, f"duplicate id 't', first at {tmp_path / 'a.yaml'}:1")


def test_lone_surrogates_are_kept_apart_from_what_can_be_recorded(tmp_path):
    (due,) = Files(write(tmp_path, "a.json", r'[{"id": "\ud800", "goal": "g"}]')).subjects()
    assert (due.subject.id, due.failure.kind) == (r"\ud800", "source_error")


def test_no_folder_and_no_file_name_the_nearest(tmp_path):
    write(tmp_path, "tasks.json", [task("a")])
    with pytest.raises(ConfigError, match=r"'task.json' does not exist.*did you mean 'tasks.json'"):
        Files(tmp_path / "task.json")
    assert problems(Files(write(tmp_path, "empty/none.txt", "").parent))[0][3].startswith("there is no task")


# The component


def test_it_is_a_source_that_can_be_sent_elsewhere(tmp_path):
    source = Files(write(tmp_path, "a.json", [task("a")]))
    assert isinstance(source, Source)
    assert pickle.loads(pickle.dumps(source)) == source
    assert source.kinds == ("task",)


def test_the_digest_changes_with_tasks_and_with_outputs(tmp_path):
    path, out = write(tmp_path, "a.json", [task("a")]), write(tmp_path, "o.jsonl", lines({"id": "a", "output": 1}))
    digests = [Files(path).check(), Files(path, out).check(), Files(path, out).check()]
    write(tmp_path, "o.jsonl", lines({"id": "a", "output": 2}))
    digests.append(Files(path, out).check())
    write(tmp_path, "a.json", [task("a"), task("b")])
    digests.append(Files(path).check())
    assert digests[1] == digests[2]
    assert len(set(digests)) == 4


def test_the_live_source_can_be_read_again(tmp_path):
    async def twice():
        async with Files(write(tmp_path, "a.jsonl", lines(task("a"), task("b")))).open(
            RunContext("r", "n", Path())
        ) as live:
            live.check()
            return live.total, [s.id for s in live.subjects()], [s.id for s in live.subjects()]

    assert asyncio.run(twice()) == (2, ["a", "b"], ["a", "b"])


def test_it_works_from_yaml(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(
        tmp_path, "set/a.json", {"name": "s", "tasks": [task("a", expected={"fields": {"x": {"min": 1}}}), task("b")]}
    )
    write(tmp_path, "out.jsonl", lines({"id": "a", "output": {"x": 1}}, {"id": "b", "output": ""}))
    text = """
source: {tasksets/files: {path: set, outputs: out.jsonl}}
metrics: [tasksets/expected: {on_failure: exclude}, proxy/format]
"""
    first, second = run_pipeline(text).verdicts
    assert (first.subject_kind, first.score, first.tier, second.score, second.tier) == (
        "task",
        1.0,
        "truth",
        0.0,
        "proxy",
    )


def test_a_wrong_task_ends_the_run_before_anything_is_judged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "a.jsonl", lines(task("a"), {"id": "b", "gaol": "x"}))
    with pytest.raises(DataError, match=r"(?s)a.jsonl:2:11: a task has no 'gaol'.*did you mean 'goal'"):
        run_pipeline("source: {tasksets/files: {path: a.jsonl}}\nmetrics: [proxy/format]")


WORD = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp")), max_size=5
)  # all that YAML takes as it is
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | WORD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORD, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=2 * settings.default.max_examples // 5)
@given(st.lists(st.tuples(st.text("abc", min_size=1), JSON), unique_by=lambda pair: pair[0], min_size=1, max_size=4))
def test_json_yaml_and_json_lines_say_the_same(tmp_path_factory, tasks):
    folder = tmp_path_factory.mktemp("t")
    rows = [task(id_, metadata={"extra": {"x": extra}}) for id_, extra in tasks]
    faults = [[*Files(write(folder, name, content)).subjects()] for name, content in (
        ("a.json", rows), ("a.jsonl", lines(*rows)), ("b.json", json.dumps(rows, indent=1)), ("a.yaml", json.dumps(rows, ensure_ascii=False)))]  # fmt: skip
    assert faults[0] == faults[1] == faults[2] == faults[3]
