"""Ledgers in a folder and in S3, events, and a server of S3 on this machine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import urllib.request
import uuid
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from dicast import Event
from dicast.toolkit.ids import stamp
from dicast_segments import Ledger

SERVER = """
import sys
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""

RUN = "01M8EW283Y638B0N1FCM7GEK16"


@pytest.fixture(scope="session")
def bucket():
    """Return the URL of a bucket of a local server of S3, which the environment names."""
    if find_spec("moto") is None:
        pytest.skip("moto, a local server of S3, is not installed")
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        try:
            port = server.stdout.readline().strip()
            if not port:
                pytest.skip("the local server of S3 did not start")
            endpoint = f"http://127.0.0.1:{port}"
            values = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
            for name, value in {**values, "AWS_ENDPOINT_URL": endpoint}.items():
                patch.setenv(name, value)
            urllib.request.urlopen(urllib.request.Request(f"{endpoint}/dicast", method="PUT")).close()
            yield "s3://dicast"
        finally:
            server.stdin.close()
            server.stdout.close()
            server.wait(200)


@contextmanager
def _opened(component, *, create=True):
    with asyncio.Runner() as runner:
        opening = component.open(None, create=create)
        live = runner.run(opening.__aenter__())
        try:
            yield live
        finally:
            runner.run(opening.__aexit__(None, None, None))


@pytest.fixture(scope="session")
def opened():
    """Return a function that opens a ledger."""
    return _opened


@pytest.fixture
def folder(tmp_path):
    """Return a ledger in a folder."""
    return Ledger(path=tmp_path / "logs")


@pytest.fixture(params=["folder", "s3"])
def ledger(request, tmp_path):
    """Return a ledger in a folder, and a ledger in S3."""
    if request.param == "folder":
        return Ledger(path=tmp_path / "logs")
    return Ledger(url=f"{request.getfixturevalue('bucket')}/{uuid.uuid4().hex}")


@pytest.fixture(scope="session")
def make_event():
    """Return a function that makes an event."""

    def make(type_="run.paused", payload=None, run_id=RUN, **fields):
        return Event(*stamp()[:1], type_, "2026-11-27T16:00:00.000Z", run_id, payload or {}, **fields)

    return make


@pytest.fixture(scope="session")
def make_subject(make_event):
    """Return a function that makes the events of a judged row."""

    def make(number, text=None):
        about = {"eval_id": f"E{number}", "subject_kind": "row", "subject_id": str(number), "judge": "metrics"}
        content = {"digest": str(number), "content": {"output": text or f"text {number}"}, "place": f"r:{number}"}
        payloads = {"subject.read": content, "eval.started": about, "eval.completed": {**about, "score": 0.5}}
        return [
            make_event(type_, payload, subject_kind="row", subject_id=str(number))
            for type_, payload in payloads.items()
        ]

    return make
