"""Container engine for the tests, and an image of this machine's files."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TOOLS = ("sh", "head", "tar", "mkdir", "cat", "id", "env", "ls", "sleep", "setsid", "kill")
PYTHON = Path("/usr/bin/python3")
_LIBRARY = re.compile(r"(/\S+\.so[.\d]*|/\S*ld-\S+) \(")
_LEFT_OUT = ("test", "ensurepip", "idlelib", "lib2to3", "__pycache__", "dist-packages", "site-packages")


def docker(*words: str, **options) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["docker", *words], capture_output=True, timeout=60, check=False, **options)


def answers() -> bool:
    return shutil.which("docker") is not None and docker("version").returncode == 0


@contextmanager
def engine(folder: Path) -> Iterator[str | None]:
    """Provide the address of an engine: the client's own, or one that is started here if possible; skip the tests without an engine."""
    if answers():
        yield None
        return
    if os.geteuid() != 0 or not (shutil.which("dockerd") and shutil.which("docker")):
        pytest.skip("no container engine answers, and none can be started here (as root: apt install docker.io)")
    host = f"unix://{folder}/socket"
    words = ["dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--host", host]
    words += [part for name in ("data-root", "exec-root", "pidfile") for part in (f"--{name}", str(folder / name))]
    with (folder / "log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as started:
        try:
            end = time.monotonic() + 30
            while docker("--host", host, "version").returncode != 0:
                if started.poll() is not None or time.monotonic() > end:
                    pytest.skip(f"dockerd does not start here: {(folder / 'log').read_text()[-500:]}")
                time.sleep(0.1)
            yield host
        finally:
            started.terminate()


@contextmanager
def image(name: str) -> Iterator[str]:
    """Provide an image of this machine's shell and Python, or the image in DICAST_DOCKER_IMAGE."""
    ready_image = os.environ.get("DICAST_DOCKER_IMAGE")
    if ready_image:
        yield ready_image
        return
    if not PYTHON.exists():
        pytest.skip(f"no image for the tests: there is no {PYTHON} to make one of, and DICAST_DOCKER_IMAGE names none")
    done = docker("import", "-", name, input=rootfs())
    assert done.returncode == 0, done.stderr
    try:
        yield name
    finally:
        docker("rmi", name)


def rootfs() -> bytes:
    programs = [Path(shutil.which(tool, path="/usr/bin") or tool) for tool in TOOLS]
    library = Path("/usr/lib", PYTHON.resolve().name)  # python3.x
    modules = library.glob("lib-dynload/*.so")
    linked = subprocess.run(["ldd", PYTHON, *programs, *modules], capture_output=True, text=True, check=False)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in [*programs, PYTHON, *map(Path, sorted(set(_LIBRARY.findall(linked.stdout))))]:
            archive.add(path.resolve(), str(path), recursive=False)
        archive.add(library, filter=lambda member: None if Path(member.name).name in _LEFT_OUT else member)
        link = tarfile.TarInfo("bin")
        link.type, link.linkname = tarfile.SYMTYPE, "usr/bin"
        archive.addfile(link)
        for name, mode in (("tmp", 0o1777), ("root", 0o700), ("etc", 0o755)):
            member = tarfile.TarInfo(name)
            member.type, member.mode = tarfile.DIRTYPE, mode
            archive.addfile(member)
    return packed.getvalue()
