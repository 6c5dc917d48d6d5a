"""The commands that summaries name as the next step work as printed."""

from __future__ import annotations

import re
import shlex

import pytest

CHECK = "name: tidy\nmetrics: [proxy/keywords: {as: tidy, forbidden: [TODO]}]\n"
GATED = CHECK + "gate: {on: tidy, min_pass_rate: 0.9}\n"
SUITE = CHECK + "experiments: {plain: {}, strict: {set: {gate: {on: tidy, min_pass_rate: 0.95}}}}\n"
INCOMPARABLE = CHECK + "experiments: {plain: {}, other: {set: {metrics: [{proxy/length: {as: long, min: 3}}]}}}\n"
JUDGED = """
name: asked
define: {grader: {openai/chat: {model: m, base_url: "URL", api_key: null, price: free, retries: 0}}}
judges: [llm/judge: {as: helpful, model: grader, criteria: [It helps.]}]
"""
JUDGED_SUITE = JUDGED + "experiments: {a: {}, b: {set: {define.grader.openai/chat.temperature: 0}}}\n"
STOPPED = 401
"""The status with which a judge's endpoint ends a run."""


def commands(text):
    """Return the commands in the printed lines."""
    lines = re.findall(r"^(?:next: |details: |    )dicast (.*)$", text, re.MULTILINE)
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("full", [[], ["--full"]], ids=["screen", "full"])
@pytest.mark.parametrize(
    ("text", "options"),
    [
        (CHECK, []),
        (GATED, []),
        (GATED, ["--head", "2"]),
        (GATED, ["--limit", "2"]),
        (GATED, ["--filter", "id!=r1"]),
        (GATED, ["--shard", "1/2"]),
        (GATED, ["--ledger", "books/l.db"]),
        (GATED, ["--only", "tidy"]),
        (CHECK + "enabled: false\n", []),
        (SUITE, []),
        (SUITE, ["--head", "2"]),
        (SUITE, ["--limit", "2"]),
        (SUITE, ["--filter", "id!=r1"]),
        (SUITE, ["--ledger", "books/l.db"]),
        (SUITE, ["--experiment", "strict"]),
        (INCOMPARABLE, []),
        (INCOMPARABLE, ["--head", "2"]),
    ],
    ids=lambda value: "-".join(value).strip("-") if isinstance(value, list) else None,
)
def test_next_commands_of_a_run_work(shop, text, options, full):
    shop.rows("good", "a TODO", "fine", "no")
    (shop / "books").mkdir()
    file = shop.pipeline(text).name
    printed = shop.dicast("run", file, *options, *full).out
    for command in commands(printed):
        done = shop.dicast(*command)
        assert done.code == 0, (command, done.err)


OF_ALL = ([], ["--set", "define.grader.openai/chat.model=n"], ["--limit", "3"], ["--filter", "id!=r1"], ["--head", "3"])


@pytest.mark.parametrize(
    ("text", "options"),
    [
        *((JUDGED, options) for options in (*OF_ALL, ["--only", "helpful"], ["--shard", "1/2"])),
        *((JUDGED_SUITE, options) for options in (*OF_ALL, ["--experiment", "b"])),
    ],
    ids=lambda value: "-".join(value).strip("-") if isinstance(value, list) else None,
)
def test_next_commands_of_a_stopped_run_work(shop, chat_server, text, options):
    shop.rows("good", "bad", "fine", "no")
    file = shop.pipeline(text.replace("URL", chat_server.url)).name
    chat_server.answer = lambda asked: STOPPED if asked.number > 1 else chat_server.sealed(score=0.5, confidence=0.9)
    printed = shop.dicast("run", file, *options).out
    assert "stopped: refused_by_provider" in printed
    shown = shop.dicast("show", "last").out
    chat_server.answer = lambda asked: chat_server.sealed(score=0.5, confidence=0.9)
    has_resume = any("--resume" in command for command in commands(printed))
    assert has_resume is not ("--head" in options or ("experiments" in text and "--filter" in options))
    assert has_resume or "this run cannot be resumed" in printed
    assert len([command for command in commands(printed) if "--resume" in command]) == has_resume
    (shop / "copy.db").write_bytes((shop / ".dicast/ledger.db").read_bytes())
    for command in commands(printed):
        done = shop.dicast(*command)
        assert done.code == 0, (command, done.err)
    for command in commands(shown):  # from the ledger with the stopped run
        (shop / ".dicast/ledger.db").write_bytes((shop / "copy.db").read_bytes())
        done = shop.dicast(*command)
        assert done.code == 0, (command, done.err)


def test_next_command_of_a_merged_run_works(shop):
    shop.rows("good", "a TODO", "fine", "no")
    file = shop.pipeline(GATED).name
    for part in ("1/2", "2/2"):
        shop.dicast("run", file, "--shard", part, "--ledger", f"{part[0]}.db")
    printed = shop.dicast("merge", "1.db", "2.db", "--ledger", "all.db").out
    assert commands(printed)
    for command in commands(printed):
        assert shop.dicast(*command).code == 0, command


def test_incomparable_experiments_are_compared_only_if_no_others_are(shop):
    shop.rows("good", "a TODO", "fine", "no")
    text = INCOMPARABLE.replace("plain: {}", "plain: {}, same: {}")
    (first,) = [line for line in shop.dicast("run", shop.pipeline(text).name).out.splitlines() if "next: " in line]
    assert "--allow-incomparable" not in first
    (only,) = [
        line for line in shop.dicast("run", shop.pipeline(INCOMPARABLE).name).out.splitlines() if "next: " in line
    ]
    assert only.endswith(" --allow-incomparable")


INSIDE = re.compile(r"(?:: |`)(dicast (?:run|ci|verdicts) [^`;()\n]*)(?=[`;)])")
"""A command inside a reason: it follows a colon, or is code in Markdown."""


@pytest.mark.parametrize("ledger", ["books/l.db", None], ids=["ledger", "default"])
@pytest.mark.parametrize(
    "options",
    [[], ["--set", "define.grader.openai/chat.model=two words", "--only", "helpful"]],
    ids=["file", "options"],
)
def test_commands_inside_reasons_work_in_every_report(shop, chat_server, ledger, options, monkeypatch):
    shop.rows(*(f"answer {number}" for number in range(12)))
    (shop / "books").mkdir()
    option = [*options, *([] if ledger is None else ["--ledger", ledger])]
    shown = [] if ledger is None else ["--ledger", ledger]
    book = shop / (ledger or ".dicast/ledger.db")
    text = JUDGED.replace("URL", chat_server.url)
    shop.pipeline(text.replace("name: asked", "name: main"), name="main.yaml")
    hook = "sinks: [notify/webhook: {url: HOOK, when: always}]\n".replace("HOOK", f"{chat_server.url}/hook")
    passing = chat_server.sealed(score=0.5, confidence=0.9)
    messages = []

    def receive(asked):
        messages.append(asked.body["text"])
        return chat_server.raw({})

    chat_server.answer = lambda asked: passing
    main = shop.dicast("run", "main.yaml", *option, "--json")
    assert main.code == 0
    gate = f"gate: {{baseline: {main.json['run_id']}, max_drop: 0.02, undecided: exit3}}\n"
    shop.pipeline(text + gate + hook, name="new.yaml")  # a name would not select a run with --only
    chat_server.answer = lambda asked: receive(asked) if "hook" in asked.path else 500 if asked.number % 4 else passing
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(shop / "summary.md"))
    arguments = ["new.yaml", *option, "--full"]
    log = shop.dicast("ci", *arguments, "--comment", "c.md", "--junit", "j.xml").out
    monkeypatch.delenv("GITHUB_ACTIONS")
    reports = {name: (shop / name).read_text() for name in ("c.md", "j.xml", "summary.md")}
    document = shop.dicast("show", "last", "--json", *shown).out
    chat_server.answer = lambda asked: chat_server.raw({}) if "hook" in asked.path else passing
    content = book.read_bytes()
    for place, report in {**reports, "log": log, "document": document, "webhook": messages[0]}.items():
        words = {tuple(shlex.split(command)) for command in INSIDE.findall(report)}
        assert {"--retry-failed", "verdicts"} <= {word for command in words for word in command}, place
        for command in words:
            book.write_bytes(content)  # the ledger with the failures
            done = shop.dicast(*command[1:])
            assert done.code == 0, (place, command, done.err)


def test_commands_name_settings_whose_values_are_not_recorded(shop, chat_server):
    shop.rows("good", "bad", "fine", "no")
    file = shop.pipeline(JUDGED.replace("URL", chat_server.url)).name
    key = "define.grader.openai/chat.api_key"
    chat_server.answer = lambda asked: 500 if asked.number > 1 else chat_server.sealed(score=0.5, confidence=0.9)
    printed = shop.dicast("run", file, "--set", f"{key}=sk-secret", "--set", "name=graded").out
    shown = shop.dicast("show", "last").out
    for text in (printed, shown):
        (line,) = [line for line in text.splitlines() if "--retry-failed" in line]
        assert "--set name=graded" in line
        assert line.endswith(f"  # with the same --set {key}")
    assert "sk-secret" not in printed + shown + shop.dicast("ledger", "export").out


def test_a_ledger_without_texts_has_no_values_of_settings(shop):
    shop.rows("good", "bad")
    digest = "ledger: {ledger/sqlite: {path: .dicast/ledger.db, content: digest}}\n"
    assert shop.dicast("run", shop.pipeline(CHECK + digest).name, "--set", "name=words", "--only", "tidy").code == 0
    (started,) = shop.events("run.started")
    assert (started["payload"]["set"], started["payload"]["only"]) == (["name"], ["tidy"])
