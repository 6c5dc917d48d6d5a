"""``dicast show --browse``: a case in full, printed or on a terminal with keys."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import termios
import threading
from contextlib import redirect_stdout

import click
import pytest

from dicast import read_ledger, run
from dicast._browse.browse import Browser, RunCases, Size
from dicast._browse.case import _outputs, difference
from dicast._kernel.api.runs import run_unless_disabled
from dicast._kernel.cli import main
from dicast._kernel.pipeline.build import load_pipeline
from dicast._kernel.run.request import Request
from dicast._kernel.timing.event_loop import in_loop
from dicast.testing import FakeChatModel

LONG = " ".join(f"word{number}" for number in range(200))
ROWS = [
    {"id": "good", "input": "The capital of Turkey?", "output": "Ankara", "reference": "Ankara"},
    {"id": "bad", "input": f"A long question: {LONG}", "output": "It is Bonn.", "reference": "It is Ankara."},
    {"id": "open", "input": "No output?", "reference": "Ankara"},
    {"id": "hostile\x1b[31m", "input": "\x1b]0;title\x07", "output": "Ankara", "reference": "Ankara"},
]
CHAT = {
    "id": "c1",
    "messages": [
        {"role": "system", "content": "Answer in one word."},
        {"role": "user", "content": "What is the weather?"},
        {"role": "assistant", "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Ankara"}'}}]},
        {"role": "tool", "tool_call_id": "t1", "content": LONG},
        {"role": "assistant", "content": "Sunny."},
        {"role": "user", "content": "And tomorrow?"},
        {"role": "assistant", "content": "Rain."},
    ],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "run.yaml").write_text(
        "name: rows\nsource: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [diff/match: {as: correct, pass_at: 1}, proxy/format: {as: form}]\n"
    )
    main(["run", "run.yaml"])
    capsys.readouterr()
    return tmp_path


def printed(capsys, *arguments):
    code = main(["show", *arguments])
    out = capsys.readouterr()
    return code, out.out + out.err


def test_without_a_terminal_a_case_is_printed_whole(folder, capsys):
    code, text = printed(capsys, "bad", "--browse")
    assert code == 0
    assert LONG.split()[-1] in text
    assert "It is [-Ankara-]{+Bonn+}." in text
    assert "correct: 0.6667, did not pass" in text
    assert "form: 1.0000, passed" in text


def test_without_a_terminal_a_run_prints_the_cases_that_did_not_pass(folder, capsys):
    code, text = printed(capsys, "--browse")
    assert code == 0
    assert "row bad  in run" in text
    assert "row open  in run" in text
    assert "missing_input" in text
    assert "row good" not in text
    assert text.endswith("2 of 4 cases did not pass\n")
    assert printed(capsys, "rows", "--browse") == printed(capsys, "last", "--browse") == (code, text)


def test_structures_are_compared_as_indented_json(folder, capsys):
    row = {"id": "json", "output": {"city": "Bonn", "ok": True}, "reference": {"city": "Ankara", "ok": True}}
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n")
    main(["run", "run.yaml"])
    capsys.readouterr()
    _, text = printed(capsys, "json")
    assert '"city": "[-Ankara-]{+Bonn+}",\n    "ok": true' in text


def test_a_case_whose_content_was_not_recorded_is_shown_with_the_reason(folder, capsys):
    main(["run", "run.yaml", "--set", "ledger={ledger/sqlite: {path: d.db, content: digest}}"])
    capsys.readouterr()
    code, text = printed(capsys, "bad", "--ledger", "d.db")
    assert code == 0
    assert "  its content is not in the ledger (content: digest, or erased)\n" in text
    assert "Bonn" not in text


def test_control_codes_of_a_case_are_escaped(folder, capsys):
    _, text = printed(capsys, "hostile\x1b[31m", "--browse")
    assert "\x1b" not in text
    assert "\x07" not in text


def test_a_subject_of_another_run_is_refused(folder, capsys):
    main(["run", "run.yaml", "--limit", "1", "--json"])
    run_id = json.loads(capsys.readouterr().out)["run_id"]
    code, text = printed(capsys, "bad", "--browse", "--run", run_id)
    assert code == 2
    assert "has not judged 'bad'" in text


def test_a_long_note_is_whole_below_the_case(folder):
    address = f"file:///{'folder/' * 20}report.html#row=row%2Fplot-12"

    def draw(browser):
        browser.note = f"no browser could be opened: {address}"
        return browser.text().split("\n"), browser.text().split("\n")

    noted, plain = browser(folder, draw)
    assert address in "".join(noted)
    assert (len(noted), len(plain)) == (24, 24)
    assert max(map(len, noted)) < 80


def test_a_conversation_is_shown_with_policy_calls_results_and_turns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chats.jsonl").write_text(json.dumps(CHAT) + "\n")
    (tmp_path / "run.yaml").write_text(
        "source: {traces/messages: {path: chats.jsonl, id: '{{ id }}', subjects: [turn, session]}}\n"
        "judges: [heuristic/turn, heuristic/session]\n"
    )
    main(["run", "run.yaml"])
    capsys.readouterr()
    _, session = printed(capsys, "c1", "--browse")
    assert session.index("Answer in one word.") < session.index("turn c1/1:") < session.index("turn c1/2:")
    assert 'call weather {"city":"Ankara"}' in session
    assert f"returned: {LONG}" in session
    assert re.search(r"^turn c1/2:  heuristic/turn \d\.\d{4}, passed$", session, re.MULTILINE)
    assert printed(capsys, "c1") == (0, session)
    _, turn = printed(capsys, "c1/2", "--browse")
    assert "policy:\n  Answer in one word." in turn
    assert "Rain." in turn
    assert "Sunny." not in turn


def browser(folder, action, height=24, width=80):
    """Return the result of *action* on a browser of the newest run, at its first case."""
    return read_ledger(
        None, lambda ledger: action(Browser(RunCases.of(ledger, _newest(ledger)), 0, Size(width, height)))
    )


def _newest(ledger):
    from dicast import newest_run

    return newest_run(ledger.read)


def test_keys_move_between_cases_failed_cases_and_labels(folder):
    def keys(screen):
        places = []
        for key in ("f", "f", "f", "F", "p", "p", "n", "l"):
            assert screen.press(key)
            screen.text()
            places.append(screen.at)
        return places, screen.top, screen.press("q")

    places, top, goes_on = browser(folder, keys, height=8)
    assert places == [1, 2, 2, 1, 0, 0, 1, 1]
    assert top > 0
    assert not goes_on


def test_cases_start_with_the_worst_of_the_gates_label_and_a_key_changes_the_order(folder, capsys):
    outputs = {"half": "a b c", "open": "d", "none": "x", "right": "a b c d"}
    rows = [{"id": id_, "output": text, "reference": "a b c d"} for id_, text in outputs.items()]
    del rows[1]["reference"]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "gate.yaml").write_text(
        "name: gated\nsource: {rows/jsonl: {path: rows.jsonl}}\n"
        "metrics: [diff/match: {as: correct, pass_at: 1}, check/regex: {as: long, pattern: '^.$', weight: 9}]\n"
        "gate: {on: correct, min_pass_rate: 0.9}\n"
    )
    main(["run", "gate.yaml"])
    assert "lowest scores of correct: 0.0000 row none, 0.8571 row half\n" in capsys.readouterr().out

    def look(screen):
        screen.cases = screen.cases.worst_first()
        names = [key[1] for key in screen.cases.keys]
        screen.press("w")
        bar = screen.text().split("\n")[-1]
        return names, [key[1] for key in screen.cases.keys], screen.cases.keys[screen.at][1], bar

    worst, data, at, bar = browser(folder, look)
    assert worst == ["none", "half", "open", "right"]
    assert data == ["half", "open", "none", "right"]
    assert (at, bar) == ("none", "order: as in the data")
    _, text = printed(capsys, "gated", "--browse")
    assert re.findall(r"^row (\w+)  in run", text, re.MULTILINE) == ["none", "half", "open"]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_the_results_of_a_long_case_are_on_the_first_screen(tmp_path, monkeypatch, width, height):
    monkeypatch.chdir(tmp_path)
    row = {"id": "1", "input": "Which city?", "output": "a line TODO\n" * 90, "reference": "b"}
    words = [{"proxy/keywords": {"as": f"tidy{number}", "forbidden": ["TODO"]}} for number in range(9)]
    metrics = ["proxy/format", *words, {"check/contains": {"as": "long", "value": "word " * 90}}]
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    run({"name": "long", "source": {"rows/jsonl": {"path": "rows.jsonl"}}, "metrics": metrics})
    first = re.sub(r"\x1b\[[0-9;]*m", "", browser(tmp_path, lambda screen: screen.text(), height, width))
    results = first.partition("results (l: the reasons in full):\n")[2].split("\n\n")[0].splitlines()
    assert len(results) == 9
    assert "  tidy0: 0.0000, did not pass: has the forbidden 'TODO'" in "\n".join(results)
    assert results[-1] == "  + 3 more labels"
    assert all(len(line) < width for line in results)
    assert not any("proxy/format" in line for line in results), "failed labels come first"


POLICY = "Answer as a bike shop. " * 60
LONG_CASE = {
    "name": "shop",
    "source": {"rows/jsonl": {"path": "rows.jsonl"}},
    "task": {"prompt/chat": {"model": "chat", "system": POLICY, "user": "The complaint: {{ input }}"}},
    "metrics": ["diff/match", "proxy/format"],
}


def ask(file):
    """Run *file*, whose model answers "a new chain"."""
    pipeline = load_pipeline(json.dumps(file), ready={"chat": FakeChatModel(["a new chain"])})
    in_loop(run_unless_disabled(pipeline, Request()))


def test_the_output_of_a_case_with_a_long_prompt_is_on_the_first_screen(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    row = {"id": "1", "input": f"My bike squeals {LONG}", "reference": "brake pads", "notes": "n " * 300}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    ask(LONG_CASE)

    def press(screen):
        first = screen.text()
        screen.press("e")
        opened = screen.text()
        screen.press("e")
        return first, opened, screen.text()

    first, opened, again = browser(tmp_path, press)
    assert first == again != opened
    assert first.endswith("  q quit")
    assert "  a new chain" in first
    assert "  brake pads" in first
    assert first.count(" (e: open)") == 3
    assert first.count("My bike squeals word0") == 1
    capsys.readouterr()
    _, text = printed(capsys, "1")
    assert "(e: open)" not in text
    assert (text.count(LONG), "\ninput:\n  (in the prompt above)\n" in text) == (1, True)


def test_an_input_that_the_prompt_has_not_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": "1", "input": "squeals all day", "reference": "brake pads"}))
    task = {"prompt/chat": {"model": "chat", "user": "{{ input | upper }}"}}
    ask({**LONG_CASE, "task": task})
    assert "\ninput:\n  squeals all day\n" in printed(capsys, "1")[1]


def test_a_long_case_is_scrolled_within_its_lines(folder):
    def scroll(screen):
        screen.press("n")
        first = screen.text()
        screen.press("k")
        same = screen.text()
        for _ in range(100):
            screen.press(" ")
            last = screen.text()
        return first, same, last

    first, same, last = browser(folder, scroll, height=10)
    assert first == same != last
    assert len(first.split("\n")) == len(last.split("\n")) == 10
    assert all("\x1b]" not in text for text in (first, last))


def test_on_a_wide_screen_the_output_is_next_to_the_reference(folder):
    def press(screen):
        screen.press("f")
        return screen.text()

    narrow, wide = browser(folder, press, 60), browser(folder, press, 60, width=120)
    assert not any("It is Bonn." in line and "It is Ankara." in line for line in narrow.split("\n"))
    (line,) = [line for line in wide.split("\n") if "It is Bonn." in line and "It is Ankara." in line]
    assert line.index("|") < line.index("It is Ankara.")


def test_a_screen_that_changes_its_size_is_drawn_anew(folder):
    def fit(screen):
        before = screen.text()
        screen.fit(Size(40, 10))
        return before, screen.text()

    before, after = browser(folder, fit)
    assert (len(before.split("\n")), len(after.split("\n"))) == (24, 10)


def test_opening_a_case_without_a_report_says_how_to_write_one(folder):
    def press(screen):
        screen.press("o")
        return screen.text()

    assert "dicast report" in browser(folder, press)


def test_opening_a_case_without_the_extra_for_reports_names_it(folder, monkeypatch):
    from dicast._kernel.cli.group import dicast as group

    find = group.get_command
    monkeypatch.setattr(group, "get_command", lambda context, name: None if name == "report" else find(context, name))

    def press(screen):
        screen.press("o")
        return screen.text()

    assert "dicast report needs an extra: " in browser(folder, press)


def test_the_report_of_the_run_is_opened_at_the_case(folder, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    main(["run", "run.yaml", "--out", "run.html"])
    capsys.readouterr()
    browser(folder, lambda screen: screen.press("o"))
    assert opened == [f"{(folder / 'run.html').as_uri()}#row=row%2Fgood"]


def test_on_a_terminal_it_uses_the_other_screen_and_restores_it(folder, monkeypatch):
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    keys = iter(["f", "q"])
    monkeypatch.setattr(click, "getchar", lambda: next(keys))
    monkeypatch.setenv("TERM", "xterm-256color")
    keyboard = os.fdopen(os.dup(its))
    monkeypatch.setattr("sys.stdin", keyboard)
    said = bytearray()

    def read():
        try:
            while data := os.read(ours, 65536):
                said.extend(data)
        except OSError:
            pass

    reader = threading.Thread(target=read)
    reader.start()
    with open(its, "w") as out, redirect_stdout(out):
        code = main(["show", "last", "--browse"])
    keyboard.close()
    reader.join(100)
    os.close(ours)
    text = said.decode()
    assert code == 0
    assert text.startswith("\x1b[?1049h")
    assert text.rstrip().endswith("\x1b[?1049l")
    assert "case 2 of 4, did not pass: row open" in text


@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [
        ("a b", "a b", "equal"),
        ("a c", "a b", "a [-b-]{+c+}"),
        ("", "a", "[-a-]"),
        ("a", "", "{+a+}"),
        ("x " * 5000, "y", "not compared: 10,001 words, and at most 4,000 are compared"),
    ],
    ids=["equal", "changed", "removed", "added", "long"],
)
def test_differences_are_marked_word_by_word(output, reference, expected):
    assert difference(output, reference) == expected


@pytest.mark.parametrize(("output", "reference"), [("a chain", ""), ("", "a chain"), ("a chain", None)])
def test_a_blank_text_is_not_compared(output, reference):
    titles = [section.title for section in _outputs({"output": output, "reference": reference})]
    assert titles == ["output:"]
    compared = [section.title for section in _outputs({"output": "a chain", "reference": "chain"})]
    assert compared == ["output:", "output against the reference:"]
