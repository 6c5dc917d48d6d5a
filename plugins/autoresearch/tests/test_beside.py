"""A user works next to the loop: refs, index, tree and files are exactly as the user left them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from .conftest import DICAST, Child, Repository, have_ended

EDITED = "the scope has uncommitted changes"
"""A loop says so that starts after the user has edited the scope."""

PROPOSES = (
    "time.sleep(.03)\nPath('slow.py').write_text(source(100 - n))\nif n % 3 == 0: Path('slow.py').write_text('x(')"
)


AUTHOR = ("-c", "user.name=u", "-c", "user.email=u@u")


def commit(repository, name):
    repository.commit(name)


def branch(repository, name):
    repository.git("branch", name)


def delete_a_branch(repository, name):
    repository.git("branch", name)
    repository.git("branch", "-D", name)


def tag(repository, name):
    repository.git(*AUTHOR, "tag", "-a", "-m", name, name)


def stash(repository, name):
    repository.write("tracked.txt", name)
    repository.git(*AUTHOR, "stash")


def drop_a_stash(repository, name):
    stash(repository, name)
    repository.git("stash", "drop", "-q")


def work_in_a_worktree(repository, name):
    place = str(repository.root.parent / f"tree-{name}")
    repository.git("worktree", "add", "-q", "-b", f"tree-{name}", place)
    Path(place, "slow.py").write_text(name)
    repository.git("-C", place, *AUTHOR, "commit", "-q", "-a", "-m", name)
    Path(place, "slow.py").write_text("uncommitted")


def remove_a_worktree(repository, name):
    place = str(repository.root.parent / f"gone-{name}")
    repository.git("worktree", "add", "-q", "--detach", place)
    repository.git("worktree", "remove", "--force", place)
    repository.git("worktree", "prune")


def fetch(repository, name):
    remote = str(repository.root.parent / "remote")
    repository.git("-C", remote, *AUTHOR, "commit", "-q", "--allow-empty", "-m", name)
    repository.git("fetch", "-q", remote, f"+main:refs/remotes/origin/{name}", "+main:refs/remotes/origin/main")


def write_an_untracked_file(repository, name):
    repository.write(f"untracked-{name}.txt", name)


def write_an_ignored_file(repository, name):
    repository.write("ignored.bin", name)


def stage(repository, name):
    repository.write("tracked.txt", name)
    repository.git("add", "tracked.txt")


def edit_the_scope(repository, name):
    repository.write("slow.py", repository.git("show", "HEAD:slow.py") + f"# {name}\n")


def switch(repository, name):
    repository.git("checkout", "-q", "-b", f"other-{name}")


def amend(repository, name):
    repository.git(*AUTHOR, "commit", "-q", "--amend", "--allow-empty", "-m", f"amended {name}")


def reset(repository, name):
    repository.commit(name)
    repository.git("reset", "-q", "--hard", "HEAD~1")


def collect_garbage(repository, name):
    repository.git("gc", "-q")


ACTIONS = (
    commit, branch, delete_a_branch, tag, stash, drop_a_stash, work_in_a_worktree, remove_a_worktree, fetch,
    write_an_untracked_file, write_an_ignored_file, stage, edit_the_scope, switch, amend, reset, collect_garbage,
)  # fmt: skip


def begin(repository):
    repository.write("tracked.txt", "tracked")
    repository.write("ignored.bin", "cache")
    repository.write(".gitignore", "ignored.bin\n")
    repository.git("add", "-A")
    repository.commit("more")
    subprocess.run(["git", "clone", "-q", str(repository.root), str(repository.root.parent / "remote")], check=True)
    repository.init()


def start(repository, runs):
    return Child(repository.root, "loop", "--propose", repository.proposer(PROPOSES), "--runs", str(runs))


def check_kept(repository):
    """Check that the kept experiments are exactly the commits of the loop's ref."""
    commits = [entry["commit"] for entry in repository.entries() if entry["status"] == "keep"]
    listed = repository.git("rev-list", "--first-parent", "refs/dicast/loop/cost").split()
    assert [commit for commit in reversed(listed) if commit in commits] == list(dict.fromkeys(commits))
    assert not commits or listed[0] == commits[-1]
    for entry in repository.entries():
        if entry["status"] == "keep":
            assert f", {entry['primary_metric']:g}\n" in repository.git("show", f"{entry['commit']}:slow.py")


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """Return the folder of a file system in memory, if one can be mounted, and a function that sets its free space in kB; None for enough."""
    folder = tmp_path_factory.mktemp("disk")
    words = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(words, capture_output=True, check=False).returncode:
        yield folder, None
        return

    def resize(room):
        while True:
            used = os.statvfs(folder)
            kilobytes = 64 * 1024 if room is None else (used.f_blocks - used.f_bfree) * used.f_frsize // 1024 + room
            words = ["mount", "-o", f"remount,size={kilobytes}k", str(folder)]
            if (
                subprocess.run(words, capture_output=True, check=False).returncode == 0
            ):  # else more was written meanwhile
                return

    yield folder, resize
    subprocess.run(["umount", str(folder)], check=True)


class History:
    """A user who works next to the loop: the user's actions, and the state that the loop may not change."""

    def __init__(self, repository, chance, resize):
        self.repository, self.chance, self.resize = repository, chance, resize
        self.actions = []

    def act(self):
        action = self.chance.choice(ACTIONS)
        self.actions.append(action.__name__)
        action(self.repository, f"n{len(self.actions)}")

    def watch(self, process, seconds, state):
        """Let *process* work for *seconds*; then check that nothing of the user has changed."""
        end = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        assert self.repository.state() == state, self.actions

    def fill_the_disk(self, process, state):
        """Leave a few kB of free space for a while."""
        self.actions.append("full disk")
        self.resize(4 * self.chance.randrange(1, 60))
        try:
            self.watch(process, self.chance.uniform(0.1, 0.5), state)
        finally:
            self.resize(None)

    def live_beside(self, process):
        """Act until *process* ends; kill it at any moment."""
        killed = time.monotonic() + self.chance.uniform(0, 1.5) if self.chance.random() < 0.6 else None
        while process.poll() is None:
            self.act()
            state = self.repository.state()
            if self.resize is not None and self.chance.random() < 0.3:
                self.fill_the_disk(process, state)
            self.watch(process, self.chance.uniform(0, 0.2), state)
            if killed is not None and time.monotonic() > killed and process.poll() is None:
                self.actions.append("kill")
                process.kill()
                process.wait()
        refused = "full disk" in self.actions or EDITED in process.output
        assert process.code in ({0, -9, 2} if refused else {0, -9}), (process.code, process.output, self.actions)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("DICAST_HISTORIES", "10"))))
def test_whatever_a_user_does_beside_the_loop_stays_also_when_it_is_killed(disk, seed, monkeypatch):
    folder, resize = disk
    place = folder / f"history-{seed}"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))  # the checkouts are on the same disk
    repository, chance = Repository(place / "repo"), random.Random(seed)
    begin(repository)
    history = History(repository, chance, resize)
    history.live_beside(start(repository, 3))
    history.act()
    state = repository.state()
    if chance.random() < 0.5:
        history.live_beside(Child(repository.root, "resume"))
        state = repository.state()
    assert Child(repository.root, "resume").wait() == 0, history.actions
    assert repository.state() == state, history.actions
    assert have_ended(str(place)), history.actions
    check_kept(repository)
    repository.git("checkout", "-q", "HEAD", "--", "slow.py")
    state = repository.state()
    assert start(repository, 1).wait() == 0, history.actions
    assert repository.state() == state, history.actions
    check_kept(repository)
    assert not (repository.root / ".auto/state.json").exists()
    assert [path.name for path in place.glob("dicast-*")] == [], history.actions
    shutil.rmtree(place)


KILLS = """#!/bin/sh
case "$*" in
*{call}*)
  echo x >> {count}
  if [ $(wc -l < {count}) -eq {number} ]; then kill -9 $PPID; exit 1; fi
esac
exec {git} "$@"
"""


def with_killer(repository, tmp_path, number, *words, call=""):
    """Run a command that is killed at its call *number* of git, among the calls that fit the pattern *call*; return its exit code."""
    real = shutil.which("git")
    folder, count = tmp_path / "killer", tmp_path / "count"
    folder.mkdir(exist_ok=True)
    count.write_text("")
    (folder / "git").write_text(KILLS.format(call=call, count=count, number=number, git=real))
    (folder / "git").chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return Child(repository.root, *words, PATH=path).wait()


@pytest.mark.slow
def test_a_change_whose_round_was_killed_before_its_ref_moved_is_undone(repository, tmp_path):
    begin(repository)
    repository.loop(PROPOSES, 1)
    entries, tip = repository.entries(), repository.git("rev-parse", "refs/dicast/loop/cost")
    words = ["loop", "--propose", repository.proposer(PROPOSES), "--runs", "1"]
    assert with_killer(repository, tmp_path, 1, *words, call="update-ref*refs/dicast/loop") == -9
    assert "is undone" in str(repository.json("resume"))
    assert repository.entries() == entries
    assert repository.git("rev-parse", "refs/dicast/loop/cost") == tip
    check_kept(repository)
    assert not (repository.root / ".auto/state.json").exists()


@pytest.mark.slow
def test_a_loop_and_its_recovery_that_are_killed_at_any_call_of_git_lose_nothing(repository, tmp_path):
    begin(repository)
    repository.write("tracked.txt", "changed")
    repository.git("add", "tracked.txt")
    repository.write("untracked.txt", "mine")
    repository.loop(PROPOSES, 1)
    state, number = repository.state(), 1
    while True:
        words = ["loop", "--propose", repository.proposer(PROPOSES), "--runs", "1"]
        code = with_killer(repository, tmp_path, number, *words)
        with_killer(repository, tmp_path, 1 + number % 9, "resume")
        repository.json("resume")
        assert repository.state() == state
        check_kept(repository)
        for ref in repository.git("for-each-ref", "--format=%(refname)", "refs/dicast/discarded").split():
            assert repository.git("diff", "--name-only", f"{ref}~1", ref) == "slow.py\n"
        if code != -9:
            break
        number += int(os.environ.get("DICAST_KILL_STEP", "5"))
    assert code == 0


def killed_while_proposing(repository):
    mark = repository.root.parent / "mark"
    code = f"Path('slow.py').write_text(source(80)); Path({str(mark)!r}).write_text('x'); time.sleep(600)"
    command = [*DICAST, "autoresearch", "loop", "--propose", repository.proposer(code)]
    process = subprocess.Popen(command, cwd=repository.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not mark.exists():
        assert process.poll() is None
        time.sleep(0.02)
    return process


@pytest.mark.slow
def test_a_recovery_that_fails_loses_nothing_and_is_done_again(repository, tmp_path, monkeypatch):
    begin(repository)
    process = killed_while_proposing(repository)
    process.kill()
    process.wait()
    repository.write("untracked.txt", "mine")
    repository.write("tracked.txt", "changed")
    state = repository.state()
    git = tmp_path / "bin/git"
    git.parent.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    git.write_text(
        f'#!/bin/sh\ncase " $* " in *" add "*) echo No space left on device >&2; exit 128;; esac\nexec {real} "$@"\n'
    )
    git.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{git.parent}{os.pathsep}{os.environ['PATH']}")
        for _ in range(2):
            done = repository.dicast("resume", code=2)
            assert "No space left on device" in done.err
            assert repository.state() == state
    assert "its change is kept" in repository.json("resume")["recovered"]
    assert ", 80" in repository.git("show", "refs/dicast/discarded/1:slow.py")
    assert repository.state() == state


@pytest.mark.slow
def test_a_second_loop_and_resume_wait_for_nobody_and_disturb_nobody(repository):
    begin(repository)
    process = killed_while_proposing(repository)
    for words in (["loop", "--propose", "true"], ["resume"], ["run"]):
        assert "another dicast autoresearch works in" in repository.dicast(*words, code=2).err
    repository.dicast("status")
    assert process.poll() is None
    process.terminate()
    process.wait()


@pytest.mark.slow
def test_merge_fast_forwards_the_branch_or_prints_the_command(repository):
    begin(repository)
    assert repository.json("merge")["message"].startswith("nothing to merge")
    repository.loop("Path('slow.py').write_text(source(90))", 1)
    repository.write("tracked.txt", "changed")
    before = repository.state()
    done = repository.dicast("merge", code=1)
    assert done.out.endswith("\ngit merge --ff-only refs/dicast/loop/cost\n")
    assert "commit or stash them" in done.out
    assert repository.state() == before
    repository.git("checkout", "-q", "tracked.txt")
    repository.write("untracked.txt", "mine")
    assert repository.json("merge")["merged"]
    assert ", 90" in (repository.root / "slow.py").read_text()
    assert repository.git("status", "--porcelain") == "?? untracked.txt\n"
    repository.commit("user's")
    repository.loop("Path('slow.py').write_text(source(80))", 1)
    repository.commit("user's again")
    done = repository.dicast("merge", code=1)
    assert done.out.endswith("\ngit merge refs/dicast/loop/cost\n")
    assert repository.git("log", "-1", "--format=%s", "refs/dicast/loop/cost~1").strip() == "user's"


@pytest.mark.slow
def test_a_new_session_takes_no_ref_with_commits_that_the_branch_lacks(repository):
    begin(repository)
    repository.loop("Path('slow.py').write_text(source(90))", 1)
    old_tip = repository.git("rev-parse", "refs/dicast/loop/cost")
    repository.init()
    assert repository.loop("Path('slow.py').write_text(source(80))", 1)["baseline"] == 100
    assert repository.git("rev-parse", "refs/dicast/loop/cost") == old_tip
    assert ", 80" in repository.kept_content(ref="refs/dicast/loop/cost-2")


@pytest.mark.parametrize("name", ["a b", "x..y", ".hidden", "é/ü~^:?*[", "n.lock", "@{", "long" * 100])
def test_every_name_of_a_session_has_a_ref(repository, name):
    repository.init("--name", name)
    refs = repository.git("for-each-ref", "--format=%(refname)", "refs/dicast/loop").split()
    assert len(refs) == 1


@pytest.mark.slow
def test_a_change_that_was_kept_by_hand_merges_by_the_printed_command(repository):
    begin(repository)
    words = ["--hypothesis", "h", "--learned", "l", "--next-action-hint", "n"]
    repository.json("run")
    repository.json("log", "--status", "keep", *words)
    repository.write("slow.py", repository.git("show", "HEAD:slow.py").replace("100", "90"))
    repository.json("run")
    repository.json("log", "--status", "keep", *words)
    command = repository.json("merge", code=1)["command"]
    subprocess.run(command, shell=True, cwd=repository.root, check=True, capture_output=True)
    assert repository.git("status", "--porcelain") == ""
    assert repository.git("rev-parse", "HEAD") == repository.git("rev-parse", "refs/dicast/loop/cost")


def test_a_commit_between_run_and_log_is_not_reverted(repository):
    begin(repository)
    words = ["--hypothesis", "h", "--learned", "l", "--next-action-hint", "n"]
    repository.json("run")
    repository.write("tracked.txt", "user's")
    repository.git("add", "tracked.txt")
    repository.commit("user's")
    done = repository.dicast("log", "--status", "keep", *words, code=2)
    assert "measure it again" in done.err
    repository.json("log", "--status", "discard", *words, "--rollback-reason", "r")
    assert repository.git("for-each-ref", "refs/dicast/discarded") == ""


@pytest.mark.slow
def test_a_shallow_clone_has_its_history_in_the_checkout(repository, place):
    begin(repository)
    shallow = repository.root.parent / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{repository.root}", str(shallow)], check=True)
    repository.root = shallow
    repository.init()
    before = repository.state()
    code = (
        "Path('slow.py').write_text(source(90))\n"
        "print('ASI learned=' + subprocess.check_output(['git', 'log', '--format=%s'], text=True).replace('\\n', ' '))"
    )
    repository.loop(code, 1)
    assert repository.entries()[-1]["learned"].startswith("more")
    assert repository.entries()[-1]["status"] == "keep"
    assert repository.state() == before


@pytest.mark.slow
def test_a_session_whose_files_are_committed_works_and_no_index_is_refreshed(repository):
    begin(repository)
    (repository.root / ".git/info/exclude").write_text("")
    repository.git("add", "-A")
    repository.commit("with the session")
    for name in ("slow.py", "tracked.txt", "measure.py"):
        os.utime(repository.root / name, (1, 1))
    before = repository.state()
    repository.loop("Path('slow.py').write_text(source(90))", 1)
    repository.loop("Path('.auto/session.yaml').write_text('x'); Path('slow.py').write_text(source(80))", 1)
    assert "measuring files were changed: .auto/session.yaml" in repository.entries()[-1]["rollback_reason"]
    assert repository.state() == before
    repository.json("run")
    assert repository.state() == before
    assert repository.json("merge")["merged"]
    assert ", 90" in (repository.root / "slow.py").read_text()
