"""A user works beside the loop: refs, index, tree and files are exactly what the user made them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time

import pytest

from .conftest import DICAST, have_ended

PROPOSES = (
    "time.sleep(.05)\nPath('slow.py').write_text(source(100 - n))\nif n % 3 == 0: Path('slow.py').write_text('x(')"
)


def act(repository, chance, number):
    """Do one thing that users do."""
    git, name = repository.git, f"n{number}"
    author = ["-c", "user.name=u", "-c", "user.email=u@u"]
    kind = chance.randrange(10)
    if kind == 0:
        repository.commit(name)
    if kind == 1:
        git("branch", name)
    if kind == 2:
        git("tag", name)
    if kind == 3:
        repository.write("tracked.txt", name)
        git(*author, "stash")
    if kind == 4:
        git("worktree", "add", "-q", "-b", f"tree-{name}", str(repository.root.parent / f"tree-{name}"))
        git("-C", str(repository.root.parent / f"tree-{name}"), *author, "commit", "-q", "--allow-empty", "-m", name)
    if kind == 5:
        git("fetch", "-q", str(repository.root.parent / "remote"), f"main:refs/remotes/origin/{name}")
    if kind == 6:
        repository.write(f"untracked-{name}.txt", name)
    if kind == 7:
        repository.write("tracked.txt", name)
        git("add", "tracked.txt")
    if kind == 8:
        repository.write("slow.py", repository.git("show", "HEAD:slow.py") + f"# {name}\n")
    if kind == 9:
        git("checkout", "-q", "-b", f"other-{name}")


def begin(repository):
    repository.write("tracked.txt", "tracked")
    repository.write("ignored.bin", "cache")
    repository.write(".gitignore", "ignored.bin\n")
    repository.git("add", "-A")
    repository.commit("more")
    subprocess.run(["git", "clone", "-q", str(repository.root), str(repository.root.parent / "remote")], check=True)
    repository.init()


def start(repository, runs):
    words = ["loop", "--propose", repository.proposer(PROPOSES), "--runs", str(runs)]
    env = {**os.environ, "HOME": str(repository.root), "GIT_CONFIG_NOSYSTEM": "1"}
    with (repository.root.parent / "output").open("wb") as output:
        return subprocess.Popen(
            [*DICAST, "autoresearch", *words], cwd=repository.root, env=env, stdout=output, stderr=output
        )


def check_kept(repository):
    """Every kept experiment is a commit of the loop's ref, and the other way round."""
    kept = [entry["commit"] for entry in repository.entries() if entry["status"] == "keep"]
    listed = repository.git("rev-list", "--first-parent", "refs/dicast/loop/cost").split()
    assert [commit for commit in reversed(listed) if commit in kept] == list(dict.fromkeys(kept))
    assert not kept or listed[0] == kept[-1]
    for entry in repository.entries():
        if entry["status"] == "keep":
            assert f", {entry['primary_metric']:g}\n" in repository.git("show", f"{entry['commit']}:slow.py")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("DICAST_HISTORIES", "8"))))
def test_whatever_a_user_does_beside_the_loop_stays_also_when_it_is_killed(repository, seed):
    chance = random.Random(seed)
    begin(repository)
    process = start(repository, 4)
    killed = time.monotonic() + chance.uniform(0.3, 2.5) if chance.random() < 0.7 else None
    number = 0
    while process.poll() is None:
        act(repository, chance, number)
        number += 1
        state = repository.state()
        end = time.monotonic() + chance.uniform(0, 0.4)
        while process.poll() is None and time.monotonic() < end:
            if killed is not None and time.monotonic() > killed:
                process.kill()
                process.wait()
            time.sleep(0.01)
        assert repository.state() == state
    act(repository, chance, number)
    state = repository.state()
    repository.json("resume")
    assert repository.state() == state
    assert have_ended(f"propose-{repository.root.name}.py")
    check_kept(repository)
    repository.git("checkout", "-q", "HEAD", "--", "slow.py")
    state = repository.state()
    repository.loop(PROPOSES, 1)
    assert repository.state() == state
    check_kept(repository)
    assert not (repository.root / ".auto/state.json").exists()


KILLS = """#!/bin/sh
echo x >> {count}
if [ $(wc -l < {count}) -eq {number} ]; then kill -9 $PPID; exit 1; fi
exec {git} "$@"
"""


def with_killer(repository, tmp_path, number, *words):
    """Run a command that is killed at its call *number* of git; return its exit code."""
    real = shutil.which("git")
    folder, count = tmp_path / "killer", tmp_path / "count"
    folder.mkdir(exist_ok=True)
    count.write_text("")
    (folder / "git").write_text(KILLS.format(count=count, number=number, git=real))
    (folder / "git").chmod(0o755)
    env = {
        **os.environ, "HOME": str(repository.root), "GIT_CONFIG_NOSYSTEM": "1",
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
    }  # fmt: skip
    done = subprocess.run(
        [*DICAST, "autoresearch", *words], cwd=repository.root, env=env, capture_output=True, check=False
    )
    return done.returncode


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
            assert "No space left on device" in done.stderr
            assert repository.state() == state
    assert "its change is kept" in repository.json("resume")["recovered"]
    assert ", 80" in repository.git("show", "refs/dicast/discarded/1:slow.py")
    assert repository.state() == state


def test_a_second_loop_and_resume_wait_for_nobody_and_disturb_nobody(repository):
    begin(repository)
    process = killed_while_proposing(repository)
    for words in (["loop", "--propose", "true"], ["resume"], ["run"]):
        assert "another dicast autoresearch works in" in repository.dicast(*words, code=2).stderr
    repository.dicast("status")
    assert process.poll() is None
    process.terminate()
    process.wait()


def test_merge_fast_forwards_the_branch_or_prints_the_command(repository):
    begin(repository)
    assert repository.json("merge")["message"].startswith("nothing to merge")
    repository.loop("Path('slow.py').write_text(source(90))", 1)
    repository.write("tracked.txt", "changed")
    before = repository.state()
    done = repository.dicast("merge", code=1)
    assert done.stdout.endswith("\ngit merge --ff-only refs/dicast/loop/cost\n")
    assert "commit or stash them" in done.stdout
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
    assert done.stdout.endswith("\ngit merge refs/dicast/loop/cost\n")
    assert repository.git("log", "-1", "--format=%s", "refs/dicast/loop/cost~1").strip() == "user's"


def test_a_new_session_takes_no_ref_with_commits_that_the_branch_lacks(repository):
    begin(repository)
    repository.loop("Path('slow.py').write_text(source(90))", 1)
    kept = repository.git("rev-parse", "refs/dicast/loop/cost")
    repository.init()
    assert repository.loop("Path('slow.py').write_text(source(80))", 1)["baseline"] == 100
    assert repository.git("rev-parse", "refs/dicast/loop/cost") == kept
    assert ", 80" in repository.kept(ref="refs/dicast/loop/cost-2")


@pytest.mark.parametrize("name", ["a b", "x..y", ".hidden", "é/ü~^:?*[", "n.lock", "@{", "long" * 100])
def test_every_name_of_a_session_has_a_ref(repository, name):
    repository.init("--name", name)
    refs = repository.git("for-each-ref", "--format=%(refname)", "refs/dicast/loop").split()
    assert len(refs) == 1


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
    assert "measure it again" in done.stderr
    repository.json("log", "--status", "discard", *words, "--rollback-reason", "r")
    assert repository.git("for-each-ref", "refs/dicast/discarded") == ""


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
    assert "what measures was changed: .auto/session.yaml" in repository.entries()[-1]["rollback_reason"]
    assert repository.state() == before
    repository.json("run")
    assert repository.state() == before
    assert repository.json("merge")["merged"]
    assert ", 90" in (repository.root / "slow.py").read_text()
