"""The loop keeps exactly the good changes, and loses nothing of the user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from .conftest import have_ended

PROPOSALS = """
print("ASI hypothesis=attempt", n)
slow = Path("slow.py")
if n == 1: slow.write_text(source(90))
if n == 2: slow.write_text(source(95))
if n == 3: slow.write_text(source(10, "0"))
if n == 4: Path("measure.py").write_text("print('METRIC cost=1')")
if n == 5: slow.write_text("def work(:")
if n == 6:
    slow.write_text(source(80))
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", "commit", "-qam", "mine"], check=True)
if n == 7: slow.write_text(source(5)); Path("other.txt").unlink()
if n == 8: subprocess.run("rm -rf * .auto", shell=True)
if n == 9: slow.write_text(source(5)); Path("new.txt").write_text("new")
if n == 10: pass
if n == 11:
    slow.write_text(source(105))
    with open(".auto/session.yaml", "a") as file: file.write("min_delta: 1000\\n")
if n == 12: slow.write_text(source(5)); sys.exit(3)
if n == 13: slow.write_text(source(5) + "open('measure.py', 'w').write('')\\n")
if n == 14: slow.write_text(source("float('nan')"))
if n == 15: subprocess.run("git checkout -q -b other && git branch -D main && git reset -q --hard", shell=True)
if n == 16: slow.write_text(source(70))
"""
KEPT_NUMBERS = [0, 1, 6, 16]


@pytest.mark.slow
def test_exactly_the_good_changes_are_kept_and_the_log_says_why(repository, place):
    repository.write("other.txt", "tracked")
    repository.git("add", "-A")
    repository.commit("other")
    repository.write("notes.txt", "mine")
    repository.write("ignored.bin", "cache")
    (repository.root / ".git/info/exclude").write_text("ignored.bin\n")
    repository.init("--goal", "faster")
    before, session = repository.state(), (repository.root / ".auto/session.yaml").read_text()
    result = repository.loop(PROPOSALS, 16)
    entries = repository.entries()
    assert [entry["experiment"] for entry in entries if entry["status"] == "keep"] == KEPT_NUMBERS
    assert (result["baseline"], result["best"], result["counts"]["checks_failed"]) == (100, 70, 2)
    reasons = {entry["experiment"]: entry["rollback_reason"] for entry in entries}
    assert "no better" in reasons[2]
    assert "measuring files were changed: measure.py" in reasons[4]
    assert "files outside the scope were changed: other.txt" in reasons[7]
    assert "files outside the scope were changed: new.txt" in reasons[9]
    assert "nothing was changed" in reasons[10]
    assert "the proposer failed: the exit code is 3" in reasons[12]
    assert "measuring files were changed: measure.py" in reasons[13]
    assert repository.state() == before
    assert (repository.root / ".auto/session.yaml").read_text() == session
    assert repository.kept_content().endswith(", 70\n")
    log = repository.git("log", "--format=%s", "refs/dicast/loop/cost").splitlines()
    assert log == ["attempt 16", "attempt 6", "attempt 1", "other", "first"]
    assert '"status": "keep"' in repository.git("log", "-1", "--format=%b", "refs/dicast/loop/cost")
    for entry in entries:
        assert (entry["commit"] is not None) == (entry["status"] == "keep")
        if ref := entry["discarded_ref"]:
            assert repository.git("rev-parse", f"refs/dicast/discarded/{entry['experiment']}").strip() == ref
    assert ", 95" in repository.git("show", "refs/dicast/discarded/2:slow.py")
    assert all(entry[name] for entry in entries for name in ("hypothesis", "learned", "next_action_hint"))


@pytest.mark.slow
def test_a_proposer_that_never_ends_is_ended_with_what_it_started(repository, place):
    repository.init("--propose-timeout", "1")
    code = (
        "child = subprocess.Popen(['sleep', '600.251'], start_new_session=True)\n"
        "Path('slow.py').write_text(source(5)); time.sleep(600)\n"
    )
    repository.loop(code, 1)
    assert "it took longer than 1 s" in repository.entries()[-1]["rollback_reason"]
    assert have_ended("600.251")


@pytest.mark.slow
def test_sigterm_undoes_the_round_and_ends_what_it_started(repository):
    repository.init()
    repository.loop("Path('slow.py').write_text(source(90))", 1)
    before = repository.state()
    mark = repository.root.parent / "mark"
    code = f"Path('slow.py').write_text(source(80)); Path({str(mark)!r}).write_text('x'); time.sleep(600)"
    process = started(repository, code, mark)
    process.terminate()
    assert process.wait(200) == 130
    assert repository.state() == before
    assert have_ended(f"propose-{repository.root.name}.py")
    assert repository.json("resume")["recovered"] == "no round was interrupted"


def started(repository, code, mark, **options):
    """Start a loop, and wait for *mark*."""
    command = [sys.executable, "-m", "dicast", "autoresearch", "loop", "--propose", repository.proposer(code)]
    process = subprocess.Popen(
        command, cwd=repository.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )
    while not mark.exists() or not mark.read_text():
        assert process.poll() is None
        time.sleep(0.02)
    return process


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["proposing", "measuring"])
def test_a_killed_loop_is_taken_up_where_it_was(repository, moment, place):
    repository.init()
    repository.loop("Path('slow.py').write_text(source(90))", 1)
    mark = repository.root.parent / "mark"
    code = f"Path('slow.py').write_text(source(80)); Path({str(mark)!r}).write_text('x'); time.sleep(600)"
    if moment == "measuring":
        inner = f"import pathlib, time; pathlib.Path({str(mark)!r}).write_text('x'); time.sleep(600)"
        code = f"Path('slow.py').write_text({inner!r} + '\\n' + source(80))"
    process = started(repository, code, mark)
    process.kill()
    process.wait()
    repository.commit("later")
    repository.git("branch", "later")
    repository.write("user.txt", "later")
    before = repository.state()
    assert "is undone; its change is kept" in repository.json("resume")["recovered"]
    assert have_ended(f"propose-{repository.root.name}.py")
    assert repository.state() == before
    assert repository.json("resume")["recovered"] == "no round was interrupted"
    assert ", 80" in repository.git("show", "refs/dicast/discarded/2:slow.py")
    repository.loop("Path('slow.py').write_text(source(85))", 1)
    assert repository.statuses() == ["keep", "keep", "keep"]


def test_what_was_changed_before_is_never_touched(repository):
    repository.write("slow.py", "mine")
    done = repository.dicast(
        "init", "--primary", "cost", "--direction", "lower", "--command", "true", "--scope", "slow.py", code=2
    )
    assert "the scope has uncommitted changes: slow.py" in done.err
    repository.git("checkout", "slow.py")
    repository.init()
    repository.write("slow.py", "mine")
    done = repository.dicast("loop", "--propose", "true", code=2)
    assert "the scope has uncommitted changes: slow.py" in done.err
    assert (repository.root / "slow.py").read_text() == "mine"


@pytest.mark.slow
def test_what_is_staged_elsewhere_stays_staged_and_is_not_committed(repository):
    repository.init()
    repository.write("other.txt", "staged")
    repository.git("add", "other.txt")
    repository.write("other.txt", "and changed")
    repository.loop("Path('slow.py').write_text(source(90))", 1)
    assert repository.git("status", "--porcelain") == "AM other.txt\n"
    assert repository.git("show", "--name-only", "--format=", "refs/dicast/loop/cost").split() == ["slow.py"]


@pytest.mark.slow
def test_budgets_end_the_loop(repository):
    repository.init("--runs", "2")
    result = repository.loop("Path('slow.py').write_text(source(100 - n))", 5)
    assert (result["ended"], len(result["experiments"])) == ("STOP: the budget of 2 runs is spent", 3)
    assert repository.dicast("run", code=2).err.startswith("STOP")
    repository.write("measure.py", "print('METRIC cost=1\\nMETRIC cost_usd=0.4')\n")
    repository.git("commit", "-qam", "paid", check=False)
    repository.git("-c", "user.name=t", "-c", "user.email=t", "commit", "-qam", "paid")
    repository.init("--money", "1")
    result = repository.loop("Path('slow.py').write_text(source(n))", 9)
    assert result["ended"] == "STOP: the budget of 1 USD is spent"
    assert result["segment"] == 1


def test_a_baseline_that_cannot_be_measured_ends_it_before_anything_is_proposed(repository):
    repository.write("measure.py", "raise SystemExit('broken')")
    repository.git("-c", "user.name=t", "-c", "user.email=t", "commit", "-qam", "broken")
    repository.init()
    done = repository.dicast("loop", "--propose", "touch proposed", code=2)
    assert "the baseline cannot be measured: the command failed: the exit code is 1: broken" in done.err
    assert not (repository.root / "proposed").exists()


@pytest.mark.slow
def test_by_hand_run_decide_and_log_do_the_same(repository):
    repository.init("--min-delta", "5")
    words = ["--hypothesis", "h", "--learned", "l", "--next-action-hint", "n"]
    assert repository.json("decide", code=2)["error"]["message"].startswith("nothing was measured")
    repository.json("run")
    assert repository.json("decide")["reason"] == "baseline"
    repository.json("log", "--status", "keep", *words)
    repository.write("slow.py", source_of(97))
    repository.json("run")
    decision = repository.json("decide")
    assert decision == {"decision": "discard", "reason": "below_min_delta", "delta": 3.0, "noise": None, "needed": 5.0}
    done = repository.dicast("log", "--status", "discard", "--hypothesis", "h", code=2)
    for name in ("learned", "rollback_reason", "next_action_hint"):
        assert f"an experiment needs its {name}" in done.err
    done = repository.dicast("log", "--status", "discard", *words, "--rollback-reason", "too little")
    assert repository.git("status", "--porcelain") == " M slow.py\n"
    assert ", 97" in repository.git("show", "refs/dicast/discarded/1:slow.py")
    subprocess.run(done.out.partition("restores the scope: ")[2], shell=True, cwd=repository.root, check=True)
    assert repository.git("status", "--porcelain") == ""
    repository.write("slow.py", source_of(90))
    repository.json("run")
    before = repository.state()
    repository.json("log", "--status", "keep", *words, "--description", "less")
    assert repository.state() == before
    assert repository.git("log", "-1", "--format=%s", "refs/dicast/loop/cost").strip() == "less"
    assert ", 90" in repository.kept_content()
    repository.write("slow.py", source_of(80).replace("i * i", "i"))
    assert repository.json("run", code=1)["failure"] == "checks_failed"
    done = repository.dicast("log", "--status", "keep", *words, code=2)
    assert "Log as 'checks_failed' instead" in done.err


def source_of(cost):
    return f"def work(n):\n    return sum(i * i for i in range(n)), {cost}\n"


def test_hooks_are_told_the_state_and_proposers_too(repository):
    repository.init("--goal", "faster")
    repository.write(".auto/hooks/before.sh", "cat > told.json; echo before; exit 4\n")
    done = repository.dicast(
        "loop", "--propose", repository.proposer("Path('slow.py').write_text(source(90))"), "--runs", "1"
    )
    assert "before\n[before hook exited 4]" in done.err
    state = json.loads((repository.root / "told.json").read_text())
    assert (state["event"], state["next_run"], state["session"]["baseline_metric"]) == ("before", 1, 100)
    assert state["session"]["goal"] == "faster"


@pytest.mark.slow
def test_the_page_shows_hostile_texts_as_text(repository, tmp_path):
    repository.init("--name", "<script>alert(1)</script>")
    repository.loop("print('ASI learned=<img src=x onerror=alert(1)>'); Path('slow.py').write_text(source(90))", 1)
    repository.dicast("status", "--html", "page.html")
    page = (repository.root / "page.html").read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "default-src 'none'" in page


def test_settings_of_git_and_hooks_of_the_session_that_a_proposer_makes_do_not_reach_the_user(repository, place):
    repository.init()
    config = (repository.root / ".git/config").read_text()
    code = (
        "subprocess.run(['git', 'config', 'core.hooksPath', '/tmp/x'], check=True)\n"
        "Path('.git/info').mkdir(exist_ok=True); Path('.git/info/attributes').write_text('* filter=x')\n"
        "try: Path('.auto/hooks').mkdir(); Path('.auto/hooks/after.sh').write_text('touch hooked')\n"
        "except OSError: pass\n"
        "Path('slow.py').write_text(source(90))\n"
    )
    repository.loop(code, 1)
    assert repository.statuses() == ["keep", "keep"]
    assert (repository.root / ".git/config").read_text() == config
    assert not (repository.root / ".git/info/attributes").exists()
    assert not (repository.root / ".auto/hooks").exists()
    assert not (repository.root / "hooked").exists()


def test_what_was_not_measured_is_not_kept_by_hand(repository):
    repository.init()
    words = ["--hypothesis", "h", "--learned", "l", "--next-action-hint", "n"]
    repository.write("slow.py", source_of(90))
    repository.json("run")
    repository.write("slow.py", source_of(80))
    done = repository.dicast("log", "--status", "keep", *words, code=2)
    assert "the scope has changed since the measurement" in done.err
    repository.write("measure.py", "print('METRIC cost=1')\n")
    assert "measuring files were changed: measure.py" in repository.dicast("run", code=2).err


def test_a_proposer_that_removes_its_checkout_removes_nothing_else(repository, place):
    repository.init()
    before = repository.state()
    code = "if n == 1: shutil.rmtree('.git', ignore_errors=True)\nif n == 2: shutil.rmtree('.', ignore_errors=True)"
    repository.loop(code, 2)
    assert repository.statuses() == ["keep", "discard", "discard"]
    assert repository.state() == before


def test_a_proposer_that_is_no_command_is_refused(repository):
    repository.init()
    for command in ("", "python 'x"):
        assert "is not a command" in repository.dicast("loop", "--propose", command, code=2).err


@pytest.mark.slow
def test_a_script_behind_a_link_and_a_module_are_what_measures(repository):
    repository.write("bench.py", "import slow\nprint(f'METRIC cost={slow.work(10)[1]}')\n")
    os.symlink("bench.py", repository.root / "link.py")
    repository.git("add", "-A")
    repository.commit("bench")
    for command in ("-m bench", "link.py"):
        repository.dicast(
            "init", "--primary", "cost", "--direction", "lower", "--command", f"{sys.executable} {command}", "--scope", "."
        )  # fmt: skip
        repository.loop("Path('bench.py').write_text('print(\"METRIC cost=1\")')", 1)
        assert "measuring files were changed: bench.py" in repository.entries()[-1]["rollback_reason"]


def test_a_discarded_change_has_a_ref_and_no_commit(repository):
    repository.init()
    repository.loop("Path('slow.py').write_text(source(80 if n == 1 else 90))", 2)
    _, kept_entry, discarded = repository.entries()
    assert (kept_entry["status"], kept_entry["discarded_ref"]) == ("keep", None)
    assert repository.git("rev-parse", "refs/dicast/loop/cost").strip() == kept_entry["commit"]
    assert (discarded["status"], discarded["commit"]) == ("discard", None)
    assert repository.git("rev-parse", "refs/dicast/discarded/2").strip() == discarded["discarded_ref"]


def test_a_proposer_that_fails_is_a_crash_with_its_exit_code_and_stderr(repository):
    repository.init()
    repository.loop(
        "print('ASI hypothesis=none'); print('not this'); print('first', file=sys.stderr)\n"
        "print('no such model', file=sys.stderr); sys.exit(7)",
        1,
    )
    entry = repository.entries()[-1]
    assert (entry["status"], entry["reason"], entry["exit_code"]) == ("crash", "proposer_failed", 7)
    assert entry["stderr"] == "first\nno such model"
    assert "the exit code is 7: first\nno such model" in entry["rollback_reason"]
    assert (entry["hypothesis"], entry["commit"], entry["discarded_ref"]) == ("none", None, None)


@pytest.mark.slow
def test_regressions_of_secondary_metrics_are_named_in_learned(repository):
    repository.write(
        "measure.py",
        "import slow\n_, cost = slow.work(10)\nprint(f'METRIC cost={cost}')\n"
        "print('METRIC latency_ms=%d' % (100 if cost > 80 else 400))\nprint('METRIC clarity=%g' % (9 if cost > 80 else 5))\n",
    )
    repository.git("add", "-A")
    repository.commit("measure")
    repository.init()
    repository.loop("print('ASI learned=it is cheaper'); Path('slow.py').write_text(source([95, 90, 70][n - 1]))", 3)
    first, *_, last = repository.entries()[1:]
    assert first["learned"] == "it is cheaper"
    assert last["learned"] == (
        "it is cheaper; regressions: latency_ms 100 -> 400 (worse by 300, noise 0), clarity 9 -> 5 (worse by 4, noise 0)"
    )


def test_the_session_takes_the_names_of_the_protocol(repository):
    repository.init()
    path = repository.root / ".auto/session.yaml"
    path.write_text(path.read_text().replace("primary:", "primary_metric:"))
    assert "primary_metric: cost" in path.read_text()
    assert repository.json("status")["primary"] == "cost"
    path.write_text(path.read_text() + "primary: size_kb\n")
    assert "one option, with two values" in repository.dicast("status", code=2).err
