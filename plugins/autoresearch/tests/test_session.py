"""The session's file: which values it accepts, and which files a change may touch."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dicast import ConfigError
from dicast_autoresearch import session as sessions
from dicast_autoresearch.git import Change
from dicast_autoresearch.guard import Guard
from dicast_autoresearch.session import is_command, make, read, write

LEAST = {"name": "demo", "primary": "score", "direction": "higher", "command": "python run.py", "scope": ["src"]}


def refused(**changes):
    """Return the path and the message of each problem of the least session with *changes*."""
    with pytest.raises(ConfigError) as raised:
        make(LEAST | changes, "session.yaml")
    return [(problem.path, problem.message) for problem in raised.value.problems]


def test_the_least_session_has_defaults():
    session = make(LEAST, "session.yaml")
    assert (session.direction, session.scope, session.link) == ("higher_is_better", ("src",), ())
    assert (session.min_delta, session.min_relative_delta, session.noise) == (0.0, 0.0, "none")
    assert (session.min_confidence, session.floor, session.retries) == (2.0, 0.01, 2)
    assert (session.runs, session.minutes, session.money, session.timeout) == (None, None, None, 600.0)
    assert (session.max_validation_drop, session.policy.max_validation_drop) == (0.05, None)
    assert make(LEAST | {"validation": "f1"}, "session.yaml").policy.max_validation_drop == 0.05


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("min_delta", 0),
        ("floor", 0.0),
        ("min_confidence", 9.9e299),
        ("timeout", 1e-9),
        ("minutes", 9.9e299),
        ("runs", 0),
        ("retries", 0),
        ("money", "0"),
        ("money", 3),
        ("money", "2.50"),
        ("noise", "recent"),
        ("secondary_directions", {"f1": "lower"}),
        ("link", [".venv", "data/../data2"][:1]),
        ("scope", ["a/.git", "b/autoresearch.jsonl"]),
        ("checks", None),
    ],
)
def test_values_at_the_bounds_are_accepted(name, value):
    make(LEAST | {name: value}, "session.yaml")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("name", 3, "text"),
        ("goal", ["x"], "text"),
        ("command", "'open", "a command"),
        ("command", "a\0b", "a command"),
        ("checks", "  ", "a command"),
        ("direction", "up", "higher_is_better or lower_is_better"),
        ("noise", "some", "none, confidence or recent"),
        ("min_delta", -1e-9, "a number of 0 or more"),
        ("floor", True, "a number of 0 or more"),
        ("min_relative_delta", "1", "a number of 0 or more"),
        ("max_validation_drop", 1e300, "a number of 0 or more"),
        ("timeout", 0, "a number above 0"),
        ("minutes", 1e300, "a number above 0"),
        ("propose_timeout", True, "a number above 0"),
        ("runs", -1, "an integer of 0 or more"),
        ("retries", 1.0, "an integer of 0 or more"),
        ("runs", True, "an integer of 0 or more"),
        ("money", 2.5, "an amount of USD, such as '2.50'"),
        ("money", "-1", "an amount of USD, such as '2.50'"),
        ("money", "much", "an amount of USD, such as '2.50'"),
        ("money", True, "an amount of USD, such as '2.50'"),
        ("secondary_directions", ["f1"], "higher_is_better or lower_is_better by the name of a METRIC"),
        ("secondary_directions", {"f1": "up"}, "higher_is_better or lower_is_better by the name of a METRIC"),
        ("secondary_directions", {1: "lower"}, "higher_is_better or lower_is_better by the name of a METRIC"),
        ("scope", "src", "a list of paths below the repository"),
        ("scope", ["/etc"], "a list of paths below the repository"),
        ("scope", ["a/../../b"], "a list of paths below the repository"),
        ("scope", [".git/hooks"], "a list of paths below the repository"),
        ("link", [".auto"], "a list of paths below the repository"),
        ("link", ["autoresearch.jsonl"], "a list of paths below the repository"),
        ("link", ["src", ""], "a list of paths below the repository"),
        ("link", ["a\0"], "a list of paths below the repository"),
    ],
)
def test_wrong_values_are_refused_with_their_name(name, value, expected):
    assert refused(**{name: value}) == [(name, f"invalid value for {name}, expected {expected}, got {value!r}")]


def test_all_problems_are_reported_at_once():
    problems = refused(scope=[], runs=-1, primry=3)
    assert [path for path, _ in problems] == ["primry", "scope", "runs"]
    assert problems[1] == ("scope", "the session needs scope")


def test_the_other_name_of_the_primary_metric_is_accepted_alone_or_with_the_same_value():
    without = {name: value for name, value in LEAST.items() if name != "primary"}
    assert make(without | {"primary_metric": "f1"}, "session.yaml").primary == "f1"
    assert make(LEAST | {"primary_metric": "score"}, "session.yaml").primary == "score"
    ((path, message),) = refused(primary_metric="f1")
    assert path == "primary_metric"
    assert message.startswith("primary and primary_metric are one option, with two values here.")


def test_a_written_session_reads_back(tmp_path):
    options = {"secondary_directions": {"f1": "lower_is_better"}, "link": [".venv"], "money": "1.5", "runs": 3}
    session = make(LEAST | options, "session.yaml")
    write(tmp_path, session)
    assert read(tmp_path) == session
    least = make(LEAST, "session.yaml")
    write(tmp_path, least)
    assert read(tmp_path) == least
    text = (tmp_path / sessions.FILE).read_text()
    assert "link" not in text
    assert "secondary_directions" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no session in .*: start one with dicast autoresearch init"),
        ("[1]", "is a mapping of options, not list"),
    ],
)
def test_a_file_without_a_session_is_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / sessions.FOLDER).mkdir()
        (tmp_path / sessions.FILE).write_text(text)
    with pytest.raises(ConfigError, match=message):
        read(tmp_path)


@pytest.mark.parametrize(("text", "answer"), [("a b", True), ("", False), ("'a", False), ("a\0", False)])
def test_a_command_has_words(text, answer):
    assert is_command(text) is answer


def change(path, status="M", mode="100644"):
    return Change(status=status, mode=mode, path=path)


@pytest.fixture
def guard(tmp_path):
    (tmp_path / "bench").mkdir()
    for name in ("run.py", "bench/data.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "link.txt").symlink_to("bench/data.txt")
    session = make(LEAST | {"command": "python run.py link.txt", "checks": f"sh {tmp_path}/check.sh"}, "session.yaml")
    return Guard(SimpleNamespace(root=tmp_path), session)


@pytest.mark.parametrize(
    ("changes", "measuring", "refusal"),
    [
        ([change("src/a.py")], False, ""),
        ([change("src")], False, ""),
        ([change("src2/a.py")], False, "out_of_scope: src2/a.py"),
        ([change("other.py", "A")], True, ""),
        ([change("other.py", "M")], True, "out_of_scope: other.py"),
        ([change("other.py", "A")], False, "out_of_scope: other.py"),
        (
            [change(f"f{number:02}") for number in range(21)],
            False,
            "out_of_scope: " + ", ".join(f"f{number:02}" for number in range(20)),
        ),
        ([change("src/a.py"), change("run.py"), change("x.py")], False, "cheating: run.py"),
        ([change("bench/data.txt", "A")], True, "cheating: bench/data.txt"),
        ([change("link.txt"), change("check.sh")], False, "cheating: link.txt, check.sh"),
        (
            [change(".auto/session.yaml"), change("autoresearch.jsonl")],
            False,
            "cheating: .auto/session.yaml, autoresearch.jsonl",
        ),
        (
            [change("src/inner", mode="160000")],
            False,
            "out_of_scope: repositories inside this one cannot be kept: src/inner",
        ),
        ([change("src/inner", mode="160000")], True, ""),
        ([], False, "no_change: the proposer changed no file in the scope"),
        ([], True, ""),
    ],
)
def test_a_change_may_touch_the_scope_alone(guard, changes, measuring, refusal):
    assert guard.refusal(changes, guard.git.root, measuring=measuring) == refusal


def test_a_measuring_file_in_the_scope_may_change(tmp_path):
    (tmp_path / "run.py").write_text("")
    inside = make(LEAST | {"scope": ["src", "run.py"]}, "session.yaml")
    assert Guard(SimpleNamespace(root=tmp_path), inside).refusal([change("run.py")], tmp_path) == ""


def test_the_scope_is_passed_to_git_without_the_files_of_the_session(guard):
    assert guard.specs() == [
        ":(top,literal)src",
        ":(exclude,top,literal).auto",
        ":(exclude,top,literal)autoresearch.jsonl",
    ]
