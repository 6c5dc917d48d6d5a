"""Keys stay out of everything a run writes or says, and a judge's reasons out of all but the files that are there to keep them."""

from __future__ import annotations

import csv
import json
import stat

import pytest

pytestmark = pytest.mark.slow

KEY, PASS = "sk-live-7Qw3rTy9ZxCv", "gateway-pass-4Hj8Lp2M"
REASONS = "The capital is Canberra, as the answer says, so I like it."
FILE = """\
define:
  grader:
    openai/chat:
      base_url: "${JUDGE_URL}"
      model: m-1
      price: {input_per_mtok: 1, output_per_mtok: 2}
      retries: 1
      api_key: "${JUDGE_KEY}"
      headers: {X-Gateway: "${GATEWAY_PASS}"}
judges:
  - llm/judge: {as: direct, model: grader}
  - llm/judge: {as: cached, model: {cache/chat: {path: cache.db, model: grader}}}
  - llm/judge: {as: replayed, model: {replay/chat: {path: replies.jsonl, record: grader}}}
  - llm/pairwise: {as: pair, model: grader}
  - llm/jury: {as: jury, judges: [{llm/judge: {model: grader}}, {llm/judge: {model: grader, criteria: [be brief]}}]}
gate: {on: direct, min_coverage: 0}
sinks:
  - csv/rows: {path: out/rows.csv}
  - jsonl/events: {path: out/events.jsonl}
"""
LITELLM = """\
define:
  grader: {litellm/chat: {api_base: "${JUDGE_URL}", model: openai/m-1, api_key: "${JUDGE_KEY}", price: free, retries: 1}}
judges: [llm/judge: {as: direct, model: grader}]
gate: {min_coverage: 0}
"""
KEPT = {"cache.db", "cache.db-wal", "cache.db-shm", "replies.jsonl"}
COMMANDS = (
    ("ledger", "export"),
    ("verdicts",),
    ("verdicts", "--json"),
    ("verdicts", "--failed"),
    ("verdicts", "--failed", "--json"),
    ("show", "last", "--json"),
    ("show", "last"),
    ("show", "good"),
    ("show", "http-500", "--json"),
    ("cost", "--include-eval", "--json"),
    ("plugins", "--load", "--json"),
    ("schema",),
)


def sent(asked):
    """Return the data that an endpoint may repeat: the headers of the request, as received."""
    return f"Authorization: {asked.headers['authorization']}; X-Gateway: {asked.headers.get('x-gateway')}"


def said(server, asked):
    """Return the server's answers to the rows: verdicts, and every way to repeat the key."""
    told = {
        "http-500": server.error(500, f"upstream refused {sent(asked)}"),
        "http-400": server.error(400, f"bad request, {sent(asked)}"),
        "html": server.Answer(
            status=502, body=f"<h1>{sent(asked)}</h1>".encode(), headers={"Content-Type": "text/html"}
        ),
        "detail": server.raw({"detail": [{"loc": ["header"], "input": sent(asked)}]}, status=422),
        "other": server.raw({"oops": {"headers": asked.headers["authorization"]}}, status=500),
        "long": server.error(500, "x" * 280 + sent(asked)),
        "in-200": server.raw({"error": {"message": sent(asked)}}),
        "no-json": server.raw(sent(asked).encode()),
        "kind": server.raw(b"{}", content_type=f"text/{asked.headers['authorization'].replace(' ', '')}"),
        "moved": server.Answer(status=307, headers={"Location": f"http://127.0.0.1:9/?key={KEY}"}, body=b""),
        "no-verdict": server.reply(f"{REASONS} So: 0.9"),
        "too-high": server.sealed(rationale=REASONS, score=1.5, confidence=0.9, winner="best"),
        "cut": server.reply(f'{{"seal": "$SEAL", "rationale": "{REASONS}', finish_reason="length"),
        "refused": server.reply("", message={"refusal": REASONS}),
    }
    verdict = server.sealed(rationale=REASONS, score=0.9, confidence=0.9, winner="first")
    return next((answer for row, answer in told.items() if f"row {row}." in asked.prompt), verdict)


ROWS = ("good", "http-500", "http-400", "html", "detail", "other", "long", "in-200", "no-json", "kind", "moved")
USELESS = ("no-verdict", "too-high", "cut", "refused")


@pytest.fixture
def ran(shop, chat_server, monkeypatch):
    """``ran(rows, text)``: run over these rows twice, and return all output of the runs and of every command after them.

    The first run is in this process; the second, with ``alone``, in a separate process, because the interpreter's output at its end counts too.
    """
    for name, value in {"JUDGE_URL": chat_server.url, "JUDGE_KEY": KEY, "GATEWAY_PASS": PASS}.items():
        monkeypatch.setenv(name, value)
    chat_server.answer = lambda asked: said(chat_server, asked)

    def run(rows, text=FILE, *arguments, alone=False):
        made = [{"id": row, "input": "Which?", "output": f"This is row {row}.", "reference": "None."} for row in rows]
        shop.write("data.jsonl", made)
        file = shop.pipeline(text).name
        shop.done = shop.dicast("run", file, "--json", *arguments)
        again = (shop.process if alone else shop.dicast)("run", file, *arguments)
        return [shop.done, again] + [shop.dicast(*command) for command in COMMANDS]

    return run


def written(shop):
    """Return the bytes of every file in the folder and next to it, by name."""
    return {path.name: path.read_bytes() for path in shop.folder.parent.rglob("*") if path.is_file()}


def assert_nowhere(text, shop, said, but=()):
    """*text* is in no output, and in no file *but* these."""
    for done in said:
        assert text not in done.out
        assert text not in done.err
    assert [name for name, content in written(shop).items() if text.encode() in content and name not in but] == []


def test_key_that_the_endpoint_repeats_is_written_nowhere(ran, shop, chat_server):
    said = ran(ROWS, alone=True)
    assert chat_server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert chat_server.requests[0].headers["x-gateway"] == PASS
    document = shop.done.json
    assert (document["subjects"], document["scored"]) == (len(ROWS), 1)
    messages = {row["subject_id"]: row["error_message"] for row in said[6].json["failures"]}
    assert set(messages) == set(ROWS[1:])
    assert "upstream refused Authorization: Bearer ***; X-Gateway: ***" in messages["http-500"]
    assert {"cache.db", "replies.jsonl", "rows.csv", "events.jsonl", "ledger.db"} <= written(shop).keys()
    for secret in (KEY, PASS):
        assert_nowhere(secret, shop, said)


def test_key_that_the_endpoint_repeats_is_written_nowhere_by_litellm_either(ran, shop, chat_server):
    said = ran(ROWS, LITELLM, alone=True)
    assert chat_server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert (shop.done.json["subjects"], shop.done.json["scored"]) == (len(ROWS), 1)
    assert_nowhere(KEY, shop, said)


def test_key_is_in_no_message_of_a_run_that_litellm_is_refused(ran, shop, chat_server):
    chat_server.answer = lambda asked: chat_server.error(401, f"who is {sent(asked)}?")
    said = ran(["good"], LITELLM, "--traceback")
    assert [done.code for done in said[:2]] == [2, 2]
    assert_nowhere(KEY, shop, said)


@pytest.mark.parametrize("status", [401, 403, 500])
@pytest.mark.parametrize("traceback", [(), ("--traceback",)])
def test_key_is_in_no_message_of_a_run_that_fails(ran, shop, chat_server, status, traceback):
    chat_server.answer = lambda asked: chat_server.error(status, f"who is {sent(asked)}?")
    said = ran(["good"], FILE, *traceback, alone=status == 401)
    assert [done.code for done in said[:2]] == [3 if status == 500 else 2] * 2
    told = shop.done.json
    complaint = f"HTTP {status}: who is Authorization: Bearer ***; X-Gateway: ***?"
    assert complaint in (json.dumps(told["stopped"]) if told["stopped"] else said[6].out)
    for secret in (KEY, PASS):
        assert_nowhere(secret, shop, said)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('api_key: "${JUDGE_KEY}"', 'api_key: "${JUDGE_KEY}\\n"'),
        ('api_key: "${JUDGE_KEY}"', 'api_key: ["${JUDGE_KEY}"]'),
        ('api_key: "${JUDGE_KEY}"', 'api_key: {value: "${JUDGE_KEY}"}'),
        ('api_key: "${JUDGE_KEY}"', 'apikey: "${JUDGE_KEY}"'),
        ('{X-Gateway: "${GATEWAY_PASS}"}', '{"X Gateway": "${GATEWAY_PASS}"}'),
        ('{X-Gateway: "${GATEWAY_PASS}"}', '{X-Gateway: "${GATEWAY_PASS}\\r\\nHost: x"}'),
        ('{X-Gateway: "${GATEWAY_PASS}"}', '{X-Gateway: ["${GATEWAY_PASS}"]}'),
        ('{X-Gateway: "${GATEWAY_PASS}"}', '"${GATEWAY_PASS}"'),
        ("retries: 1", 'proxy: "socks5://me:${GATEWAY_PASS}@127.0.0.1:9"'),
        ('"${JUDGE_URL}"', '"http://me:${GATEWAY_PASS}@127.0.0.1:9/v1"'),
        ('"${JUDGE_URL}"', '"ftp://me:${GATEWAY_PASS}@127.0.0.1:9/v1"'),
    ],
)
@pytest.mark.parametrize("command", ["check", "run"])
def test_key_is_in_no_message_about_a_file_that_is_wrong(ran, shop, chat_server, command, right, wrong):
    shop.rows("An answer.")
    file = shop.pipeline(FILE.replace(right, wrong)).name
    assert right in FILE
    told = [shop.dicast(command, file, *more) for more in ([], ["--json"], ["--traceback"])]
    assert [done.code for done in told] == [2] * 3
    assert chat_server.count == 0
    for secret in (KEY, PASS):
        assert_nowhere(secret, shop, told)


@pytest.mark.parametrize("scheme", ["http", "ftp"])
def test_password_in_the_address_for_litellm_is_in_no_message(ran, shop, scheme):
    shop.rows("An answer.")
    file = shop.pipeline(LITELLM.replace("${JUDGE_URL}", f"{scheme}://me:${{GATEWAY_PASS}}@127.0.0.1:9/v1")).name
    told = [shop.dicast("check", file, *more) for more in ([], ["--json"])]
    assert [done.code for done in told] == [2] * 2
    assert_nowhere(PASS, shop, told)


NONE = FILE.replace("{as: direct,", "{as: direct, capture_rationale: false,").replace(
    "{as: cached,", "{as: cached, capture_rationale: false,"
)
NONE = NONE.replace("{as: replayed,", "{as: replayed, capture_rationale: false,").replace(
    "{as: pair,", "{as: pair, capture_rationale: false,"
)
NONE = NONE.replace("{llm/judge: {model: grader", "{llm/judge: {capture_rationale: false, model: grader")
SINKS = {"rows.csv", "events.jsonl"}


def written_with(text, shop):
    return {name for name, content in written(shop).items() if text.encode() in content}


def test_without_capture_reasons_are_kept_by_the_cache_and_the_recording_alone(ran, shop):
    said = ran(("good", *USELESS), NONE)
    assert shop.done.json["scored"] == 1
    assert all(REASONS.encode() in written(shop)[name] for name in ("cache.db", "replies.jsonl"))
    assert_nowhere(REASONS, shop, said, but=KEPT)
    completed = shop.events("eval.completed")
    assert {event["sensitivity"] for event in completed} == {"pseudonymous"}
    hashes = {event["payload"]["judge"]: event["payload"]["signals"].get("rationale_hash") for event in completed}
    assert [label for label, digest in hashes.items() if digest is None] == ["jury"]


def test_reasons_and_failed_replies_are_kept_in_the_ledger_and_given_to_no_sink(ran, shop):
    said = ran(("good", *USELESS))
    assert not written_with(REASONS, shop) & SINKS
    completed = {event["payload"]["judge"]: event for event in shop.events("eval.completed")}
    assert completed["direct"]["payload"]["signals"]["rationale_redacted"] == REASONS
    assert completed["direct"]["sensitivity"] == "user_controlled"
    failed = {(event["subject_id"], event["payload"]["judge"]): event for event in shop.events("eval.failed")}
    assert REASONS in failed["no-verdict", "direct"]["payload"]["reply"]
    assert {event["sensitivity"] for event in failed.values() if "reply" in event["payload"]} == {"user_controlled"}
    printed = dict(zip(COMMANDS, said[2:], strict=True))
    assert REASONS in printed["show", "good"].out
    assert "reasons: " in printed["show", "good"].out
    assert "rationale_redacted" not in printed["show", "good"].out
    assert f"reply: '{REASONS} So: 0.9'" in printed["verdicts", "--failed"].out
    replies = [one for one in printed["verdicts", "--failed", "--json"].json["failures"] if one.get("reply")]
    assert {one["subject_id"] for one in replies} >= {"no-verdict", "too-high", "cut"}
    assert f"reply:\n    {REASONS} So: 0.9\n" in shop.dicast("show", "no-verdict").out


def test_a_sink_that_asks_for_content_gets_reasons(ran, shop):
    ran(("good", *USELESS), FILE.replace("{path: out/rows.csv}", "{path: out/rows.csv, content: true}"))
    assert written_with(REASONS, shop) & SINKS == {"rows.csv"}


def test_a_ledger_of_digests_keeps_no_reasons_and_no_replies(ran, shop):
    text = FILE.replace("{path: out/rows.csv}", "{path: out/rows.csv, content: true}")
    said = ran(("good", *USELESS), f"{text}ledger: {{ledger/sqlite: {{path: ledger.db, content: digest}}}}\n")
    assert_nowhere(REASONS, shop, said, but=KEPT)


def test_reasons_are_told_where_that_was_asked_for_and_nowhere_else(ran, shop):
    text = NONE.replace("{as: direct, capture_rationale: false", "{as: direct, capture_rationale: true")
    ran(("good", *USELESS), text)
    for event in shop.events("eval.completed"):
        asked_for = event["payload"]["judge"] == "direct"
        assert event["sensitivity"] == ("user_controlled" if asked_for else "pseudonymous")
        assert event["payload"]["signals"].get("rationale_redacted") == (REASONS if asked_for else None)
        assert (REASONS in json.dumps(event)) is asked_for
    for event in shop.events("eval.failed"):
        assert (REASONS in json.dumps(event)) is (event["payload"]["judge"] == "direct")
    for event in shop.events("run.completed"):
        assert REASONS not in json.dumps(event)
    with open(shop / "out/rows.csv", newline="") as file:
        told = {column for row in csv.DictReader(file) for column, cell in row.items() if REASONS in cell}
    assert told == {"rationale_direct"}


def test_files_that_keep_replies_are_their_owners_alone(ran, shop):
    ran(["good"])
    modes = {name: stat.S_IMODE((shop / name).stat().st_mode) for name in KEPT if (shop / name).exists()}
    assert {"cache.db", "replies.jsonl"} <= modes.keys()
    assert set(modes.values()) == {0o600}
