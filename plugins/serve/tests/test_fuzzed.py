"""Requests that schemathesis generates from the API's description, valid and invalid."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .serving import LABELLING, READING, Server

pytestmark = pytest.mark.slow

FUZZER = Path(sys.executable).with_name("schemathesis")
LEDGER_VALUES = """
[parameters]
"path.run_id" = "last"
"path.id" = "s/1"
"query.run" = "last"
"query.a" = "last"
"query.judge" = "a"
"query.ledger" = "ledger"
"query.subject_kind" = "turn"
"body.subject_id" = "s/1"
"body.subject_kind" = "turn"
"""
"""Values in the ledger, so that requests get past the answer 404."""


@pytest.fixture
def server(ledger):
    """A server over the ledger of two runs."""
    running = Server(ledger.parent)
    yield running
    running.end()


def fuzzed(server, token, *arguments, config=""):
    """Return the fuzzer's report on the server, after some hundred requests that depend on the seed alone."""
    folder = server.log.parent
    (folder / "schemathesis.toml").write_text(config)
    done = subprocess.run(
        [FUZZER, "--config-file", "schemathesis.toml", "run", f"{server.address}openapi.json", "--no-color"]
        + ["--header", f"Authorization: Bearer {token}", "--seed", "7", "--generation-database", "none", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in server.log.read_text()
    return int(re.search(r"(\d+) generated", done.stdout)[1])


def test_whatever_is_asked_the_answer_is_as_described(server):
    assert fuzzed(server, READING, "--max-examples", "4", "--exclude-path", "/events") > 100


def test_whatever_is_asked_about_what_there_is_the_answer_is_as_described(server):
    assert fuzzed(server, LABELLING, "--max-examples", "4", "--exclude-path", "/events", config=LEDGER_VALUES) > 100
    judged = server.get("/judges")["data"]
    assert any(verdict["judge_kind"] == "human" for verdict in judged), "no label of the fuzzer's was recorded"


def test_whatever_is_asked_for_news_the_answer_is_as_described(server):
    options = ("--include-path", "/events", "--max-examples", "2", "--request-timeout", "0.5")
    assert fuzzed(server, READING, *options) > 5
