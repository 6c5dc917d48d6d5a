"""``dicast serve`` as a process, over a ledger that other processes write."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path

DICAST = Path(sys.executable).with_name("dicast")
READING, LABELLING = "reading-token-0123456789", "labelling-token-0123456789"


class Server:
    """``dicast serve`` over the ledger ``ledger.db`` of a folder, on a free or a fixed port."""

    def __init__(self, folder: Path, port: int = 0, options: Sequence[str] = (), labelling: str = LABELLING):
        for name, token in (("read.token", READING), ("label.token", labelling)):
            (folder / name).write_text(token)
        arguments = ["--port", str(port), "--token-file", "read.token", "--label-token-file", "label.token", *options]
        command = [DICAST, "serve", "--ledger", "ledger.db", *arguments]
        with (folder / "serve.log").open("a") as log:
            self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        self.log = folder / "serve.log"
        self.address = self.process.stdout.readline().split()[-1]
        self.port = int(self.address.rsplit(":", 1)[1].strip("/"))

    def open(self, path, token=READING, **headers):
        """The answer to a request, which may go on."""
        request_headers = {"authorization": f"Bearer {token}"} | headers
        return urllib.request.urlopen(
            urllib.request.Request(self.address.rstrip("/") + path, headers=request_headers), timeout=60
        )

    def get(self, path):
        """The answer's JSON with every number as its token."""
        with self.open(path) as answer:
            return json.loads(answer.read(), parse_float=str, parse_int=str)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(200)
        self.process.stdout.close()
