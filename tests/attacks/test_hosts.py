"""No plugin looks up a host, or connects to an address, that the pipeline file does not name."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys, warnings

HERE = {"127.0.0.1", "::1", "localhost", None}
hosts = set()


def record(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyname_ex"):
        host = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
        hosts.update({str(host)} - {*map(str, HERE)})
    elif event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][0] not in HERE:
        hosts.add(str(arguments[1][0]))


sys.addaudithook(record)
from dicast._kernel.cli import main

codes = [main(words) for words in json.loads(sys.argv[1])]
print(json.dumps([codes, sorted(hosts)]))
"""
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    **dict.fromkeys(
        ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy"), "http://proxy.invalid:8080"
    ),
    "OPENAI_BASE_URL": "http://other.invalid/v1",
    "ANTHROPIC_BASE_URL": "http://other.invalid",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://other.invalid",
}
MODELS = ("openai/chat", "openai/batch", "anthropic/chat", "anthropic/batch", "litellm/chat")
BASES = {"litellm/chat": "api_base"}
NAMES = {"litellm/chat": "openai/m"}
KEY = "InstrumentationKey=00000000-0000-0000-0000-000000000000;IngestionEndpoint="
SECTIONS = {
    "task/http": "task: {task/http: {url: URL, retries: 0}}",
    "evaluator/http": "metrics: [evaluator/http: {url: URL}]",
    "telemetry/otel": "metrics: [proxy/format]\nsinks: [telemetry/otel: {endpoint: URL}]",
    "azure/monitor": f"metrics: [proxy/format]\nsinks: [azure/monitor: {{connection_string: '{KEY}URL'}}]",
}


def run(folder, *commands):
    """Return the exit codes of *commands*, and the hosts that a process of its own looked up or connected to."""
    words = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    done = subprocess.run(words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return (*json.loads(done.stdout.splitlines()[-1]), done)


def pipeline(folder, text):
    (folder / "rows.jsonl").write_text('{"id": "1", "input": "q", "output": "a"}\n')
    ledger = "ledger: {ledger/sqlite: {path: ledger.db}}\n"
    (folder / "p.yaml").write_text(f"source: {{rows/jsonl: {{path: rows.jsonl}}}}\n{text}\n{ledger}")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_chat_model_asks_the_address_of_the_file_alone(tmp_path, chat_server, name):
    options = {
        BASES.get(name, "base_url"): chat_server.url,
        "model": NAMES.get(name, "m"),
        "api_key": "k" * 30,
        "price": "free",
    }
    options |= {"poll": 1} if name.endswith("/batch") else {}
    judge = {"evaluator/judge": {"objective": "Is it right?", "retries": 0, "model": {name: options}}}
    pipeline(tmp_path, f"judges: [{json.dumps(judge)}]")
    codes, hosts, done = run(tmp_path, ["check", "p.yaml"], ["run", "p.yaml"])
    assert codes[0] == 0, done
    assert codes[1] in {0, 3, 4, 6}, done
    assert hosts == [], done
    assert chat_server.count > 0 or codes[1], done


@pytest.mark.slow
@pytest.mark.parametrize("name", SECTIONS)
def test_a_client_asks_the_address_of_the_file_alone(tmp_path, chat_server, name):
    pipeline(tmp_path, SECTIONS[name].replace("URL", chat_server.url.removesuffix("/v1")))
    codes, hosts, done = run(tmp_path, ["check", "p.yaml"], ["run", "p.yaml"])
    assert codes[0] == 0, done
    assert hosts == [], done


@pytest.mark.slow
def test_commands_of_the_terminal_ask_nobody(tmp_path):
    pipeline(tmp_path, "metrics: [diff/match, proxy/format]")
    commands = [["init", "rows.jsonl", "--out", "new.yaml"], ["check", "p.yaml"], ["run", "p.yaml"], ["runs"]]
    commands += [
        ["schema"],
        ["plugins", "--load"],
        ["report", "--ledger", "ledger.db"],
        ["cost", "--ledger", "ledger.db"],
    ]
    codes, hosts, done = run(tmp_path, *commands)
    assert 70 not in codes, done
    assert hosts == [], done
