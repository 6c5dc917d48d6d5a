"""A run with audits that is killed and taken up: the same subjects are audited, nothing counts twice, and it comes to the same corrected score."""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from dicast_hybrid.document import answered
from dicast_ledger import connect
from dicast_trust.calibration.document import digest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")

ROWS = 240
GATED = """
name: gated
source: {{rows/jsonl: {{path: rows.jsonl}}}}
metrics:
  - proxy/keywords: {{as: quick, required: [fine]}}
  - llm/judge: {{as: costly, model: {{openai/chat: {{base_url: "{url}", model: m, price: {{input_per_mtok: 1, output_per_mtok: 1}}}}}}, criteria: [right]}}
scoring: {{audit: {{rate: 0.4, seed: 3}}}}
executor: {{dicast/async: {{concurrency: 4}}}}
budget: {{session: 100 usd, day: 100 usd}}
ledger: {{ledger/sqlite: {{path: {ledger}}}}}
"""
CASCADE = """
name: cascade
source: {{rows/jsonl: {{path: rows.jsonl}}}}
define: {{grader: {{openai/chat: {{base_url: "{url}", model: m, price: free}}}}}}
judges:
  - hybrid/cascade:
      as: both
      stages: [{{llm/judge: {{model: grader, criteria: [a quick look]}}}}, {{llm/judge: {{model: grader, criteria: [a long look]}}}}]
      calibration: calibration.json
      audit: {{rate: 0.5, seed: 0}}
executor: {{dicast/async: {{concurrency: 1}}}}
ledger: {{ledger/sqlite: {{path: {ledger}}}}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, chat_server):
    """Rows, one third of them passing a gate, and a slow model."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(5)
    with Path("rows.jsonl").open("w") as file:
        for number in range(ROWS):
            said = f"row-{number} {'fine' if number % 3 == 0 else 'poor'} {'RIGHT' if draw.random() < 0.6 else 'WRONG'}"
            file.write(json.dumps({"id": f"r{number}", "output": said, "session_id": f"s{number // 4}"}) + "\n")

    def judge(asked):
        found = re.search(r"row-\d+ \w+ (RIGHT|WRONG)", asked.prompt)
        assert found
        return chat_server.sealed(score=0.9 if found[1] == "RIGHT" else 0.2, confidence=0.9)

    chat_server.answer, chat_server.latency = judge, 0.015
    return tmp_path


def ended(ledger):
    """How many verdicts the ledger has; 0 while there is none."""
    if not Path(ledger).exists():
        return 0
    try:
        with closing(connect(ledger)) as live:
            return live.execute("SELECT count(*) FROM events WHERE type = 'eval.completed'").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def dicast(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "dicast", *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def killed(file, ledger, after):
    """Run *file* and kill it once *after* verdicts are there; then take it up, and return its document."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dicast", "run", file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 100
    while ended(ledger) < after and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    assert process.poll() is None, "the run ended before it was killed"
    process.kill()
    process.wait()
    assert after <= ended(ledger) < ROWS
    done = dicast("run", file, "--resume", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def events(ledger, *types):
    with closing(connect(ledger)) as live:
        rows = live.execute("SELECT type, subject_id, payload FROM events ORDER BY seq").fetchall()
    return [(type_, subject, json.loads(payload)) for type_, subject, payload in rows if type_ in types]


def propensities(ledger):
    found = [(payload["subject_id"], payload["propensity"]) for *_, payload in events(ledger, "eval.completed")]
    assert len(found) == len(dict(found)) == ROWS  # one verdict a subject
    return dict(found)


@pytest.mark.slow
@pytest.mark.parametrize("after", [30, 150])
def test_a_killed_run_audits_the_same_subjects_and_comes_to_the_same_corrected_score(folder, chat_server, after):
    Path("whole.yaml").write_text(GATED.format(url=chat_server.url, ledger="whole.db"))
    Path("killed.yaml").write_text(GATED.format(url=chat_server.url, ledger="killed.db"))
    done = dicast("run", "whole.yaml", "--json")
    assert done.returncode == 0, done.stderr
    whole, resumed = json.loads(done.stdout), killed("killed.yaml", "killed.db", after)
    assert propensities("killed.db") == propensities("whole.db")
    assert set(propensities("whole.db").values()) == {None, 0.4, 1.0}
    wanted, found = (one["score"]["corrected"] for one in (whole, resumed))
    assert (found["n_audited"], found["held_back"], found["method"]) == (wanted["n_audited"], 160, "general")
    for name in ("mean", "ci_low", "ci_high", "lambda", "ess", "plain_bias"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-12, abs=1e-12)
    assert resumed["metrics"]["costly"]["corrected"]["mean"] == pytest.approx(
        whole["metrics"]["costly"]["corrected"]["mean"], rel=1e-12
    )
    assert resumed["cost"]["if_all_judged"] == whole["cost"]["if_all_judged"]
    shown = json.loads(dicast("show", resumed["run_id"], "--json", "--ledger", "killed.db").stdout)
    assert shown["score"]["corrected"] == found
    assert json.loads(dicast("ledger", "verify", "--ledger", "killed.db", "--json").stdout)["ok"]


def calibration(url):
    """A calibration of the first stage that keeps verdicts with a confidence of at least .8."""
    from dicast import pipeline_judges

    Path("plain.yaml").write_text(
        CASCADE.format(url=url, ledger="plain.db").replace(
            "      calibration: calibration.json\n      audit: {rate: 0.5, seed: 0}\n", ""
        )
    )
    stage = pipeline_judges(Path("plain.yaml")).judges[0].inside[".stages[0]"]
    of = {"component": stage.name, "version": stage.version, "options": stage.options, "fingerprint": stage.fingerprint}
    step = {"label": stage.label, "fingerprint": answered(stage.fingerprint, "m"), "of": {**of, "model": "m"}}
    step |= {"signal": "confidence", "model": None, "threshold": 0.8, "audit_risk": 0.1}
    document = {
        "version": 1,
        "target": 0.9,
        "alpha": 0.1,
        "agree": "pass",
        "window": None,
        "pass_at": 0.5,
        "stages": [step],
    }
    Path("calibration.json").write_text(json.dumps(document | {"digest": digest(document)}))


@pytest.mark.slow
def test_a_killed_cascade_counts_each_audit_once(folder, chat_server):
    calibration(chat_server.url)
    Path("whole.yaml").write_text(CASCADE.format(url=chat_server.url, ledger="whole.db"))
    Path("killed.yaml").write_text(CASCADE.format(url=chat_server.url, ledger="killed.db"))
    done = dicast("run", "whole.yaml", "--json")
    assert done.returncode == 0, done.stderr
    killed("killed.yaml", "killed.db", 100)
    sides = [
        [(one["who"], one["subject"], one["loss"], one["e_value"]) for *_, one in events(name, "calibration.audited")]
        for name in ("whole.db", "killed.db")
    ]
    assert sides[0] == sides[1]
    assert len({who for who, *_ in sides[1]}) == len(sides[1]) > 20  # one audit a session
    assert len(events("killed.db", "eval.completed")) == ROWS
