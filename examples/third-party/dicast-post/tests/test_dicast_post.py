"""Tests of the sink, with a server of this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from dicast import ConfigError, Judgment, Secret
from dicast.testing import FakeJudge, SinkConformance, run_pipeline, sample

from dicast_post import Verdicts


class Hook(ThreadingHTTPServer):
    """A server that keeps each request, and answers with the next of *answers*, then with 200."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str | None, dict[str, object]]] = []
        self.answers: list[int] = []

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    """Handler of the requests of a :class:`Hook`."""

    def do_POST(self) -> None:
        """Keep the request and answer it."""
        assert isinstance(self.server, Hook)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.headers["Authorization"], body))
        self.send_response(self.server.answers.pop(0) if self.server.answers else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def hook() -> Iterator[Hook]:
    """Start a server for a test."""
    with Hook() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class TestVerdicts(SinkConformance):
    sink = "post/verdicts"
    options = {"url": "http://127.0.0.1/"}

    @pytest.fixture(autouse=True)
    def answered(self, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the options name the server of the test."""
        monkeypatch.setattr(type(self), "options", {"url": hook.url})


def run(hook: Hook) -> dict[str, object]:
    """Return the figures of the sink after a run with one verdict."""
    text = f"judges: [fake]\nsinks: [post/verdicts: {{url: '{hook.url}', token: key-1}}]"
    done = run_pipeline(text, subjects=[sample("x")], components={"fake": FakeJudge(Judgment(0.5))})
    (figures,) = done.document["sinks"].values()
    return dict(figures)


def test_a_verdict_is_sent_with_the_token(hook: Hook) -> None:
    assert run(hook) == {"written": 1, "lost": 0}
    ((authorization, body),) = hook.requests
    assert authorization == "Bearer key-1"
    assert body["verdicts"] == [{"subject": "sample", "label": "fake", "score": 0.5}]


def test_a_refused_request_is_sent_again(hook: Hook) -> None:
    hook.answers = [503]
    assert run(hook) == {"written": 1, "lost": 0}
    assert len(hook.requests) == 2


def test_the_token_is_not_printed() -> None:
    assert "key-1" not in repr(Verdicts("http://127.0.0.1/", Secret("key-1")))


def test_a_url_of_another_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match="http://"):
        Verdicts("file:///etc/passwd")
