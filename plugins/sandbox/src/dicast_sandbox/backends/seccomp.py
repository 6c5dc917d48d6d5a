"""Filter of system calls for sandboxed programs: as a BPF program for ``bwrap --seccomp``, as JSON for container engines.

The filter is small and constant, so it is assembled here: libseccomp and its bindings would be one more system library for a list of
numbers. All calls are allowed except the listed ones, so programs of any language run. The denied calls have broken
kernels, reach out of namespaces, or undo a limit. The kernel caches which calls are always allowed, so these cost nothing.
"""

from __future__ import annotations

import errno
import json
import platform
import struct
from collections.abc import Iterator, Mapping
from functools import cache

DENIED: Mapping[str, Mapping[str, int]] = {
    "x86_64": dict(  # noqa: C408  # a table
        ptrace=101, process_vm_readv=310, process_vm_writev=311, kcmp=312, pidfd_getfd=438, process_madvise=440,
        mount=165, umount2=166, pivot_root=155, chroot=161, move_mount=429, open_tree=428, fsopen=430, fsmount=432,
        fsconfig=431, fspick=433, mount_setattr=442, unshare=272, setns=308, keyctl=250, add_key=248, request_key=249,
        io_uring_setup=425, io_uring_enter=426, io_uring_register=427, bpf=321, perf_event_open=298, userfaultfd=323,
        memfd_create=319, memfd_secret=447, shmget=29, msgget=68, semget=64, setxattr=188, lsetxattr=189, fsetxattr=190,
        setxattrat=463, kexec_load=246, kexec_file_load=320, init_module=175,
        finit_module=313, delete_module=176, reboot=169, swapon=167, swapoff=168, acct=163, quotactl=179,
        quotactl_fd=443, settimeofday=164, clock_settime=227, adjtimex=159, clock_adjtime=305, syslog=103,
        lookup_dcookie=212, name_to_handle_at=303, open_by_handle_at=304, iopl=172, ioperm=173, modify_ldt=154,
        mknod=133, mknodat=259, sched_setaffinity=203, fanotify_init=300, vhangup=153, uselib=134, nfsservctl=180,
        migrate_pages=256, move_pages=279, io_setup=206,
    ),
    "aarch64": dict(  # noqa: C408  # as above
        ptrace=117, process_vm_readv=270, process_vm_writev=271, kcmp=272, pidfd_getfd=438, process_madvise=440,
        mount=40, umount2=39, pivot_root=41, chroot=51, move_mount=429, open_tree=428, fsopen=430, fsmount=432,
        fsconfig=431, fspick=433, mount_setattr=442, unshare=97, setns=268, keyctl=219, add_key=217, request_key=218,
        io_uring_setup=425, io_uring_enter=426, io_uring_register=427, bpf=280, perf_event_open=241, userfaultfd=282,
        memfd_create=279, memfd_secret=447, shmget=194, msgget=186, semget=190, setxattr=5, lsetxattr=6, fsetxattr=7,
        setxattrat=463, kexec_load=104, kexec_file_load=294,
        init_module=105, finit_module=273, delete_module=106, reboot=142, swapon=224, swapoff=225, acct=89, quotactl=60,
        quotactl_fd=443, settimeofday=170, clock_settime=112, adjtimex=171, clock_adjtime=266, syslog=116,
        lookup_dcookie=18, name_to_handle_at=264, open_by_handle_at=265, mknodat=33, sched_setaffinity=122,
        fanotify_init=262, vhangup=58, nfsservctl=42, migrate_pages=238, move_pages=239, io_setup=0,
    ),
}  # fmt: skip
"""Numbers of the denied calls by architecture, from its ``asm/unistd.h``."""

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_INSPECTED = {
    "x86_64": {"clone": 56, "clone3": 435, "ioctl": 16, "socket": 41, "setsockopt": 54},
    "aarch64": {"clone": 220, "clone3": 435, "ioctl": 29, "socket": 198, "setsockopt": 208},
}
_ABSENT = ("io_setup", "io_uring_setup", "memfd_create", "memfd_secret", "userfaultfd", "shmget", "semget")
"""Calls denied as if the kernel did not have them, so that programs use alternatives."""

_UNSUPPORTED = ("setxattr", "lsetxattr", "fsetxattr", "setxattrat")
"""Calls denied as if the file system did not support them: their data is in the kernel's memory, and in no file's size."""

_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW: USER, PID, NET, IPC, UTS, CGROUP, NS and TIME
_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: typing into a terminal
_SOCKETS = 1  # SOL_SOCKET, the level
_BUFFERS = (7, 8)  # SO_SNDBUF, SO_RCVBUF: the kernel's memory that a socket may hold
_FAMILIES = (1, 2, 10, 16)  # unix, inet, inet6, netlink: the families that a network namespace isolates

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_KILL, _ALLOW, _ERROR = 0x80000000, 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ENOSYS, _EOPNOTSUPP, _EAFNOSUPPORT = 38, 95, 97  # Linux's numbers: an engine's client may run on another system


def supported_machines() -> tuple[str, ...]:
    """Return the architectures that have a filter."""
    return tuple(DENIED)


@cache
def assemble(machine: str | None = None) -> bytes:
    """Return the filter for *machine*, by default this one, as an array of ``struct sock_filter``."""
    machine = machine or platform.machine()
    code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for name, number in DENIED[machine].items():
        code += _deny(number, _error(name))
    code += _argument_rules(_INSPECTED[machine])
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


@cache
def engine_profile() -> bytes:
    """Return the filter as JSON for a container engine, for any machine: the engine knows the calls by name.

    Programs may set the buffer sizes of sockets: an engine counts the buffers as memory of the container.
    """
    names = {name for table in DENIED.values() for name in table}
    bits = [1 << bit for bit in range(32) if _NEW_NAMESPACES >> bit & 1]
    rules = [
        _rule(sorted(names.difference(_ABSENT, _UNSUPPORTED))),
        _rule([*_ABSENT, "clone3"], _ENOSYS),
        _rule(list(_UNSUPPORTED), _EOPNOTSUPP),
        *(_rule(["clone"], errno.EPERM, 0, "SCMP_CMP_MASKED_EQ", bit, bit) for bit in bits),
        *(_rule(["ioctl"], errno.EPERM, 1, "SCMP_CMP_MASKED_EQ", 2**32 - 1, request) for request in _TERMINAL),
        *(
            _rule(["socket"], _EAFNOSUPPORT, 0, "SCMP_CMP_EQ", family)
            for family in range(max(_FAMILIES))
            if family not in _FAMILIES
        ),
        _rule(["socket"], _EAFNOSUPPORT, 0, "SCMP_CMP_GT", max(_FAMILIES)),
    ]
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules}).encode()


def _rule(
    names: list[str],
    error: int = errno.EPERM,
    index: int | None = None,
    compare: str = "",
    value: int = 0,
    two: int = 0,
) -> dict[str, object]:
    """Return a rule that denies the calls *names*; with *index*, only if the argument there compares to *value*."""
    conditions = [] if index is None else [{"index": index, "value": value, "valueTwo": two, "op": compare}]
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": error, "args": conditions}


def _error(name: str) -> int:
    if name in _ABSENT:
        return errno.ENOSYS
    return errno.EOPNOTSUPP if name in _UNSUPPORTED else errno.EPERM


Instruction = tuple[int, int, int, int]


def _deny(number: int, error: int) -> list[Instruction]:
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | error)]


def _argument_rules(calls: Mapping[str, int]) -> Iterator[Instruction]:
    """Yield the instructions for calls that depend on an argument. Each part returns for its own call, and leaves the state unchanged for other calls."""
    yield from _deny(calls["clone3"], errno.ENOSYS)  # its flags are in memory; the C library falls back to clone
    yield from _argument(calls["clone"], 0, [(_ANY_BIT, 0, 1, _NEW_NAMESPACES), (_RETURN, 0, 0, _ERROR | errno.EPERM)])
    typing = [part for request in _TERMINAL for part in _deny(request, errno.EPERM)]
    yield from _argument(calls["ioctl"], 1, typing)
    sizes = [part for option in _BUFFERS for part in _deny(option, 0)]  # it succeeds without an effect
    level = [(_EQUAL, 0, len(sizes) + 1, _SOCKETS), (_LOAD, 0, 0, _ARGUMENTS + 8 * 2)]
    yield from _argument(calls["setsockopt"], 1, [*level, *sizes])
    families = [part for family in _FAMILIES for part in ((_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW))]
    yield from _argument(calls["socket"], 0, [*families, (_RETURN, 0, 0, _ERROR | errno.EAFNOSUPPORT)])


def _argument(number: int, index: int, code: list[Instruction]) -> Iterator[Instruction]:
    """Yield the instructions for the call *number*: load the low half of its argument *index*, run *code*, allow."""
    yield (_EQUAL, 0, len(code) + 2, number)
    yield (_LOAD, 0, 0, _ARGUMENTS + 8 * index)
    yield from code
    yield (_RETURN, 0, 0, _ALLOW)
