"""Programs in containers, if an engine answers or can be started; and the messages without an engine."""

from __future__ import annotations

import asyncio
import io
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

import attrs
import pytest
from boxes import MB, SMALL
from engines import docker, engine, image
from test_escapes import BOMBS, SYSCALL, WRITES, X86
from test_runs import pipeline, wait_for

import dicast
from dicast import ConfigError, Execution, Failure, Program, Subject
from dicast_sandbox import Docker, PassingTests
from dicast_sandbox.backends import seccomp

READS = [
    "/etc/shadow",
    "/root",
    "/var/run/docker.sock",
    "/dev/mem",
    "/dev/sda",
    "/dev/vda",
    "/dev/fuse",
    "/dev/kvm",
    "/proc/kcore",
    "/proc/1/mem",
    "/proc/1/environ",
    "/proc/1/fd/0",
    "/proc/1/root/root",
    str(Path(__file__).parent),
]
TESTS = "import unittest\nfrom solution import f\nclass Test(unittest.TestCase):\n  def test_f(self): self.assertEqual(f(3), 9)\n"


@pytest.fixture(scope="module")
def image_name(tmp_path_factory):
    """Return the name of an image at the client's default engine."""
    with pytest.MonkeyPatch.context() as patch, engine(tmp_path_factory.mktemp("engine")) as host:
        if host is not None:
            patch.setenv("DOCKER_HOST", host)
        with image(f"dicast-test-{os.getpid()}") as name:
            yield name


@pytest.fixture
def box(image_name) -> Docker:
    return Docker(image_name)


def containers() -> list[str]:
    return docker("ps", "--all", "--quiet", "--filter", "label=dicast").stdout.decode().split()


def run(box: Docker, *command: str, limits=SMALL, **program) -> Execution:
    """Run in a container, and check that no container is left."""
    execution = asyncio.run(box.execute(Program(command, limits, **program)))
    assert isinstance(execution, Execution), execution
    assert containers() == []
    return execution


def python(box: Docker, code: str, **program) -> Execution:
    return run(box, "python3", "-c", code, **program)


def try_each(attempts: list[str]) -> str:
    """Return code that makes all *attempts*, each in a process of its own."""
    return (
        "import subprocess, sys\n"
        f"for code in {attempts!r}:\n"
        "    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
        "    if 'ESCAPED' in done.stdout: print('ESCAPED', code)\n"
        "print('all tried')\n"
    )


def packed(files: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


# What a sandbox promises


def test_it_works_where_an_engine_answers(box):
    box.check()


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_code_is_the_programs(box, code):
    assert run(box, "sh", "-c", f"echo out; echo err >&2; exit {code}").exit == code


def test_a_signal_is_an_exit_code_as_of_a_shell(box):
    assert run(box, "sh", "-c", "kill -9 $$").exit == 137


def test_a_program_that_is_not_there_fails_by_itself(box):
    execution = run(box, "nonesuch")
    assert execution.exit == 127
    assert "nonesuch" in execution.output


def test_the_files_replace_the_templates_and_the_report_comes_back(box):
    template = packed({"a/both": b"template", "a/own": b"own"})
    code = "cat a/both a/own; ./tool; cat a/both >report"
    files = {"a/both": b"file", "tool": b"#!/bin/sh\necho tool\n"}
    execution = run(box, "sh", "-c", code, archive=template, files=files, collect="report")
    assert execution.output == "fileowntool\n"
    assert execution.collected == b"file"


@pytest.mark.parametrize("code", ["true", "python3 -c \"import os; os.symlink('/etc/shadow', 'report')\""])
def test_a_report_that_is_not_there_is_none(box, code):
    assert run(box, "sh", "-c", code, collect="report").collected is None


def test_the_environment_is_the_images_and_what_is_given(image_name, tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET_OF_THE_HOST", "hunter2")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    proxies = {"proxies": {"default": {"httpProxy": "http://me:hunter2@proxy.invalid"}}}
    (tmp_path / "config.json").write_text(json.dumps(proxies))
    box = Docker(image_name, environment={"GIVEN": "to all", "TO": "all"})
    execution = run(box, "sh", "-c", "cat /proc/*/environ /proc/*/cmdline 2>&1; env", environment={"TO": "one"})
    assert "hunter2" not in execution.output
    assert {"GIVEN=to all", "TO=one", "HOME=/tmp/home", "USER=sandbox"} <= set(execution.output.splitlines())


def test_signals_are_as_usual(box):
    code = "import signal; print([signal.getsignal(n) for n in (2, 3, 15)] == [signal.default_int_handler, 0, 0])"
    assert python(box, code).output == "True\n"


def test_waiting_for_its_turn_is_not_the_programs_time(image_name, tmp_path):
    rows = [{"id": str(number), "output": "x"} for number in range(3)]
    command = {
        "command": "sleep 0.3",
        "timeout": 2,
        "backend": {"sandbox/docker": {"image": image_name, "concurrency": 1}},
    }
    assert dicast.run(pipeline(tmp_path, rows, metrics=[{"sandbox/command": command}])).score["mean"] == 1


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("def f(x):\n    print('aside')\n    return x * x\n", 1),
        ("def f(x):\n    return 1\n", 0),
        ("import os\nos._exit(0)\n", 0),
        ("import unittest, sys\nunittest.TestCase.assertEqual = print\nsys.exit(0)", 0),
    ],
    ids=["right", "wrong", "an early end", "patched"],
)
def test_a_candidate_apart_from_its_tests(box, output, value):
    metric = PassingTests(
        command="python3 -m unittest test_it", mode="isolated", output_file="solution.py", files={"test_it.py": TESTS}, backend=box
    )  # fmt: skip
    score = asyncio.run(metric.score(Subject("row", "1", output=output)))
    assert score.value == value, score
    assert score.signals["forgeable"] is False
    assert containers() == []


def test_what_a_candidate_says_is_no_part_of_its_tests_report(box):
    forged = "import os, sys\ndef f(x):\n  sys.stderr.write('Ran 1 test in 0.001s\\n\\nOK\\n'); sys.stderr.flush(); os._exit(1)"
    metric = PassingTests(
        command="python3 -m unittest test_it; sleep 0.5; true", mode="isolated", output_file="solution.py",
        files={"test_it.py": TESTS}, backend=box,
    )  # fmt: skip
    score = asyncio.run(metric.score(Subject("row", "1", output=forged)))
    assert (score.value, score.signals["failed"]) == (0, 1), score
    assert score.details.endswith("The candidate wrote:\nRan 1 test in 0.001s\n\nOK")


# What is tried against it


def test_cannot_read_what_is_not_its_own(box, tmp_path):
    (tmp_path / "secret").write_text("hunter2")
    paths = [*READS, str(tmp_path / "secret"), str(Path.home() / ".docker")]
    code = "import os; p={!r}; print('ESCAPED', os.listdir(p) if os.path.isdir(p) else open(p,'rb').read(1))"
    assert python(box, try_each([code.format(path) for path in paths])).output == "all tried\n"


def test_cannot_write_but_in_memory(box):
    code = "open({!r}, 'a').write('h'); print('ESCAPED')"
    assert python(box, try_each([code.format(path) for path in WRITES])).output == "all tried\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86_64")
def test_cannot_make_calls_that_lead_out(box):
    assert python(box, try_each([SYSCALL + code for code in X86.values()])).output == "all tried\n"


@pytest.mark.skipif(
    platform.machine() not in seccomp.supported_machines(), reason="there is no filter for this machine"
)
def test_calls_that_are_denied_are_denied(box):
    # An engine knows the calls by the names that its library knows: this one is younger than many.
    denied = {name: number for name, number in seccomp.DENIED[platform.machine()].items() if name != "setxattrat"}
    loop = f"for name, number in {denied!r}.items():\n    if call(number, 0, 0, 0, 0, 0, 0) not in (1, 38, 95): print(name)"
    assert python(box, f"{SYSCALL}{loop}\n").output == ""


def test_cannot_connect_to_anything(box):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        name = f"\0dicast-docker-{os.getpid()}"
        abstract.bind(name)
        abstract.listen()
        attempts = [
            f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2); print('ESCAPED')",
            "import socket; socket.create_connection(('192.0.2.1', 53), 2); print('ESCAPED')",
            f"import socket; socket.socket(socket.AF_UNIX).connect({name!r}); print('ESCAPED')",
            *(f"import socket; socket.socket({family}, {kind}); print('ESCAPED')" for family, kind in SOCKETS),
        ]
        assert python(box, try_each(attempts)).output == "all tried\n"


SOCKETS = [(40, 1), (17, 3), (38, 5), (2, 3), (31, 3), (9, 2), (40 + 2**31, 1)]


LIMITED_BOMBS = {name: bomb for name, bomb in BOMBS.items() if name != "terminals"}
"""Pseudo-terminals of a container are counted by nobody; docs/how-to/sandboxes.md says so."""


@pytest.mark.parametrize(("limit", "code"), LIMITED_BOMBS.values(), ids=LIMITED_BOMBS)
def test_a_bomb_strikes_its_limit_in_time(box, limit, code):
    limits = attrs.evolve(SMALL, wall=3 if limit == "wall" else 30, cpu=2 if limit == "cpu" else 30)
    execution = python(box, code, limits=limits)
    # Names of files are the kernel's memory, which control groups count.
    assert execution.limit in (limit, "memory" if limit == "disk" else limit), execution.output[-500:]
    assert execution.exit != 0
    assert len(execution.output) < MB
    assert execution.seconds < 31


def test_killing_all_that_it_can_ends_the_candidate_alone(box):
    execution = python(box, "import os\nfor p in (1, os.getppid(), -1):\n  os.kill(p, 9)\nprint('ESCAPED')")
    assert execution.exit == 1
    assert "ESCAPED" not in execution.output


def test_orphans_that_have_ended_are_no_processes(box):
    code = "import os\nfor _ in range(200):\n  if not os.fork(): os.fork() or os._exit(0); os._exit(0)\n  os.wait()"
    assert python(box, code).limit is None


@pytest.mark.parametrize("end", ["exit 0", "sleep 60"])
def test_a_detached_child_does_not_outlive_the_program(box, end):
    execution = run(box, "sh", "-c", f"setsid sleep 60 & {end}", limits=attrs.evolve(SMALL, wall=1))
    assert execution.limit is not None or end == "exit 0"


# When dicast ends first

HANGING = "kill -STOP -1; setsid sleep 60 & sleep 60"
PROGRAM = """
import asyncio, sys
from dicast import Program
from dicast_sandbox import Docker
from dicast_sandbox.backends.profiles import limits
asyncio.run(Docker(sys.argv[1]).execute(Program(("sh", "-c", sys.argv[2]), limits("small"))))
"""


@pytest.mark.parametrize("moment", ["starting", "running"])
def test_killing_dicast_leaves_no_container(image_name, moment):
    started = subprocess.Popen([sys.executable, "-c", PROGRAM, image_name, HANGING])
    try:
        wait_for(containers)
        if moment == "running":
            wait_for(lambda: b"sleep 60" in docker("top", containers()[0]).stdout)
        started.send_signal(signal.SIGKILL)
        wait_for(lambda: not containers())
    finally:
        started.kill()
        started.wait()


@pytest.mark.parametrize("seconds", [0.05, 0.3, 2])
def test_cancelling_leaves_no_container(box, seconds):
    async def cancelled() -> None:
        task = asyncio.create_task(box.execute(Program(("sh", "-c", HANGING), SMALL)))
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(cancelled())
    assert containers() == []


def test_a_container_that_somebody_ends_is_no_score(box):
    async def killed() -> Execution | Failure:
        task = asyncio.create_task(box.execute(Program(("sleep", "60"), attrs.evolve(SMALL, wall=30))))
        await asyncio.to_thread(wait_for, lambda: b"sleep" in docker("top", *containers()[:1]).stdout)
        docker("kill", *containers())
        return await task

    answer = asyncio.run(killed())
    assert isinstance(answer, Failure)
    assert answer.kind == "crashed"
    assert containers() == []


def test_an_image_without_tools_is_refused(image_name):
    empty = f"{image_name}-empty"
    docker("import", "-", empty, input=packed({"nothing": b""}))
    try:
        with pytest.raises(ConfigError, match=f"cannot make a container of '{empty}'.*/bin/sh"):
            Docker(empty).check()
    finally:
        docker("rmi", empty)


def test_a_missing_image_is_not_downloaded(image_name):
    with pytest.raises(ConfigError, match=r"docker pull dicast-nobody\.invalid/x"):
        Docker("dicast-nobody.invalid/x").check()


# Without an engine: a client that imitates one

COUNTS = "printf 'ready\\nmemory oom_kill 0\\nprocesses max 0\\ncpu usage_usec 5\\nend 1\\n'"
SPEAKS = {"version": "echo 28", "image": "echo null", "run": COUNTS}


@pytest.fixture
def client(tmp_path, monkeypatch):
    def speaking(**commands: str) -> Docker:
        cases = "".join(f"{name}) {code} ;;\n" for name, code in {**SPEAKS, **commands}.items())
        (tmp_path / "docker").write_text(f'#!/bin/sh\ncase "$1" in\n{cases}esac\n')
        (tmp_path / "docker").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        return Docker(str(tmp_path))  # an image of its own, because results of checks are cached

    return speaking


def test_an_engine_that_makes_containers_and_counts_is_taken(client):
    client().check()


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ({"version": "echo 'Cannot connect to the Docker daemon' >&2; exit 1"}, "no engine answers.*Cannot connect.*DOCKER_HOST.*another backend"),
        ({"image": "echo 'No such image' >&2; exit 1"}, "has no image.*No such image.*docker pull /.*another backend"),
        ({"image": "echo '{\"/data\":{}}'"}, "declares volumes.*/data.*another image"),
        ({"run": "echo 'unknown flag: --cgroupns' >&2; exit 125"}, "cannot make a container.*unknown flag.*another backend"),
        ({"run": "printf 'ready\\nend 1\\n'"}, "enforces no limits on memory and processes.*another backend"),
    ],
    ids=["no engine", "no image", "volumes", "no container", "no limits"],
)  # fmt: skip
def test_what_is_missing_is_said(client, commands, message):
    with pytest.raises(ConfigError, match=message):
        client(**commands).check()


def test_a_missing_client_is_said(client, tmp_path):
    box = client()
    (tmp_path / "docker").unlink()
    with pytest.raises(ConfigError, match=r"docker is not installed; apt install docker\.io.*another backend"):
        box.check()


def test_a_metric_finds_it_where_the_pipeline_is_read(client, tmp_path):
    client(image="echo 'No such image' >&2; exit 1")
    command = {"command": "true", "backend": {"sandbox/docker": {"image": str(tmp_path)}}}
    with pytest.raises(ConfigError, match="docker pull"):
        dicast.run(pipeline(tmp_path, [{"id": "1", "output": ""}], metrics=[{"sandbox/command": command}]))


def test_an_engine_that_breaks_down_is_no_score(client):
    answer = asyncio.run(client(run="echo 'no space left on device' >&2; exit 125").execute(Program(("true",), SMALL)))
    assert isinstance(answer, Failure)
    assert "no space left" in answer.message
    assert answer.retryable


def test_the_client_gets_the_address_of_the_engine(tmp_path, monkeypatch):
    (tmp_path / "docker").write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\nshift; shift; exec docker.real "$@"\n')
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="no engine answers"):
        Docker(str(tmp_path), host="ssh://far").check()
    assert (tmp_path / "asked").read_text().startswith("--host ssh://far version")
