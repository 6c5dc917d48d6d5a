"""Fresh processes for the question what importing a plugin brings: each is forked from one that has imported the kit and no plugin.

As a script it answers plugins' names, one a line, until its input ends.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys

SECONDS = 120
ANSWERED = 17
"""The code with which a process ends that has said what it found: no plugin ends it so."""


class Probes:
    """The process that forks, started when the first plugin is asked about."""

    def __init__(self):
        self._process = None

    def probe(self, plugin):
        """What ``dicast.testing.probe.probe`` says of *plugin*."""
        if self._process is None:
            command = [sys.executable, "-P", __file__]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process.stdin.write(f"{plugin}\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], SECONDS)[0]:
            self._process.kill()
            raise TimeoutError(f"importing {plugin} takes more than {SECONDS} s")
        return json.loads(self._process.stdout.readline())

    def stop(self):
        """End it."""
        if self._process is not None:
            self._process.communicate()


def main():
    from dicast.testing.probe import load

    answers = os.dup(1)
    os.dup2(2, 1)  # what a plugin prints is no answer
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            os.write(answers, json.dumps(load(line.strip())).encode() + b"\n")
            os._exit(ANSWERED)
        if (code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) != ANSWERED:
            found = {"seconds": 0.0, "heavy": [], "others": [], "error": f"its process ended with {code}"}
            os.write(answers, json.dumps(found).encode() + b"\n")


if __name__ == "__main__":
    main()
