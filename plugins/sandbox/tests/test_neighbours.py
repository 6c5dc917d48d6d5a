"""Sandboxes that run at the same time: they do not see each other, and one that uses all its resources leaves the others theirs."""

from __future__ import annotations

import asyncio
import os

import attrs
import pytest
from boxes import SMALL, needs_bubblewrap

from dicast import Execution, Program
from dicast_sandbox import Bubblewrap

pytestmark = needs_bubblewrap

OPEN = """
import os, signal, socket, sys, time
told = []
for number in set(range(1, 32)) - {9, 17, 19}:
    signal.signal(number, lambda n, _: told.append(n))
open('/tmp/secret', 'w').write('x')
open('/dev/shm/secret', 'w').write('x')
servers = [socket.create_server(('127.0.0.1', 45678)), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
servers[1].bind('\\0neighbour'); servers[1].listen()
servers[2].bind('/tmp/neighbour'); servers[2].listen()
for server in servers: server.setblocking(False)
time.sleep(2.5)
for server in servers:
    try: server.accept(); told.append('connected')
    except BlockingIOError: pass
print('open', told, os.getpriority(os.PRIO_PROCESS, 0), [n for n in os.listdir('/tmp') + os.listdir('/dev/shm') if n == 'other'])
"""

CURIOUS = """
import ctypes, os, socket, time
time.sleep(0.7)
def attempt(what, *arguments):
    try: print('ESCAPED', what, arguments, what(*arguments))
    except (OSError, OverflowError): pass
def connect(family, address):
    with socket.socket(family) as s: s.settimeout(1); s.connect(address)
print(sorted(p for p in os.listdir('/proc') if p.isdigit() and int(p) > 10))
for path in ('/tmp/secret', '/dev/shm/secret', '/tmp/neighbour'): attempt(os.stat, path)
attempt(connect, socket.AF_INET, ('127.0.0.1', 45678))
attempt(connect, socket.AF_UNIX, '\\0neighbour')
attempt(connect, socket.AF_UNIX, '/tmp/neighbour')
print([line for line in open('/proc/net/unix') if 'neighbour' in line])
for path in ('/tmp/other', '/dev/shm/other'): open(path, 'w').close()
own = {int(p) for p in os.listdir('/proc') if p.isdigit()}
for pid in set(range(-70000, 70000)) - own - {-os.getpgid(0), -os.getpid(), 0, -1} - {-p for p in own}: attempt(os.kill, pid, 10)
os.setpriority(os.PRIO_USER, 0, 19)
ctypes.CDLL(None).syscall(251, 3, os.getuid(), (3 << 13))
try: os.kill(-1, 15)
except OSError: pass
print('done')
"""


def run_together(*codes: str, **changes: object) -> list[Execution]:
    """Run all *codes* at the same time, each in a sandbox of one pool."""

    async def together() -> list[Execution]:
        async with Bubblewrap(concurrency=len(codes)).open(None) as pool:
            limits = attrs.evolve(SMALL, wall=30, cpu=30, **changes)
            return await asyncio.gather(*(pool.execute(Program(("python3", "-c", code), limits)) for code in codes))

    return asyncio.run(together())


@pytest.mark.slow
def test_what_is_in_a_sandbox_cannot_be_seen_or_reached_from_another():
    opened, curious = run_together(OPEN, CURIOUS)
    assert opened.output == f"open [] {os.getpriority(os.PRIO_PROCESS, 0)} []\n"
    assert curious.output == "[]\n[]\ndone\n"


FORKS = "import os, time\ndef child():\n  if os.fork() == 0: time.sleep(2.5); os._exit(0)\nfor _ in range(40): child()\nprint('forked')\ntime.sleep(2)"


@pytest.mark.slow
def test_each_sandbox_has_its_own_number_of_processes():
    assert [(execution.output, execution.limit) for execution in run_together(FORKS, FORKS, FORKS)] == [
        ("forked\n", None)
    ] * 3


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="where dicast is not root, all sandboxes are the same user's")
def test_a_sandbox_that_takes_what_a_user_may_have_leaves_the_others_theirs():
    greedy = (
        "import ctypes, os, time\nlibc = ctypes.CDLL(None)\nn = 0\nwhile libc.inotify_init() >= 0: n += 1\n"
        "print(n > 9, flush=True)\ntime.sleep(2)"
    )
    modest = "import ctypes, time\ntime.sleep(1)\nprint(ctypes.CDLL(None).inotify_init() >= 0)"
    assert [execution.output for execution in run_together(greedy, modest)] == ["True\n", "True\n"]
