"""Secrets and personal data in the input: found by their shapes, counted, masked before anything is stored, and never printed."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Due, Failure, ReadCounts, RecordedScore, Subject, TraceEvent, Trail
from dicast._kernel.source.source import SubjectList
from dicast.testing import run_pipeline
from dicast.toolkit import secret_shapes
from dicast.toolkit.scan import SecretScan, scanned
from dicast.toolkit.secret_shapes import SHAPES, find_secrets, is_card, is_iban

AWS = "AKIA" + "IOSFODNN7EXAMPLE"
CARD = "4111 1111 1111 1111"
HEX = "0123456789abcdef" * 2
ALNUM = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5hJ7kL9mN1pQ3sT5"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE\nAAAA/+==\n-----END OPENSSH PRIVATE KEY-----"
SAMPLES = {
    "private-key": [KEY, KEY.replace("\n", "\\n"), KEY.partition("-----END")[0], KEY.replace("OPENSSH ", "")],
    "aws-key": [AWS, "ASIA" + "Z" * 16],
    "aws-secret": ["aws_secret_access_key = " + ALNUM[:40], '"AWS_SECRET_ACCESS_KEY": "' + ALNUM[:40] + '"'],
    "anthropic-key": ["sk-ant-api03-" + ALNUM[:40] + "-_AA"],
    "openai-key": ["sk-" + ALNUM[:20] + "T3BlbkFJ" + ALNUM[:20], "sk-proj-" + ALNUM],
    "github-token": ["ghp_" + ALNUM[:36], "github_pat_" + ALNUM[:22] + "_" + ALNUM],
    "gitlab-token": ["glpat-" + ALNUM[:20], "GR1348941" + ALNUM[:20]],
    "slack-token": ["xoxb-" + "123456789012-123456789012-" + ALNUM[:24]],
    "slack-webhook": ["https://hooks.slack.com/services/" + "T00000000/B00000000/" + ALNUM[:24]],
    "stripe-key": ["sk_live_" + ALNUM[:24]],
    "google-key": ["AIza" + ALNUM[:35]],
    "google-oauth": ["GOCSPX-" + ALNUM[:28]],
    "huggingface-token": ["hf_" + ALNUM[:34]],
    "npm-token": ["npm_" + ALNUM[:36], "//registry.example/:_authToken=12345678-1234-1234-1234-123456789012"],
    "pypi-token": ["pypi-AgEIcHlwaS5vcmc" + ALNUM + ALNUM],
    "sendgrid-key": ["SG." + ALNUM[:22] + "." + ALNUM[:43]],
    "square-token": ["sq0csp-" + ALNUM[:43]],
    "discord-token": ["M" + ALNUM[:23] + "." + ALNUM[:6] + "." + ALNUM[:27]],
    "telegram-token": ["110201543:" + ALNUM[:35]],
    "twilio-key": ["AC" + HEX, "SK" + HEX],
    "mailchimp-key": [HEX + "-us12"],
    "azure-key": ["AccountKey=" + (ALNUM + ALNUM)[:86] + "=="],
    "artifactory-token": ["AKCp" + ALNUM[:40]],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"],
    "basic-auth": ["postgres://joe:hunter2@db.example:5432/app"],
    "email": ["joe.doe+x@mail.example.co", "J@example.org"],
    "iban": ["GB82 WEST 1234 5698 7654 32", "DE89370400440532013000"],
    "card": [CARD, "378282246310005", "5555-5555-5555-4444"],
    "phone": ["+1 (415) 555-2671", "+442071838750", "415-555-2671"],
}  # fmt: skip
ORDINARY = [
    "1700000000000 2026-11-26T23:33:38.123456Z 10.0.0.1 192.168.100.200 v1.2.3-4567",
    "123e4567-e89b-12d3-a456-426614174000 4111111111111112 1234567890123456",
    "0123456789abcdef0123456789abcdef01234567 sha256:" + HEX + HEX,
    "git@github.com:org/repo.git @pytest.fixture pip install x==1.2.3 npm i @types/node@20.1.0",
    "https://$USER:$PASSWORD@host/ https://user:***@host/ http://localhost:8080/a@b",
    "task-123 risk-analysis-of-the-whole-portfolio-2026 sk-learn AKIA akia0123456789abcdef",
    "--+-- +1 -2 @@ -1,3 +1,4 @@ GB00 WEST 0000 0000 0000 00",
]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in SAMPLES.items() for text in texts])
@pytest.mark.parametrize("frame", ["{}", "a: '{}'.", "ünï {}\nnext", 'x"{}"', "\\n{}\\n"])
def test_each_shape_is_found_in_any_surroundings(kind, text, frame):
    assert [result.kind for result in find_secrets(frame.format(text).encode())] == [kind]


def test_every_shape_has_a_sample():
    assert {shape.kind for shape in SHAPES} == SAMPLES.keys()


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_has_no_secrets(text):
    assert find_secrets(text.encode()) == []


@pytest.mark.parametrize("plugin", ["aws", "github_token", "gitlab_token", "jwt", "mailchimp", "openai", "private_key", "pypi_token",
                                    "sendgrid", "slack", "square_oauth", "stripe", "telegram_token", "twilio", "azure_storage_key",
                                    "basic_auth", "discord", "npm", "artifactory"])  # fmt: skip
def test_detect_secrets_finds_nothing_in_the_samples_that_the_shapes_miss(plugin):
    module = pytest.importorskip(f"detect_secrets.plugins.{plugin}")
    detector = next(
        value() for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and hasattr(value, "analyze_string")
    )  # fmt: skip
    samples = [text for texts in SAMPLES.values() for text in texts]
    detected = [text for text in [*samples, *ORDINARY[1:3]] if [*detector.analyze_string(text)]]
    assert detected
    assert all(find_secrets(text.encode()) for text in detected if text in samples)


@given(st.text(max_size=200), st.sampled_from([texts[0] for texts in SAMPLES.values()]), st.text(max_size=200))
def test_the_spans_of_any_text_are_ordered_and_do_not_overlap(before, secret, after):
    text = f"{before} {secret} {after}".encode()
    results = find_secrets(text)
    assert all(first.end <= second.start for first, second in zip(results, results[1:], strict=False))
    assert all(0 <= result.start < result.end <= len(text) for result in results)


@st.composite
def texts_of_a_shape(draw):
    """Return a text with a match of a shape's pattern, in any surroundings."""
    shape = draw(st.sampled_from(SHAPES))
    match = draw(st.from_regex(re.compile(shape.pattern, re.ASCII), fullmatch=True))
    edges = st.one_of(
        st.text(max_size=3), st.sampled_from(["\n", "\\n", "\\\\t", "\x1b", "\b", '"', "= '", "+", ".", "-"])
    )
    return shape, draw(edges) + match + draw(edges)


@given(texts_of_a_shape())
def test_the_clue_of_a_shape_is_in_every_text_with_the_shape_and_in_its_json(example):
    shape, text = example
    data = text.encode()
    if any(secret_shapes._spans(shape, data)):
        clue = re.compile((shape.clue or shape.pattern).encode())
        assert clue.search(data)
        assert clue.search(orjson.dumps([text]))
        assert find_secrets(data)


def test_the_search_without_re2_has_the_same_results(monkeypatch):
    texts = [text.encode() for texts in SAMPLES.values() for text in texts] + [text.encode() for text in ORDINARY]
    expected = [find_secrets(text) for text in texts]
    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    caches = (secret_shapes._compiled, secret_shapes.any_shape, secret_shapes._literal_shapes)
    for cached in caches:
        cached.cache_clear()
    try:
        assert [find_secrets(text) for text in texts] == expected
    finally:
        for cached in caches:
            cached.cache_clear()


@given(st.integers(0, 10**14 - 1))
def test_one_check_digit_of_ten_makes_a_card(number):
    stem = f"4{number:014d}"
    assert sum(is_card(f"{stem}{digit}") for digit in range(10)) == (
        1 if len(set(stem)) > 1 else sum(is_card(f"{stem}{d}") for d in range(10))
    )


@given(st.integers(0, 10**18 - 1))
def test_one_pair_of_check_digits_makes_an_iban(number):
    matches = [check for check in range(2, 99) if is_iban(f"DE{check:02d}{number:018d}")]
    assert len(matches) == 1


def session(*payloads: dict[str, object], **fields: object) -> list[Subject]:
    log = [TraceEvent("tool.called", payload, None, "s", f"s/{number}") for number, payload in enumerate(payloads)]
    return [
        Subject("turn", f"s/{number}", events=(event,), session_id="s", trail=Trail(log, number + 1), **fields)
        for number, event in enumerate(log)
    ]


def test_warn_counts_and_changes_nothing():
    scanner, subject = (
        SecretScan("warn"),
        Subject("row", "1", f"my key {AWS}", [AWS, CARD], context={"deep": [{"x": KEY}]}),
    )
    assert scanner.item(subject) is subject
    assert scanner.counts == {"aws-key": 1, "card": 1, "private-key": 1}


def test_mask_replaces_every_part_of_a_subject():
    scanner = SecretScan("mask")
    subject = Subject(
        "row",
        "1",
        f"key {AWS}!",
        {"card": 4111111111111111, AWS: [CARD]},
        f"{KEY} end",
        {"c": (AWS, "x")},
        columns={"q": AWS},
    )
    score = RecordedScore("accuracy", 1.0, reason=f"it printed {AWS}")
    due = scanner.item(Due(subject, failure=Failure("source_error", f"401 for {AWS}"), recorded=(score,)))
    masked = due.subject
    assert due.recorded[0].reason == "it printed [masked: aws-key]"
    assert masked.input == "key [masked: aws-key]!"
    assert masked.output == {"card": "[masked: card]", "[masked: aws-key]": ["[masked: card]"]}
    assert masked.reference == "[masked: private-key] end"
    assert [*masked.context["c"]] == ["[masked: aws-key]", "x"]
    assert masked.columns == {"q": "[masked: aws-key]"}
    assert due.failure.message == "401 for [masked: aws-key]"


def test_keys_with_the_same_mask_stay_apart():
    other = "AKIA" + "Z" * 16
    assert [*SecretScan("mask").subject(Subject("row", "1", {AWS: 1, other: 2})).input.values()] == [1, 2]


def test_a_secret_counts_once_for_each_record():
    scanner = SecretScan("warn")
    for subject in [
        *session({"input": AWS}, {"input": f"{AWS} {AWS}"}),
        Subject("row", "a", AWS),
        Subject("row", "b", AWS),
    ]:
        scanner.item(subject)
    assert scanner.counts == {"aws-key": 3}


def test_the_subjects_of_a_masked_session_share_one_masked_log():
    scanner = SecretScan("mask")
    first, second = map(scanner.subject, session({"input": "plain"}, {"input": {"text": AWS}}, input=f"q {AWS}"))
    assert first.trail.events is second.trail.events
    assert second.events[0] is [*second.trail][1]
    assert AWS not in json.dumps([event.payload for event in second.trail.events])
    assert first.input == "q [masked: aws-key]"


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=20),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3), max_leaves=8))  # fmt: skip
def test_values_without_secrets_stay_the_same_objects(value):
    scanner = SecretScan("mask")
    subject = Subject("row", "1", value, value)
    result = scanner.subject(subject)
    if not scanner.counts:
        assert result is subject


def test_lone_surrogates_and_long_integers_are_scanned_too():
    scanner = SecretScan("mask")
    result = scanner.subject(Subject("row", "1", f"\ud83d {AWS}", [10**30, AWS]))
    assert result.input == "\ud83d [masked: aws-key]"
    assert result.output == [10**30, "[masked: aws-key]"]


def test_ids_are_counted_and_not_masked():
    scanner = SecretScan("mask")
    assert scanner.subject(Subject("row", "joe@example.org", "x")).id == "joe@example.org"
    assert scanner.in_ids == 1


def test_off_is_the_source_itself():
    live = object()
    assert scanned(live, "off") is live


PIPELINE = """
name: x
source: {{{source}: {{path: {path}{options}}}}}
{judged}
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
sinks: [csv/rows: {{path: rows.csv}}, jsonl/events: {{path: events.jsonl}}]
"""


@pytest.mark.parametrize(
    ("source", "judged"), [("rows/jsonl", "metrics: [proxy/format]"), ("traces/messages", "judges: [heuristic/turn]")]
)
@pytest.mark.parametrize("scan", ["warn", "mask", "off"])
def test_a_masked_run_has_no_secret_in_any_file(tmp_path, monkeypatch, source, judged, scan):
    monkeypatch.chdir(tmp_path)
    record = {"rows/jsonl": {"id": "1", "input": f"use {AWS}", "output": f"paid by {CARD}"},
              "traces/messages": {"messages": [{"role": "user", "content": f"use {AWS}"}, {"role": "assistant", "content": f"paid by {CARD}"}]}}  # fmt: skip
    (tmp_path / "data.jsonl").write_text(json.dumps(record[source]) + "\n")
    run = run_pipeline(PIPELINE.format(source=source, path="data.jsonl", options=f", scan: {scan}", judged=judged))
    read = run.document["read"]
    assert read.get("scan") == (None if scan == "off" else {"aws-key": 1, "card": 1})
    assert AWS not in json.dumps(run.document)
    assert any("aws-key" in note for note in read.get("notes", [])) == (scan != "off")
    with closing(sqlite3.connect("ledger.db")) as connection:
        stored = "\n".join(connection.iterdump())
    written = stored + (tmp_path / "rows.csv").read_text() + (tmp_path / "events.jsonl").read_text()
    assert (AWS in written) == (scan != "mask")
    assert ("[masked: aws-key]" in written) == (scan == "mask")


@pytest.mark.parametrize("places", [(), (0,), (5, 6), (31, 32), (63, 99), tuple(range(100))])
def test_rows_are_counted_in_passes_over_many_as_one_by_one(places):
    rows = [Subject("row", f"r{n}", "x" * 3_000, f"by {CARD}" if n in places else "none") for n in range(100)]
    scanner, source = SecretScan("warn"), scanned(SubjectList(rows), "warn")
    assert [*source.subjects()] == [scanner.subject(row) for row in rows]
    assert source.read_counts() == scanner.add_counts(ReadCounts(100))


def test_no_row_is_read_ahead():
    rows = iter([Subject("row", f"r{n}", CARD) for n in range(9)])
    source = scanned(SubjectList(rows), "warn")
    assert [row.id for row, _ in zip(source.subjects(), range(3), strict=False)] == ["r0", "r1", "r2"]
    assert source.read_counts().details["scan"] == {"card": 4}
