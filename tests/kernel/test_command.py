"""``dicast.toolkit.command.call_command``: its result, and that no process of a command is left."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dicast.toolkit.command import OutputTooLong, call_command


def ran(code, *args, **options):
    return asyncio.run(call_command([sys.executable, "-c", code, *args], **options))


def test_output_errors_and_code_are_those_of_the_command():
    end = ran("import sys; print(sys.stdin.read().upper()); print('no', file=sys.stderr); sys.exit(3)", data=b"yes")
    assert (end.code, end.output, end.errors, end.how) == (3, b"YES\n", b"no\n", "the exit code is 3")
    assert ran("import os; os.kill(os.getpid(), 9)").how == "it was ended by signal 9"


def test_variables_and_folder_are_given(tmp_path):
    code = "import os; print(os.environ['WORD'], os.getcwd(), 'PATH' in os.environ)"
    assert ran(code, env={"WORD": "x"}, folder=tmp_path).output.decode().split() == [
        "x",
        str(tmp_path.resolve()),
        "True",
    ]


def test_a_command_need_not_read_its_input():
    assert ran("print(1)", data=b"x" * 1_000_000).output == b"1\n"


def test_a_missing_program_is_an_os_error():
    with pytest.raises(FileNotFoundError):
        asyncio.run(call_command(["no-such-program-here"]))


def test_more_than_the_most_ends_it():
    with pytest.raises(OutputTooLong, match="more than 1,000 bytes"):
        ran("while True: print('x' * 100)", most=1000)


def test_both_streams_are_received_in_the_order_in_which_they_were_written():
    pieces = []
    code = "import os\nfor n in range(200): os.write(1 + n % 2, b'%d\\n' % n)"
    end = ran(code, receive=pieces.append)
    assert b"".join(pieces).split() == [b"%d" % n for n in range(200)]
    assert (end.output, end.errors.split()[-1]) == (b"", b"199")


def test_what_the_receiver_raises_ends_the_command_and_is_raised():
    def refuse(piece):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        ran("while True: print('x' * 100)", receive=refuse)


LEAVES = """
import os, subprocess, sys, time
note = sys.argv[1]
child = "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()}\\\\n'); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child, note])
subprocess.Popen([sys.executable, "-c", child, note], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", child, note])
    os._exit(0)
while len(open(note).read().split()) < 3 if os.path.exists(note) else True:
    time.sleep(.01)
open(note + ".all", "w").close()
time.sleep(600)
"""


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="what has left its session is found by /proc")
@pytest.mark.parametrize("again", [False, True], ids=["once", "again and again"])
def test_cancelled_it_ends_with_all_that_it_has_started(tmp_path, again):
    note = tmp_path / "pids"

    async def main():
        running = asyncio.create_task(call_command([sys.executable, "-c", LEAVES, str(note)]))
        while not Path(f"{note}.all").exists():  # noqa: ASYNC110, ASYNC240  # another process makes it
            await asyncio.sleep(0.01)
        running.cancel()
        while not running.done():
            if again:
                running.cancel()
            await asyncio.sleep(0.01)
        return running

    assert asyncio.run(main()).cancelled()
    pids, end = note.read_text().split(), time.monotonic() + 100
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.01)
    assert len(pids) == 3
    assert not any(map(is_running, pids))


def test_a_child_that_holds_the_pipes_does_not_hold_the_caller():
    code = "import subprocess, sys; subprocess.Popen(['sleep', '600']); print('done')"
    began = time.monotonic()
    assert ran(code).output == b"done\n"
    assert time.monotonic() - began < 60


NESTS = """
import asyncio, sys
from dicast.toolkit.command import call_command
asyncio.run(call_command([sys.executable, "-c", "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)", sys.argv[1]]))
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="what has left its session is found by /proc")
def test_what_a_command_runs_by_dicast_ends_with_it(tmp_path):
    note = tmp_path / "pid"

    async def main():
        running = asyncio.create_task(call_command([sys.executable, "-c", NESTS, str(note)]))
        while not running.done() and not (note.exists() and note.read_text()):  # noqa: ASYNC110, ASYNC240  # another process writes it
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(main())
    end = time.monotonic() + 100
    while is_running(note.read_text()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_running(note.read_text())


DETACHES = """
import os, sys, time
note, clears = sys.argv[1], sys.argv[2:]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in (0, 1, 2):
            os.close(fd)
        code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
        os.execve(sys.executable, [sys.executable, "-c", code, note], {} if clears else dict(os.environ))
    os._exit(0)
while not (os.path.exists(note) and open(note).read()):
    time.sleep(.01)
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes outside the session are found by /proc")
def test_a_process_that_left_the_session_ends_with_a_command_that_ended_normally(tmp_path):
    note = tmp_path / "pid"
    assert ran(DETACHES, str(note)).code == 0
    end = time.monotonic() + 100
    while is_running(note.read_text()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_running(note.read_text())


@pytest.mark.skipif(sys.platform != "linux", reason="subreapers are Linux's")
def test_with_adopt_a_process_without_the_environment_ends_too_and_other_children_stay(tmp_path):
    note = tmp_path / "pid"
    code = (
        "import asyncio, subprocess, sys; from dicast.toolkit.command import call_command\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        "end = asyncio.run(call_command([sys.executable, '-c', sys.argv[1], sys.argv[2], 'clear'], adopt=True))\n"
        "print(end.code, child.poll()); child.kill()"
    )
    words = [sys.executable, "-c", code, DETACHES, str(note)]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "0 None\n"
    assert not is_running(note.read_text())
