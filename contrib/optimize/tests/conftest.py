"""A folder with specs, a scripted chat model, and an evaluator, both on loopback."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml
from click.testing import CliRunner

from dicast_optimize.cli import optimize

WORDS = ("alpha", "beta", "gamma", "alpha")


class Service:
    """Service that answers each POST with the result of *answer* on its JSON: a JSON value, or (status, value). *requests* are the received ones."""

    def __init__(self, answer):
        self.requests, self.answer = [], answer
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.requests.append(request)
                reply = service.answer(request)
                status, value = reply if isinstance(reply, tuple) else (200, reply)
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def serving(answer):
    service = Service(answer)
    try:
        yield service
    finally:
        service.stop()


@pytest.fixture
def model():
    """Return a chat model whose replies are ``model.replies``, in order; the last one repeats."""
    requests = []

    def answer(request):
        requests.append(request["messages"][-1]["content"])
        text = model.replies[min(len(requests), len(model.replies)) - 1]
        return {
            "id": "1",
            "object": "chat.completion",
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }

    with serving(answer) as model:
        model.prompts = requests
        model.replies = [f"Better:\n```\n{' '.join(WORDS[: n + 1])}\n```" for n in range(3)]
        price = {"input_per_mtok": 1000, "output_per_mtok": 1000}
        model.component = {"openai/chat": {"base_url": f"{model.url}/v1", "model": "m", "price": price}}
        yield model


def has_the_word(payload):
    word = (payload.get("example") or {"word": "gamma"})["word"]
    is_found = word in payload["candidate"]
    return {"score": 1.0 if is_found else 0.2, "reasoning": "all is there" if is_found else f"it lacks {word}"}


@pytest.fixture
def evaluator():
    with serving(has_the_word) as service:
        yield service


class Folder:
    """Folder of specs. ``spec`` writes one, ``dicast`` calls the command in this process."""

    def __init__(self, path, model, evaluator):
        self.path = path
        self.sections = {
            "optimization": {"seed": "nothing", "budget": 60, "money": "9.00 usd"},
            "evaluator": {"url": evaluator.url},
            "model": {"reflection": model.component, "max_output_tokens": 100},
        }

    def data(self, **splits):
        for name, words in splits.items():
            lines = [json.dumps({"word": word, "split": name}) for word in words]
            (self.path / f"{name}.jsonl").write_text("\n".join(lines))
            self.sections["optimization"][name] = f"{name}.jsonl"

    def spec(self, name="spec.yaml", **changes):
        sections = {section: {**defaults, **changes.pop(section, {})} for section, defaults in self.sections.items()}
        (self.path / name).write_text(yaml.safe_dump({**sections, **changes}, sort_keys=False))
        return name

    def dicast(self, *words):
        """Return exit code and document."""
        done = CliRunner().invoke(optimize, [*words, "--json"], standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        return done.return_value, json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path, monkeypatch, model, evaluator):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DICAST_LEDGER", raising=False)
    return Folder(tmp_path, model, evaluator)
