"""Repositories in states of every kind: refused before any change, or left unchanged."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

FASTER = "Path('slow.py').write_text(source(100 - n))"


def refused(repository, message):
    done = repository.dicast(
        "init", "--primary", "cost", "--direction", "lower", "--command", "true", "--scope", "slow.py", code=2
    )
    assert message in done.err


def test_no_repository_no_commit_and_no_git_are_refused(repository, tmp_path, monkeypatch):
    command = [sys.executable, "-m", "dicast", "autoresearch", "status"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "is not in a working tree of git" in done.stderr) == (2, True)
    (tmp_path / "new").mkdir()
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "new", check=True)
    done = subprocess.run(command, cwd=tmp_path / "new", capture_output=True, text=True, check=False)
    assert (done.returncode, "has no commit yet" in done.stderr) == (2, True)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = subprocess.run(command, cwd=repository.root, capture_output=True, text=True, check=False)
    assert (done.returncode, "git is not on the PATH" in done.stderr) == (2, True)


def test_a_merge_that_is_not_ended_is_refused(repository):
    (repository.root / ".git/MERGE_HEAD").write_text("0" * 40)
    refused(repository, "has an unfinished operation (MERGE_HEAD)")


@pytest.mark.parametrize("path", ["../other", "/etc", ".git/config", ".auto/x", "autoresearch.jsonl", "no-such"])
def test_a_scope_outside_the_repository_or_in_its_own_files_is_refused(repository, path):
    done = repository.dicast(
        "init", "--primary", "cost", "--direction", "lower", "--command", "true", "--scope", path, code=2
    )
    assert "scope" in done.err


def test_a_detached_head_stays(repository):
    repository.git("checkout", "-q", "--detach")
    before = repository.state()
    repository.init()
    repository.loop(FASTER, 1)
    assert repository.state() == before
    assert ", 99" in repository.kept_content()
    done = repository.json("merge", code=1)
    assert (done["merged"], done["command"]) == (False, "git merge --ff-only refs/dicast/loop/cost")


@pytest.mark.slow
def test_linked_worktrees_have_loops_of_their_own(repository, place):
    other = repository.root.parent / "linked"
    repository.git("worktree", "add", "-q", "-b", "linked", str(other))
    before, root = repository.state(), repository.root
    repository.init()
    repository.loop(FASTER, 1)
    repository.root = other
    repository.init()
    repository.loop("Path('slow.py').write_text(source(50))", 1)
    assert ", 100" in (other / "slow.py").read_text()
    assert ", 50" in repository.kept_content(ref="refs/dicast/loop/cost-2")
    repository.root = root
    assert ", 99" in repository.kept_content()
    assert repository.state() == before


def test_hooks_of_the_repository_do_not_run(repository):
    (repository.root / ".git/hooks").mkdir(exist_ok=True)
    names = (
        "pre-commit",
        "reference-transaction",
        "post-index-change",
        "post-checkout",
        "post-merge",
        "fsmonitor-watchman",
    )
    for name in names:
        hook = repository.root / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {repository.root.parent}/hooked-{name}\nexit 0\n")
        hook.chmod(0o755)
    repository.init()
    assert repository.loop(FASTER, 1)["best"] == 99
    repository.json("merge")
    assert list(repository.root.parent.glob("hooked-*")) == []


@pytest.mark.slow
def test_a_submodule_cannot_be_changed(repository, tmp_path, place):
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path / "inner")], check=True)
    inner = ["git", "-C", str(tmp_path / "inner"), "-c", "user.name=t", "-c", "user.email=t"]
    subprocess.run([*inner, "commit", "-q", "--allow-empty", "-m", "i"], check=True)
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "inner"), "inner")
    repository.commit("submodule")
    repository.init()
    before = repository.state()
    assert repository.loop(FASTER, 1)["best"] == 99
    repository.loop("Path('inner/new').write_text('x')", 1)
    assert repository.state() == before
    assert not (repository.root / "inner/new").exists()
    assert repository.git("diff", "--name-only", "HEAD", "refs/dicast/loop/cost") == "slow.py\n"


def test_a_repository_inside_the_scope_is_no_change_that_can_be_kept(repository):
    repository.write("lib/a.py", "x = 1\n")
    repository.git("add", "-A")
    repository.commit("lib")
    repository.init("--scope", "lib")
    git = "subprocess.run(['git', '-C', 'lib/inner', '-c', 'user.name=t', '-c', 'user.email=t', *words], check=True)"
    makes = "os.makedirs('lib/inner')\nfor words in (['init', '-q'], ['commit', '-q', '--allow-empty', '-m', 'i']):\n"
    repository.loop(f"{makes}    {git}", 1)
    entry = repository.entries()[-1]
    assert (entry["status"], entry["reason"]) == ("discard", "out_of_scope")
    assert entry["rollback_reason"].endswith("repositories inside this one cannot be kept: lib/inner")


@pytest.mark.slow
def test_files_that_a_sparse_checkout_leaves_out_stay_out_and_in_the_commit(repository):
    repository.write("far/away.txt", "x")
    repository.git("add", "-A")
    repository.commit("far")
    repository.git("sparse-checkout", "set", "--no-cone", "/*.py")
    assert not (repository.root / "far").exists()
    repository.init()
    assert repository.loop(FASTER, 1)["best"] == 99
    assert repository.git("ls-tree", "-r", "--name-only", "refs/dicast/loop/cost").split() == [
        "checks.py", "far/away.txt", "measure.py", "slow.py"
    ]  # fmt: skip
    assert repository.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_line_endings_modes_links_and_odd_names_stay_byte_for_byte(repository, place):
    repository.write(".gitattributes", "* text=auto eol=lf\n")
    repository.git("add", "-A")
    repository.commit("attributes")
    (repository.root / "dos.txt").write_bytes(b"a\r\nb\r\n")
    (repository.root / "raw.bin").write_bytes(bytes(range(256)))
    (repository.root / "run.sh").write_text("x")
    (repository.root / "run.sh").chmod(0o700)
    os.symlink("nowhere", repository.root / "link")
    (repository.root / "odd\nname é").write_text("odd")
    (repository.root / "empty").mkdir()
    before = repository.tree()
    repository.init()
    wild = "subprocess.run('rm -rf ./* ', shell=True); Path('link').write_text('x'); Path('dos.txt').mkdir(); Path('dos.txt/in').write_text('x')"
    repository.loop(wild, 1)
    assert repository.statuses() == ["keep", "discard"]
    assert repository.tree() == before
    assert (repository.root / "empty").is_dir()


names = st.sampled_from(["slow.py", "user.txt", "sub/deep.txt", "ignored.bin", "measure.py", "new/one.txt"])
texts = st.text("ab\r\n\0é", max_size=6)
edits = st.lists(
    st.one_of(
        st.tuples(st.just("write"), names, texts),
        st.tuples(st.just("remove"), names),
        st.tuples(st.just("cost"), st.integers(1, 120)),
        st.tuples(st.just("commit")),
        st.tuples(st.just("link"), names),
    ),
    max_size=4,
)
APPLY = """
for edit in json.loads({edits!r})[n - 1]:
    kind, *rest = edit
    path = Path(rest[0]) if rest and isinstance(rest[0], str) else None
    try:
        if kind == "write": path.parent.mkdir(parents=True, exist_ok=True); path.write_bytes(rest[1].encode())
        if kind == "remove": path.unlink()
        if kind == "cost": Path("slow.py").write_text(source(rest[0]))
        if kind == "commit": subprocess.run("git add -A; git -c user.name=x -c user.email=x commit -qm x", shell=True)
        if kind == "link": path.unlink(missing_ok=True); path.symlink_to("slow.py")
    except OSError:
        pass
"""


@pytest.mark.slow
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=10
)
@given(st.lists(edits, min_size=1, max_size=3))
@example([[("cost", 50)], [("cost", 60), ("commit",)], [("cost", 40), ("commit",)]])
def test_whatever_is_proposed_the_user_s_files_stay_and_what_is_kept_is_the_scope_alone(tmp_path_factory, history):
    import json

    from dicast_autoresearch import session as sessions
    from dicast_autoresearch.git import Git
    from dicast_autoresearch.rounds import Rounds

    conftest = sys.modules[next(name for name in sys.modules if name.endswith("autoresearch.tests.conftest"))]
    repository = conftest.Repository(tmp_path_factory.mktemp("history") / "repo")
    repository.write("user.txt", "mine\r\n")
    repository.write("sub/deep.txt", "deep")
    repository.write("ignored.bin", "cache")
    (repository.root / ".git/info/exclude").write_text("ignored.bin\n/.auto/\n/autoresearch.jsonl\n")
    values = {
        "name": "n", "primary": "cost", "direction": "lower", "command": "grep -c . slow.py", "scope": ["slow.py"],
        "propose_timeout": 60,
    }  # fmt: skip
    values["command"] = "sed -n 's/.*, \\([0-9]*\\)$/METRIC cost=\\1/p' slow.py"
    session = sessions.make(values, "test")
    sessions.write(repository.root, session)
    rounds = Rounds(Git(repository.root), session)
    rounds.baseline()
    command = repository.proposer(APPLY.format(edits=json.dumps(history)))
    best = 100
    for _ in history:
        before, head = repository.state(), repository.git("rev-parse", rounds.ref)
        before_scope = repository.git("show", f"{rounds.ref}:slow.py", check=False) or None
        entry = rounds.propose(command).experiment
        assert repository.state() == before
        applied_edits = [edit for edit in history[entry.experiment - 1] if edit[0] != "commit"]
        if len(applied_edits) == 1 and applied_edits[0][0] == "cost" and before_scope is not None:
            assert (entry.status == "keep") == (applied_edits[0][1] < best)
        if entry.status == "keep":
            assert entry.primary_metric < best
            best = entry.primary_metric
            assert repository.git("rev-parse", f"{rounds.ref}~1") == head
            assert repository.git("show", "--name-only", "--format=", rounds.ref).split() == ["slow.py"]
        else:
            assert repository.git("rev-parse", rounds.ref) == head
        assert repository.git("status", "--porcelain", "--", "slow.py") == ""


READ_ONLY = """
import os, tempfile
from pathlib import Path
from dicast_autoresearch.checkout import remove
if os.geteuid() == 0:  # root may write everywhere
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
folder = Path(tempfile.mkdtemp())
(folder / "inner").mkdir()
(folder / "inner" / "file").touch()
(folder / "inner").chmod(0o500)
remove(folder)
print(folder.exists())
"""


def test_a_folder_that_cannot_be_written_is_deleted_too():
    done = subprocess.run([sys.executable, "-c", READ_ONLY], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
