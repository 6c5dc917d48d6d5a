"""Take away what another system lacks, from dicast's modules alone: the standard library of this system needs it.

Python imports this module at its start where the folder is on PYTHONPATH; ``DICAST_TEST_SYSTEM`` names the system.
``import os`` in a module of dicast then gives a module without the missing names. Windows' own functions are not imitated.
"""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from types import ModuleType

POSIX_ONLY = {
    "os": """
        fork forkpty register_at_fork killpg setsid getpgid setpgid getpgrp setpgrp getsid geteuid getuid getgid getegid setuid setgid
        getgroups initgroups sched_getaffinity sched_setaffinity sched_yield pidfd_open pread pwrite preadv pwritev memfd_create
        MFD_CLOEXEC MFD_ALLOW_SEALING statvfs fstatvfs mkfifo mknod fchown chown lchown chroot fchdir fdatasync posix_fadvise
        posix_fallocate posix_spawn posix_spawnp sendfile splice nice getpriority setpriority uname sysconf confstr getloadavg wait wait3
        wait4 waitid WNOHANG WIFSIGNALED WIFEXITED WEXITSTATUS WTERMSIG O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_SYNC O_DSYNC
        O_ASYNC O_NOCTTY O_PATH O_TMPFILE ttyname openpty ctermid tcgetpgrp tcsetpgrp sync getxattr setxattr listxattr pipe2 readv writev
        lockf eventfd unshare setns
    """,
    "signal": """
        SIGALRM SIGKILL SIGHUP SIGSTOP SIGCONT SIGQUIT SIGPIPE SIGCHLD SIGUSR1 SIGUSR2 SIGIO SIGWINCH SIGXCPU SIGXFSZ SIGVTALRM SIGPROF
        SIGTSTP SIGTTIN SIGTTOU SIGTRAP SIGURG SIGBUS SIGSYS SIGRTMIN SIGRTMAX setitimer getitimer alarm pause pthread_sigmask pthread_kill
        sigwait sigwaitinfo sigtimedwait sigpending siginterrupt ITIMER_REAL ITIMER_VIRTUAL ITIMER_PROF pidfd_send_signal
    """,
    "socket": "AF_UNIX SO_REUSEPORT SO_PEERCRED send_fds recv_fds CMSG_LEN SCM_RIGHTS",
    "mmap": "MAP_PRIVATE MAP_ANONYMOUS MAP_SHARED PROT_READ PROT_WRITE MADV_HUGEPAGE",
    "select": "poll epoll kqueue",
}
LINUX_ONLY = {
    "os": """
        sched_getaffinity sched_setaffinity pidfd_open memfd_create MFD_CLOEXEC MFD_ALLOW_SEALING fdatasync posix_fadvise posix_fallocate
        splice O_PATH O_TMPFILE O_DIRECT getxattr setxattr listxattr eventfd unshare setns pipe2 copy_file_range
    """,
    "signal": "SIGRTMIN SIGRTMAX sigwaitinfo sigtimedwait pidfd_send_signal",
    "socket": "SO_PEERCRED",
    "mmap": "MADV_HUGEPAGE",
    "select": "epoll",
    "fcntl": "F_SETSIG F_GETSIG F_ADD_SEALS F_SEAL_GROW F_SEAL_SHRINK F_SEAL_SEAL",
}
SYSTEMS = {
    "windows": (
        "nt",
        "win32",
        "Windows",
        POSIX_ONLY,
        {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix"},
    ),
    "macos": ("posix", "darwin", "Darwin", LINUX_ONLY, set()),
}
"""``os.name``, ``sys.platform``, ``platform.system()``, the names that modules lack, and the modules that are missing."""


class Without(ModuleType):
    """A module without some names, and with others of another value."""

    def __init__(self, module, missing=(), values=None):
        super().__init__(module.__name__)
        object.__setattr__(self, "_real", (module, frozenset(missing), values or {}))

    def __getattribute__(self, name):
        module, missing, values = object.__getattribute__(self, "_real")
        if name in values:
            return values[name]
        if name in missing:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return getattr(module, name)

    def __setattr__(self, name, value):
        setattr(object.__getattribute__(self, "_real")[0], name, value)

    def __delattr__(self, name):
        delattr(object.__getattribute__(self, "_real")[0], name)


class Imports:
    """Replaces ``__import__``: modules of dicast import what :data:`SYSTEMS` leaves."""

    def __init__(self, system):
        self._real = builtins.__import__
        name, platform, words, missing, self._absent = SYSTEMS[system]
        self._values = {"os": {"name": name}, "sys": {"platform": platform}, "platform": {"system": lambda: words}}
        self._missing = {module: names.split() for module, names in missing.items()}
        self._made = {}

    def __call__(self, name, globals=None, locals=None, fromlist=(), level=0):
        importer = (globals or {}).get("__name__") or ""
        if level or importer.partition(".")[0].partition("_")[0] != "dicast":
            return self._real(name, globals, locals, fromlist, level)
        if name in self._absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        module = self._real(name, globals, locals, fromlist, level)
        if name in self._missing or name in self._values:
            if name not in self._made:
                self._made[name] = Without(module, self._missing.get(name, ()), self._values.get(name))
            return self._made[name]
        return module


def refuse_posix_options(start):
    """Return ``Popen.__init__`` as Windows has it: it refuses options of POSIX."""

    def refusing(self, *words, pass_fds=(), preexec_fn=None, **options):
        if pass_fds or preexec_fn:
            raise ValueError("pass_fds and preexec_fn are not supported on Windows platforms")
        start(self, *words, **options)

    return refusing


if system := os.environ.get("DICAST_TEST_SYSTEM"):
    builtins.__import__ = Imports(system)
    if system == "windows":
        subprocess.Popen.__init__ = refuse_posix_options(subprocess.Popen.__init__)
    sys.modules.setdefault("sitecustomize", sys.modules[__name__])
