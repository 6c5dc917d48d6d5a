"""The bar that CI holds tests to, which keeps the default run short."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[1]
TESTS = """
import subprocess, sys, time
import pytest

BUSY = "import time\\nwhile time.process_time() < {}: pass"

def test_computes():
    exec(BUSY.format(time.process_time() + 0.1))

def test_computes_in_a_process():
    subprocess.run([sys.executable, "-c", BUSY.format(0.1)])

def test_waits():
    time.sleep(0.3)

def test_takes_no_time():
    pass

@pytest.mark.slow
def test_is_marked():
    time.sleep(0.3)

def test_fails_anyway():
    time.sleep(0.3)
    assert 1 == 2

@pytest.fixture(scope="session")
def shared():
    time.sleep(0.3)

def test_waits_for_what_others_use(shared):
    pass
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run the tests above beside the repository's conftest.py."""
    pytester.makeconftest((ROOT / "conftest.py").read_text())
    pytester.mkdir("tests")
    for shared in (Path("tests", "described_once.py"), Path("tests", "forked.py")):
        (pytester.path / shared).write_text((ROOT / shared).read_text())
    pytester.makepyprojecttoml('[tool.pytest.ini_options]\nmarkers = ["slow"]')
    pytester.makepyfile(TESTS)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # other plugins take a second to import
    return lambda *arguments: pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


@pytest.mark.slow
def test_a_test_over_the_bar_fails_unless_it_is_marked_slow(run):
    done = run("--bar", "0.05")
    done.assert_outcomes(passed=3, failed=4)
    done.stdout.fnmatch_lines(["takes * s of computing and * s in all: make it quicker, or mark it slow"] * 3)
    for name in ("computes", "computes_in_a_process", "waits", "fails_anyway"):
        done.stdout.fnmatch_lines([f"FAILED *::test_{name}*"])
    done.stdout.no_fnmatch_line("FAILED *::test_fails_anyway - Failed: takes *")


@pytest.mark.slow
def test_there_is_no_bar_where_none_is_asked_for(run):
    run().assert_outcomes(passed=6, failed=1)


@pytest.mark.slow
def test_of_a_file_only_what_is_marked_slow_is_run_where_that_is_asked_for(run, pytester):
    pytester.makepyfile(test_other=TESTS)
    run("--slow-of", "test_other.py").assert_outcomes(passed=7, failed=1, deselected=6)
    pytester.mkdir("folder").joinpath("test_third.py").write_text(TESTS)
    run("--slow-of", "test_other.py", "--slow-of", "folder").assert_outcomes(passed=8, failed=1, deselected=12)
