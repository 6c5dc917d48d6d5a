"""``dicast cache``: no key is a riddle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dicast import ChatRequest, Failure, Message
from dicast.testing import FakeChatModel
from dicast_cache.cache import Chat

LONG = "The answer is long. " * 30


def question(system="Judge.", text="How good?", **fields):
    return ChatRequest((Message("system", system), Message("user", text)), **fields)


@pytest.fixture
def dicast(path):
    """``dicast("--json")``: the code, output and errors of ``dicast cache PATH --json``."""

    def run(*arguments, path=path):
        command = [Path(sys.executable).with_name("dicast"), "cache", path, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        return done.returncode, done.stdout, done.stderr

    return run


def key(request, model="fake"):
    return request.digest({"model": model})


def test_lists_what_was_asked_and_what_was_not_kept(ask, path, dicast):
    stored, lost = question(text=LONG), question(text="Two", rollout=1, attempt=2)
    ask(Chat(FakeChatModel(["yes", Failure("timeout", "no")]), path), stored, lost)
    code, out, _ = dicast("--json")
    first, second = json.loads(out)["entries"]
    assert code == 0
    assert (first["key"], first["model"], first["unfit"]) == (key(stored), "fake", None)
    assert first["tokens"] == {"input": stored.input_tokens, "output": 3}
    assert first["begins"] == LONG[:60].strip()
    assert (second["attempt"], second["rollout"], second["tokens"], second["unfit"]) == (2, 1, None, "timeout")
    lines = dicast()[1].splitlines()
    assert [line[:12] for line in lines] == [key(stored)[:12], key(lost)[:12]]
    assert "attempt 2  rollout 1  not kept: timeout  Two" in lines[1]


def test_explains_a_key_and_how_the_nearest_differs(ask, path, dicast):
    requests = [
        question(text="Quite another text, of another subject"),
        question(text=f"seal: aaaa {LONG}", nonces=("aaaa",)),
        question("Judge well.", f"seal: bbbb {LONG}", nonces=("bbbb",), schema={"type": "object"}),
    ]
    ask(Chat(FakeChatModel("yes"), path), *requests)
    missed = key(requests[2])
    code, out, _ = dicast("--explain-key", missed[:10], "--json")
    document = json.loads(out)
    assert (code, document["key"], document["nearest"]["key"]) == (0, missed, key(requests[1]))
    assert document["parts"]["model.model"] == "fake"
    assert document["parts"]["messages[1].content"] == f"seal: <nonce 0> {LONG}"
    assert {"attempt", "rollout", "temperature", "schema", "logprobs", "max_output_tokens"} < set(document["parts"])
    differs = document["nearest"]["differs"]
    assert differs["messages[0].content"] == {"this": "Judge well.", "other": "Judge."}
    assert set(differs) == {"messages[0].content", "schema"}
    text = dicast("--explain-key", missed)[1]
    assert f"nearest: {key(requests[1])}" in text
    assert 'messages[0].content: from letter 6: "Judge well." / "Judge."' in text
    assert "letters)" in text


def test_explains_a_key_against_another(ask, path, dicast):
    first, two = question(), question(temperature=0.5)
    for model in ("a", "b"):
        ask(Chat(FakeChatModel("yes", model), path), first, two)
    _, out, _ = dicast("--explain-key", key(first, "a"), "--against", key(two, "b"), "--json")
    assert json.loads(out)["nearest"]["differs"] == {
        "model.model": {"this": "a", "other": "b"},
        "temperature": {"this": None, "other": 0.5},
    }
    text = dicast("--explain-key", key(first, "a"), "--against", key(two, "b"))[1]
    assert 'model.model: "a" / "b"' in text
    assert "temperature: null / 0.5" in text


def test_nearest_of_equally_many_parts_has_the_most_alike_texts(ask, path, dicast):
    near, far, target = (question(text=text) for text in (f"{LONG} b", "something else", f"{LONG} a"))
    ask(Chat(FakeChatModel("yes"), path), far, near, target)
    _, out, _ = dicast("--explain-key", key(target), "--json")
    assert json.loads(out)["nearest"]["key"] == key(near)


def test_only_key_has_no_nearest(ask, path, dicast):
    ask(Chat(FakeChatModel("yes"), path), question())
    assert json.loads(dicast("--explain-key", key(question()), "--json")[1])["nearest"] is None
    assert dicast("--explain-key", key(question()))[1].endswith("there is no other key\n")


def test_key_that_is_not_there_or_not_the_only_one_is_refused(ask, path, dicast):
    ask(Chat(FakeChatModel("yes"), path), *(question(text=str(number)) for number in range(40)))
    code, _, errors = dicast("--explain-key", "00000000000000")
    assert (code, "has no key '00000000000000', so this was never asked through it" in errors) == (2, True)
    digits = {key(question(text=str(number)))[0] for number in range(40)}
    common = next(d for d in digits if sum(key(question(text=str(n))).startswith(d) for n in range(40)) > 1)
    code, _, errors = dicast("--explain-key", common)
    assert (code, f"keys begin with '{common}'" in errors, "give more digits" in errors) == (2, True, True)


def test_cache_that_is_not_there_is_refused_and_not_made(tmp_path, dicast):
    code, _, errors = dicast(path=tmp_path / "none.db")
    assert (code, "no cache at" in errors, list(tmp_path.iterdir())) == (2, True, [])
    code, out, _ = dicast("--json", path=tmp_path / "none.db")
    assert (code, json.loads(out)["error"]["kind"]) == (2, "ConfigError")


def test_against_alone_is_refused(path, dicast):
    assert dicast("--against", "aa")[0] == 2
