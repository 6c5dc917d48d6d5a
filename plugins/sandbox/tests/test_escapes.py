"""Attempts of a program against its sandbox. An attempt prints ESCAPED if it succeeds, and none may."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import time

import attrs
import pytest
from boxes import MB, SMALL, needs_bubblewrap, python, run

from dicast_sandbox.backends import seccomp

pytestmark = needs_bubblewrap

SYSCALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) >= 0: print("ESCAPED")
    return ctypes.get_errno()
"""

READS = {
    "the password hashes": "/etc/shadow",
    "the host's accounts": "/etc/group-",
    "the home of root": "/root",
    "the homes of users": "/home",
    "the host's temporary files": "/var/tmp",
    "logs": "/var/log",
    "docker's socket": "/var/run/docker.sock",
    "the message bus": "/run/dbus",
    "devices by sysfs": "/sys/class",
    "the host's own processes by sysfs": "/sys/fs/cgroup",
    "the machine's id": "/etc/machine-id",
    "ssh's host keys": "/etc/ssh",
    "kernel memory": "/dev/mem",
    "disks": "/dev/sda",
    "the first disk of a VM": "/dev/vda",
    "FUSE": "/dev/fuse",
    "KVM": "/dev/kvm",
    "this repository": os.path.dirname(os.path.abspath(__file__)),
    "the directory that dicast runs in": os.getcwd(),
    "the root of the first process": "/proc/1/root/root",
    "the memory of the first process": "/proc/1/mem",
    "the kernel's core": "/proc/kcore",
}

WRITES = [
    "/usr/bin/x",
    "/etc/x",
    "/x",
    "/dev/x",
    "/proc/sys/kernel/hostname",
    "/proc/sysrq-trigger",
    "/lib/x",
    "/etc/passwd",
]


@pytest.mark.parametrize("path", READS.values(), ids=READS)
def test_cannot_read(path):
    code = f"import os; p={path!r}; print('ESCAPED', os.listdir(p) if os.path.isdir(p) else open(p,'rb').read(1))"
    assert "ESCAPED" not in python(code).output


@pytest.mark.parametrize("path", WRITES)
def test_cannot_write(path):
    assert "ESCAPED" not in python(f"open({path!r}, 'a').write('h'); print('ESCAPED')").output


def test_cannot_connect_to_the_hosts_loopback():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2); print('ESCAPED')"
        assert "ESCAPED" not in python(code).output


def test_cannot_connect_to_the_network():
    # 192.0.2.1 has no host: the test needs only the missing route.
    execution = python("import socket; socket.create_connection(('192.0.2.1', 53), 2); print('ESCAPED')")
    assert "unreachable" in execution.output


def test_cannot_connect_to_an_abstract_socket_of_the_host():
    with socket.socket(socket.AF_UNIX) as server:
        name = f"\0dicast-test-{os.getpid()}"
        server.bind(name)
        server.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r}); print('ESCAPED')"
        assert "ESCAPED" not in python(code).output


@pytest.mark.parametrize(
    ("family", "kind"),
    [(40, 1), (17, 3), (38, 5), (2, 3), (31, 3), (9, 2)],
    ids=["vsock", "packet", "alg", "raw", "bluetooth", "x25"],
)
def test_cannot_make_a_socket_that_reaches_further(family, kind):
    assert "ESCAPED" not in python(f"import socket; socket.socket({family}, {kind}); print('ESCAPED')").output


@pytest.mark.skipif(
    platform.machine() not in seccomp.supported_machines(), reason="there is no filter for this machine"
)
def test_calls_that_are_denied_are_denied():
    denied = seccomp.DENIED[platform.machine()]
    code = f"for name, number in {denied!r}.items():\n    if call(number, 0, 0, 0, 0, 0, 0) not in (1, 38, 95): print(name)\n"
    assert python(SYSCALL + code).output == ""


X86 = {
    "trace its parent": "call(101, 16, os.getppid(), 0, 0)",
    "make a user namespace": "call(272, 0x10000000)",
    "make a user namespace by clone": "call(56, 0x10000000 | 17, 0, 0, 0, 0)",
    "make a mount namespace by clone": "call(56, 0x20000 | 17, 0, 0, 0, 0)",
    "make a namespace by clone3": "call(435, ctypes.create_string_buffer(88), 88)",
    "use the calls of x32": "call(0x40000000 | 39)",
    "enter the namespace of its parent": "call(308, os.open('/proc/1/ns/user', 0), 0)",
    "set up asynchronous input": "call(206, 1, ctypes.byref(ctypes.c_ulong(0)))",
    "set up io_uring": "call(425, 8, ctypes.create_string_buffer(120))",
    "add a key": "call(248, b'user', b'k', b'v', 1, -3)",
    "read a keyring": "call(250, 0, -4, 1)",
    "mount": "call(165, b'none', b'/tmp', b'tmpfs', 0, 0)",
    "mount by the new calls": "call(430, b'tmpfs', 0)",
    "unmount": "call(166, b'/proc', 2)",
    "make a device": "call(133, b'/tmp/sda', 0o60666, 0x800)",
    "become root": "call(105, 0)",
    "become root's group": "call(106, 0)",
    "take capabilities": "call(126, ctypes.byref((ctypes.c_uint * 2)(0x20080522, 0)), ctypes.byref((ctypes.c_uint * 6)(*[0xffffffff] * 6)))",
    "change its root": "call(161, b'/tmp')",
    "load a program into the kernel": "call(321, 5, ctypes.create_string_buffer(128), 128)",
    "read another process's memory": "call(310, 1, 0, 0, 0, 0, 0)",
    "use more CPUs": "call(203, 0, 128, b'\\xff' * 128)",
    "raise its limit of processes": "call(302, 0, 6, ctypes.byref((ctypes.c_ulong * 2)(10**6, 10**6)), 0)",
    "raise its limit of memory": "call(302, 0, 2, ctypes.byref((ctypes.c_ulong * 2)(2**40, 2**40)), 0)",
    "rename the host": "call(170, b'x', 1)",
    "read the kernel's log": "call(103, 3, ctypes.create_string_buffer(100), 100)",
    "open a file by its handle": "call(304, -100, ctypes.create_string_buffer(100), 0)",
    "make memory that no limit counts": "call(319, b'x', 0)",
    "type into its terminal": "call(16, 0, 0x5412, b'x')",
    "set the clock": "call(227, 0, ctypes.create_string_buffer(16))",
    "restart the machine": "call(169, 0xfee1dead, 672274793, 0x1234567, 0)",
    "load a module": "call(313, 0, b'', 0)",
}  # fmt: skip


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86_64")
@pytest.mark.parametrize("code", X86.values(), ids=X86)
def test_cannot(code):
    assert "ESCAPED" not in python(SYSCALL + code).output


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not shutil.which("gcc", path="/usr/bin"), reason="needs gcc on x86_64"
)
def test_calls_of_the_old_architecture_end_the_program():
    source = b'#include <stdio.h>\nint main(){int r; __asm__ volatile("int $0x80":"=a"(r):"a"(20)); puts("ESCAPED"); return r;}'
    execution = run("sh", "-c", "gcc -o a a.c && ./a", files={"a.c": source})
    assert execution.exit == 128 + 31, execution
    assert "ESCAPED" not in execution.output


def test_a_terminal_of_its_own_cannot_be_typed_into():
    code = "import os, pty, fcntl; a, b = pty.openpty(); fcntl.ioctl(b, 0x5412, b'x'); print('ESCAPED')"
    assert "ESCAPED" not in python(code).output


def test_a_setuid_program_of_its_own_gives_no_rights():
    code = "cp /usr/bin/id id && chmod u+s,g+s id && ./id -u; /usr/bin/su -c 'echo ESCAPED' </dev/null"
    execution = run("sh", "-c", code)
    assert "ESCAPED" not in execution.output
    assert execution.output.splitlines()[0] == "1000"


def test_the_environment_of_dicast_is_not_to_be_seen(monkeypatch):
    monkeypatch.setenv("A_SECRET_OF_THE_HOST", "hunter2")
    code = "cat /proc/*/environ /proc/*/cmdline; env"
    assert "hunter2" not in run("sh", "-c", code).output


def test_no_process_of_the_host_is_to_be_seen():
    code = "import os; print([p for p in os.listdir('/proc') if p.isdigit() and int(p) > 20])"
    assert python(code).output == "[]\n"


def test_nothing_is_handed_down_but_three_descriptors():
    assert (
        python(
            "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:3], len(os.listdir('/proc/self/fd')))"
        ).output
        == "[0, 1, 2] 4\n"
    )


def test_killing_the_parents_ends_the_candidate_alone():
    started = time.monotonic()
    execution = python("import os, signal\nfor p in (1, os.getppid(), -1):\n  os.kill(p, 9)\nprint('ESCAPED')")
    assert execution.exit != 0 or "ESCAPED" in execution.output  # it may only have killed itself
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("code", ["symlink", "link"])
def test_a_link_out_of_the_workspace_leads_nowhere(code):
    execution = python(f"import os; os.{code}('/etc/shadow', 'report')", collect="report")
    assert execution.collected is None


def test_a_report_that_is_a_link_is_read_inside():
    execution = python("import os; os.symlink('/etc/passwd', 'report')", collect="report")
    assert execution.collected == b"sandbox:x:1000:1000::/tmp/home:/bin/sh\n"


def test_a_socket_cannot_be_made_to_hold_more():
    code = (
        "import socket\na, b = socket.socketpair()\nbefore = [a.getsockopt(1, n) for n in (7, 8)]\n"
        "for n in (7, 8): a.setsockopt(1, n, 1 << 22)\nif [a.getsockopt(1, n) for n in (7, 8)] != before: print('ESCAPED')\n"
        "a.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)\nprint(a.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))\n"
    )
    assert python(code).output == "1\n"


def test_nothing_can_be_stored_apart_from_a_files_content():
    execution = python("import os\nopen('x', 'w')\nos.setxattr('x', 'user.x', bytes(60000))\nprint('ESCAPED')")
    assert "Operation not supported" in execution.output


# What takes without end


BOMBS = {
    "forks": ("processes", "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"),
    "threads": ("processes", "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"),
    "memory": ("memory", "x = []\nwhile True: x.append(bytearray(1 << 20))"),
    "memory of many": ("memory", "import os, time\nfor _ in range(5): os.fork()\nx = bytearray(64 << 20)\ntime.sleep(60)"),
    "page tables": ("memory", ("import ctypes\nm = ctypes.CDLL(None).mmap\nm.restype = ctypes.c_void_p\n"
        "m.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]\np = m(None, 1 << 42, 1, 0x4022, -1, 0)\n"
        "for n in range(1 << 21): ctypes.string_at(p + (n << 21), 1)")),
    "sockets": ("memory", ("import socket, time\nkeep = []\nwhile True:\n  try: keep += socket.socketpair()\n  except OSError: break\n"
        "for s in keep:\n  s.setblocking(False)\n  s.setsockopt(1, 7, 1 << 30)\n  try:\n    while True: s.send(bytes(1 << 16))\n"
        "  except OSError: pass\ntime.sleep(60)")),
    "sockets that nobody accepts": ("memory", ("import socket\nkeep = []\nwhile True:\n  a = socket.socket(socket.AF_UNIX); a.bind(f'\\0{len(keep)}')\n"
        "  a.listen(4096); keep.append(a)\n  for _ in range(4096):\n    b = socket.socket(socket.AF_UNIX); b.setblocking(False)\n    b.connect(a.getsockname())\n"
        "    try:\n      while True: b.send(bytes(1 << 16))\n    except OSError: pass")),
    "terminals": ("processes", "import os, time\nfor _ in range(500): os.open('/dev/ptmx', os.O_RDWR)\ntime.sleep(60)"),
    "names of files": ("disk", "import os\nfor n in range(10 ** 7): os.close(os.open(str(n), os.O_CREAT | os.O_WRONLY))"),
    "names of one file": ("disk", "import os\nopen('x', 'w')\nfor n in range(10 ** 7): os.link('x', str(n))"),
    "names of files in /dev/shm": ("disk", "import os\nfor n in range(10 ** 7): os.mkdir(f'/dev/shm/{n}')"),
    "shared memory": ("memory", "import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1"),
    "files": ("disk", "for n in range(1000): open(str(n), 'wb').write(bytes(8 << 20))"),
    "files in /dev/shm": ("disk", "for n in range(1000): open(f'/dev/shm/{n}', 'wb').write(bytes(8 << 20))"),
    "a large file": ("file_size", "f = open('x', 'wb')\nwhile True: f.write(bytes(1 << 20))"),
    "output": ("output", "while True: print('y' * 100000)"),
    "complaints": ("output", "import sys\nwhile True: sys.stderr.write('y' * 100000)"),
    "time": ("wall", "import time; time.sleep(600)"),
    "time, with signals ignored": ("wall", "import signal, time\nfor n in (1, 2, 3, 15, 24): signal.signal(n, signal.SIG_IGN)\ntime.sleep(600)"),
    "CPU time": ("cpu", "import os\nos.fork()\nos.fork()\nwhile True: pass"),
    "time after closing its output": ("wall", "import os, time\nos.close(1); os.close(2); time.sleep(600)"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "code"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_strikes_its_limit_in_time(limit, code):
    limits = attrs.evolve(SMALL, wall=3 if limit == "wall" else 200, cpu=2 if limit == "cpu" else 200)
    started = time.monotonic()
    execution = python(code, limits=limits)
    assert execution.limit == limit, execution.output[-500:]
    assert execution.exit != 0
    assert len(execution.output) < MB
    assert time.monotonic() - started < 190


DETACHED = {
    "a child in the background": "sleep 60 &",
    "a session of its own": "setsid sleep 60 &",
    "a child of a child": "(setsid sh -c 'sleep 60 & exit' &)",
    "one that ignores the hang-up": "nohup sleep 60 >/dev/null 2>&1 &",
}


@pytest.mark.parametrize("code", DETACHED.values(), ids=DETACHED)
@pytest.mark.parametrize("end", ["exit 0", "sleep 60"])
def test_a_detached_child_does_not_outlive_the_program(code, end):
    execution = run("sh", "-c", f"{code}\n{end}", limits=attrs.evolve(SMALL, wall=1))
    assert execution.limit == (None if end == "exit 0" else "wall")
