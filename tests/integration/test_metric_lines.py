"""``dicast run --metric-lines``: a run as METRIC lines, for loops that read these."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dicast.toolkit.metric_lines import MetricLines

PIPELINE = "metrics: [{fake/act: {as: a-b}}, {fake/truth: {as: a_b, value: 1}}, {fake/act: {as: score, weight: 0}}]\n"


def lines(shop, text, *arguments):
    return shop.dicast("run", shop.pipeline(text).name, "--metric-lines", *arguments)


@contextmanager
def answering(text):
    """A chat model on loopback that always answers *text*."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            data = json.dumps({"id": "1", "model": "m", "choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("syntax", ["strict", "lenient"])
def test_stdout_has_the_runs_score_and_each_labels_mean_and_nothing_else(shop, syntax):
    shop.rows(0.5, 0.50000002)
    done = lines(shop, PIPELINE)
    assert done.code == 0
    assert all(line.startswith("METRIC ") for line in done.out.splitlines())
    result = MetricLines(syntax)
    result.feed(done.out.encode())
    named = {"score": 0.750000005, "metrics": 0.750000005, "a_b": 0.50000001, "a_b_2": 1.0, "score_2": 0.50000001}
    assert result.result().metrics == pytest.approx(named, abs=1e-12)


def test_small_means_have_no_exponent(shop):
    shop.rows(1e-9)
    message = [f"METRIC {name}=0.000000001" for name in ("score", "metrics", "fake_act")]
    assert lines(shop, "metrics: [fake/act]\n").out.splitlines() == message


def test_the_primary_label_is_the_score(shop):
    shop.rows(0.5)
    done = lines(shop, PIPELINE, "--primary", "a_b")
    assert done.out.splitlines()[0] == "METRIC score=1.0"


def test_what_has_no_mean_has_no_line_and_the_exit_code_is_the_runs(shop):
    shop.rows("raise")
    done = lines(shop, "metrics: [fake/act]\n")
    assert (done.code, done.out) == (3, "")
    shop.rows(0.5)
    done = lines(shop, "metrics: [fake/act]\ngate: {min_score: 0.9}\n")
    assert (done.code, done.out.splitlines()[0]) == (1, "METRIC score=0.5")


def test_the_mean_of_a_judge_is_a_line(shop):
    shop.rows(0.5)
    assert "METRIC fake_opinion=" in lines(shop, "judges: [fake/opinion]\n").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric-lines", "--json"], "alone; remove --json (dicast"),
        (["--metric-lines", "--head", "1"], "alone; remove --head (dicast"),
        (
            ["--metric-lines", "--head", "1", "--limit", "1", "--out", "a.md"],
            "subjects; remove --limit and --out (dicast",
        ),
        (["--head", "1", "--limit", "1", "--resume", "--out", "a.md"], "remove --limit, --resume and --out (dicast"),
        (["--watch", "--resume"], "again; remove --resume (dicast"),
        (["--primary", "a-b"], "--primary needs --metric-lines: add it"),
        (["--metric-lines", "--primary", "ab"], "no metric or judge has the label 'ab'"),
    ],
)
def test_options_that_contradict_each_other_are_refused(shop, arguments, message):
    shop.rows(0.5)
    shop.pipeline(PIPELINE)
    done = shop.dicast("run", "p.yaml", *arguments)
    assert done.code == 2
    assert message in done.out + done.err
    assert not (shop / ".dicast").exists()


def test_a_suite_of_experiments_is_refused(shop):
    shop.rows(0.5)
    done = lines(shop, PIPELINE + "experiments: {one: {}, two: {set: {scoring.threshold: 0.7}}}\n")
    assert (done.code, done.out) == (2, "")
    assert "several experiments" in done.err


RUBRIC = """
id: two
version: 1.0.0
dimensions:
  - {name: clarity, weight: 0.6, scale: "1-10", criteria: Is it clear?}
  - {name: tone of voice, weight: 0.4, scale: "1-5", criteria: Is it kind?}
"""


def test_dimensions_and_secondary_metrics_are_lines_under_bare_names(shop):
    shop.rows(0.5, 1.0)
    (shop / "measure.py").write_text("print('METRIC size=0.5\\nMETRIC clarity=3\\nMETRIC words=7\\nMETRIC total_µs=2')")
    (shop / "two.yaml").write_text(RUBRIC)
    command = f"command: [{sys.executable}, measure.py], primary: size"
    with answering('{"clarity": 8, "tone of voice": 4, "confidence": 0.9, "rationale": "r"}') as url:
        model = f"openai/chat: {{base_url: '{url}/v1', model: m, price: free}}"
        text = (
            f"metrics: [evaluator/metric_lines: {{as: measured, {command}}}]\n"
            f"judges: [llm/judge: {{as: judge, rubric: two.yaml, seal: false, model: {{{model}}}}}]\n"
        )
        done = lines(shop, text, "--primary", "judge")
    assert done.code == 0, done.err
    result = MetricLines("strict")
    result.feed(done.out.encode())
    score = 0.6 * 0.8 + 0.4 * 0.8
    assert result.result().metrics == pytest.approx(
        {
            "score": score,
            "metrics": 0.5,
            "measured": 0.5,
            "judge": score,
            "clarity": 3.0,
            "words": 7.0,
            "total_µs": 2.0,
            "judge.clarity": 8.0,
            "tone_of_voice": 4.0,
        }
    )


def test_several_labels_need_a_primary(shop):
    shop.rows(0.5)
    done = lines(shop, "metrics: [fake/act]\njudges: [fake/opinion]\n")
    assert done.code == 2
    assert (
        "the file has several labels (metrics, fake/opinion): choose the label of METRIC score with --primary"
        in done.err
    )
    assert lines(shop, "metrics: [fake/act]\njudges: [fake/opinion]\n", "--primary", "metrics").code == 0
