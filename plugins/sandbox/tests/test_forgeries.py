"""What a candidate might do to be scored as one that passes. Its function is wrong in each; the tests know what is right."""

from __future__ import annotations

import asyncio

import pytest
from boxes import needs_bubblewrap

from dicast import Score, Subject
from dicast_sandbox import PassingTests

pytestmark = needs_bubblewrap

TESTS = """import unittest
from solution import f

class Squares(unittest.TestCase):
    def test_two(self):
        self.assertEqual(f(2), 4)

    def test_three(self):
        assert f(3) == 9, f(3)

    def test_negative(self):
        if f(-5) != 25:
            self.fail("wrong")

if __name__ == "__main__":
    unittest.main()
"""
WRONG = "def f(x): return 0\n"
FORGED_REPORT = "Ran 3 tests in 0.001s\\n\\nOK\\n"

FORGERIES = {
    "leaves with 0 at import": "import os; os._exit(0)",
    "leaves with 0 when called": "import os\ndef f(x): os._exit(0)",
    "exits when called": "import sys\ndef f(x): sys.exit(0)",
    "prints a report and leaves": f"import os, sys\nsys.stderr.write('{FORGED_REPORT}'); sys.stderr.flush(); os._exit(0)",
    "leaves with 0 at the end": f"import atexit, os\natexit.register(os._exit, 0)\n{WRONG}",
    "leaves in a thread": f"import os, threading\nthreading.Timer(0.05, os._exit, [0]).start()\n{WRONG}",
    "patches assertEqual": f"import unittest\nunittest.TestCase.assertEqual = unittest.TestCase.fail = lambda *a: None\n{WRONG}",
    "patches the runner": f"import unittest\nunittest.TestResult.wasSuccessful = lambda self: True\n{WRONG}",
    "patches the counting": "import unittest\nfor name in ('addError', 'addFailure'): setattr(unittest.TextTestResult, name, "
    f"lambda self, *a: None)\n{WRONG}",
    "patches the loading": f"import unittest\nunittest.TestCase.run = lambda self, result=None: result\n{WRONG}",
    "gives what equals everything": "class All(int):\n  __eq__ = lambda s, o: True\n  __ne__ = lambda s, o: False\n  "
    "__hash__ = int.__hash__\ndef f(x): return All(0)",
    "gives an object that equals everything": "class All:\n  __eq__ = lambda s, o: True\n  __ne__ = lambda s, o: False\n"
    "def f(x): return All()",
    "skips the tests": "import unittest\ndef f(x): raise unittest.SkipTest('no')",
    "raises what nobody catches": "def f(x): raise KeyboardInterrupt",
    "rewrites the tests": f"open('test_it.py', 'w').write('')\nopen('conftest.py', 'w').write('')\n{WRONG}",
    "replaces the tests' module": f"import sys, types\nsys.modules['test_it'] = types.ModuleType('test_it')\n{WRONG}",
    "puts a startup file into place": f"import site, os\nos.makedirs(site.getusersitepackages(), exist_ok=True)\n"
    f"open(site.getusersitepackages() + '/usercustomize.py', 'w').write('import os; os._exit(0)')\n{WRONG}",
    "writes answers to every descriptor": "import os\nfor n in range(3, 20):\n  try: os.write(n, b'{\"value\": {\"int\": \"0\"}}\\n' * 9)\n"
    f"  except OSError: pass\n{WRONG}",
    "changes what it finds in memory": "import gc, unittest\nfor o in gc.get_objects():\n  if isinstance(o, type) and "
    f"issubclass(o, unittest.TestCase): o.failureException = type('None_', (BaseException,), {{}})\n{WRONG}",
    "kills the one that waits for it": f"import os, signal\nos.kill(os.getppid(), signal.SIGTERM)\n{WRONG}",
    "raises a signal that ends it well": "import os, signal\nsignal.signal(signal.SIGALRM, lambda *a: os._exit(0))\n"
    f"signal.setitimer(signal.ITIMER_REAL, 0.02)\n{WRONG}",
    "is never ready": "while True: pass",
}  # fmt: skip


def score(output: str, mode: str, **options) -> Score:
    options = {"command": "python3 -m unittest test_it", "files": {"test_it.py": TESTS}, "timeout": 4, **options}
    metric = PassingTests(output_file="solution.py", mode=mode, **options)
    found = asyncio.run(metric.score(Subject("row", "1", output=output)))
    assert isinstance(found, Score), found
    return found


@pytest.mark.parametrize("code", FORGERIES.values(), ids=FORGERIES)
def test_a_forgery_in_the_tests_process_is_found_out_or_said_to_be_possible(code):
    found = score(code, "shared")
    assert found.value == 0 or (found.signals["forgeable"] is True and found.confidence <= 0.5)


@pytest.mark.parametrize("code", FORGERIES.values(), ids=FORGERIES)
def test_no_forgery_succeeds_from_another_sandbox(code):
    found = score(code, "isolated")
    assert found.value == 0
    assert found.signals["forgeable"] is False


@pytest.mark.parametrize("mode", ["shared", "isolated"])
def test_an_honest_candidate_passes_in_either_mode(mode):
    found = score("def f(x):\n    print('hello')\n    return x * x\n", mode)
    assert found.value == 1, found
    assert found.signals["passed"] == 3
    assert found.confidence == (0.5 if mode == "shared" else 1.0)


def test_leaving_early_is_no_success_where_the_runner_reports():
    assert score("import os; os._exit(0)", "shared").value == 0


def test_plain_values_pass_between_the_sandboxes_with_their_types():
    tests = (
        "from solution import same, LIMIT, fail\nimport math\n"
        "for value in [1, 10**400, -0.0, 1.5, float('inf'), 1+2j, 'ä\\ud800', b'\\xff', None, True, [1, (2, {3})], {1: 'a', (2,): frozenset([4])}]:\n"
        "    found = same(value)\n    assert found == value and type(found) is type(value), value\n"
        "assert math.isnan(same(float('nan')))\nassert LIMIT == 7\n"
        "assert same(value=3) == 3\n"
        "try: fail()\nexcept ValueError as error: assert str(error) == 'wrong'\nelse: raise SystemExit(1)\n"
        "try: same(object())\nexcept TypeError: pass\nelse: raise SystemExit(1)\n"
    )
    code = "LIMIT = 7\ndef same(value): return value\ndef fail(): raise ValueError('wrong')\n"
    found = score(code, "isolated", command=("python3", "check.py"), files={"check.py": tests})
    assert found.value == 1, found.details


def test_the_tests_are_not_to_be_seen_by_an_isolated_candidate():
    code = "import os\ndef f(x): raise ValueError(str(sorted(os.listdir('.'))))"
    found = score(code, "isolated")
    assert "test_it" not in found.details.partition("\n")[2].split("ValueError: ")[1].split("\n")[0]


def test_a_candidate_of_another_language_talks_by_its_stdin_and_stdout():
    tests = (
        "import os\nends = os.fdopen(int(os.environ['DICAST_PEER_FD']), 'r+b', buffering=0)\nends.write(b'21\\n')\n"
        "assert ends.read(10) == b'42\\n'\n"
    )
    found = score(
        "read n; echo $((n * 2))", "isolated", candidate="sh solution.py", command="python3 check.py", files={"check.py": tests}
    )  # fmt: skip
    assert found.value == 1, found.details
