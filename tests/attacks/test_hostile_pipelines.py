"""Pipeline files, such as one that is included, that were written to exhaust or to run something."""

from __future__ import annotations

import time

import pytest

MULTIPLIED = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(MULTIPLIED, "more than 100,000 values, aliases expanded", id="aliases that multiply"),
        pytest.param("a: &a [*a]\n", "is inside the value it names", id="an alias in itself"),
        pytest.param("a: &a {b: *a}\n", "is inside the value it names", id="an alias in its mapping"),
        pytest.param("a: " + "[" * 20_000 + "]" * 20_000, "nested deeper than 100 levels", id="brackets"),
        pytest.param(
            "\n".join(" " * depth + "a:" for depth in range(2_000)), "nested deeper than 100 levels", id="blocks"
        ),
        pytest.param("- " * 5_000 + "a", "nested deeper than 100 levels", id="dashes"),
        pytest.param("a: " + "9" * 100_000, "needs more than 64 bits", id="a number of 100,000 digits"),
        pytest.param("a: 0x" + "f" * 100_000, "needs more than 64 bits", id="a hexadecimal one"),
        pytest.param('a: !!python/object/apply:os.system ["touch ran"]', "does not fit here", id="a tag that calls"),
        pytest.param("a: !!python/name:os.system", "does not fit here", id="a tag that names"),
        pytest.param("include: hostile.yaml\n", "the includes are circular", id="an include of itself"),
        pytest.param("? {a: b}\n: 1\n", "a key must be text", id="a mapping as key"),
        pytest.param("<<: {source: 1}\n", "merge keys", id="a merge"),
    ],
)
def test_a_hostile_file_that_is_included_is_refused_at_its_place(attack, text, said):
    attack.write("hostile.yaml", text)
    attack.write(
        "pipeline.yaml", "include: hostile.yaml\nsource: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [proxy/format]\n"
    )
    attack.write("rows.jsonl", '{"id": "1", "output": "a"}\n')
    began = time.process_time()
    ended = attack.dicast("check", "pipeline.yaml")
    assert ended.code == 2
    assert "hostile.yaml:" in ended.errors
    assert said in ended.errors
    assert time.process_time() - began < 5
    assert not (attack.folder / "ran").exists()


@pytest.mark.parametrize(
    "text", ["name: " + "${A}" * 100_000, "name: x\ndefine:\n" + '  - "${A}"\n' * 50_000], ids=["one", "many"]
)
def test_variables_that_multiply_are_refused_at_their_place(attack, monkeypatch, text):
    monkeypatch.setenv("A", "x" * 100_000)
    attack.write("pipeline.yaml", text)
    ended = attack.bounded("check", "pipeline.yaml", gib=1)
    assert ended.code == 2, ended
    assert "pipeline.yaml:" in ended.errors
    assert "the values of variables have more than 16 MiB of text" in ended.errors
    assert len(ended.errors) < 2_000


def test_a_device_as_pipeline_is_not_read_to_its_end(attack):
    ended = attack.bounded("check", "/dev/zero", gib=1)
    assert ended.code == 2
    assert "this is a device" in ended.errors
