"""Attempts of a candidate to be scored as passing. Its function is wrong in each; the tests know the right results."""

from __future__ import annotations

import asyncio

import pytest
from boxes import needs_bubblewrap

from dicast import Score, Subject
from dicast_sandbox import PassingTests, VerificationDelta

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
    "prints a report and leaves when called": f"import os, sys\ndef f(x): sys.stderr.write('{FORGED_REPORT}'); sys.stderr.flush(); os._exit(0)",
    "says a report in an exception": f"def f(x): raise ValueError('\\n{FORGED_REPORT}')",
    "says a report at import": f"raise ImportError('\\n{FORGED_REPORT}')",
    "says a report in the name of an exception": f"def f(x): raise type('\\n{FORGED_REPORT}', (Exception,), {{}})",
}  # fmt: skip


def score(output: str, mode: str, **options) -> Score:
    options = {"command": "python3 -m unittest test_it", "files": {"test_it.py": TESTS}, "timeout": 8, **options}
    metric = PassingTests(**{"output_file": "solution.py", "mode": mode, **options})
    result = asyncio.run(metric.score(Subject("row", "1", output=output)))
    assert isinstance(result, Score), result
    return result


@pytest.mark.slow
@pytest.mark.parametrize("code", FORGERIES.values(), ids=FORGERIES)
def test_a_forgery_in_the_tests_process_is_found_out_or_said_to_be_possible(code):
    result = score(code, "shared")
    assert result.value == 0 or (result.signals["forgeable"] is True and result.confidence <= 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("code", FORGERIES.values(), ids=FORGERIES)
def test_no_forgery_succeeds_from_another_sandbox(code):
    result = score(code, "isolated")
    assert result.value == 0
    assert result.signals["forgeable"] is False


@pytest.mark.parametrize("mode", ["shared", "isolated"])
def test_an_honest_candidate_passes_in_either_mode(mode):
    result = score("def f(x):\n    print('hello')\n    return x * x\n", mode)
    assert result.value == 1, result
    assert result.signals["passed"] == 3
    assert result.confidence == (0.5 if mode == "shared" else 1.0)


def test_leaving_early_is_no_success_where_the_runner_reports():
    assert score("import os; os._exit(0)", "shared").value == 0


@pytest.mark.parametrize(
    "code", [FORGERIES[name] for name in FORGERIES if "report" in name], ids=[n for n in FORGERIES if "report" in n]
)
def test_a_forged_report_from_another_sandbox_is_none(code):
    assert score(code, "isolated", command="python3 -m unittest test_it; true").value == 0
    options = {"command": "python3 -m unittest test_it", "files": {"test_it.py": TESTS}, "output_file": "solution.py"}
    row = Subject("row", "1", output=code, context={"tests_passing": 1})
    result = asyncio.run(VerificationDelta(**options, mode="isolated", timeout=4).score(row))
    assert (result.value, result.signals["tests_after"]) == (0, 0), result


TAP = """import os
ends = os.fdopen(int(os.environ["DICAST_PEER_FD"]), "r+b", buffering=0)
print("1..2", flush=True)
for number in (1, 2):
    try:
        ends.write(b"%d\\n" % number)
        answer = ends.readline().strip()
    except OSError:
        answer = b""
    if not answer:
        break
    print("ok" if answer == b"%d" % (number + 1) else "not ok", number, flush=True)
"""


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("import sys\nfor line in sys.stdin: print(int(line) + 1, flush=True)", 1),
        ("import sys\nsys.stderr.write('ok 1\\nok 2\\n1..2\\n')", 0),
        ("import sys\nfor n, line in enumerate(sys.stdin):\n  if n: sys.stderr.write('not ok\\n')\n  print(int(line) + 1, flush=True)\n  if n: break", 1),
    ],
    ids=["honest", "forged", "honest, and grumbles"],
)  # fmt: skip
def test_further_output_of_a_candidate_is_no_part_of_the_report(code, value):
    options = {"command": "python3 t.py", "report": "tap", "candidate": "python3 solution.py", "files": {"t.py": TAP}}
    assert score(code, "isolated", **options).value == value


def test_what_a_candidate_said_last_is_shown_apart():
    result = score("import os, sys\nsys.stderr.write('alas'); sys.stderr.flush(); os._exit(3)", "isolated")
    assert result.details.endswith("RuntimeError: the candidate has ended\nThe candidate wrote:\nalas")


LOOPS = """import unittest, solution

class Loops(unittest.TestCase):
    def test_map(self):
        for found, wanted in zip(map(solution.f, [1, 2]), [1, 4]):
            self.assertEqual(found, wanted)

    def test_all(self):
        self.assertTrue(all(map(lambda x: solution.f(x) == x * x, [1, 2])))
"""


@pytest.mark.parametrize(
    "raised", ["StopIteration", "StopAsyncIteration", "GeneratorExit", "SystemExit", "UserWarning"]
)
def test_what_a_candidate_raises_does_not_end_the_tests_loops(raised):
    result = score(f"def f(x): raise {raised}('so')", "isolated", files={"test_it.py": LOOPS})
    assert (result.value, result.signals["failed"]) == (0, 2)
    assert f"RuntimeError: {raised}: so" in result.details


def test_a_class_that_is_named_like_a_skip_skips_nothing():
    code = "class SkipTest(Exception): pass\ndef f(x): raise SkipTest('no')"
    assert score(code, "isolated").signals["failed"] == 3


def test_tests_tell_by_the_exception_what_a_function_does():
    tests = (
        "import solution\n"
        "for kind in (ValueError, TypeError, KeyError, IndexError, ZeroDivisionError, FileNotFoundError, NotImplementedError):\n"
        "    try: solution.f(kind.__name__)\n"
        "    except kind as error: assert type(error) is kind and error.args == ('a\\\\nb',), repr(error)\n"
        "    else: raise SystemExit(1)\n"
    )
    code = "import builtins\ndef f(name): raise getattr(builtins, name)('a\\nb')"
    result = score(code, "isolated", command="python3 check.py", files={"check.py": tests})
    assert result.value == 1, result.details


def test_values_of_derived_types_pass_as_the_plain_ones():
    code = (
        "import collections, enum\n"
        "class Colour(enum.IntEnum): RED = 3\n"
        "class Word(str): pass\n"
        "Point = collections.namedtuple('Point', 'x y')\n"
        "def f(): return [collections.Counter('aab'), collections.OrderedDict(a=1), collections.defaultdict(list, a=[1]),\n"
        "    Colour.RED, Word('w'), Point(1, 2), type('Bytes', (bytes,), {})(b'x'), type('Float', (float,), {})(1.5)]\n"
        "def back(value): return type(value).__name__\n"
    )
    tests = (
        "from solution import f, back\nimport collections\n"
        "found = f()\n"
        "assert found == [{'a': 2, 'b': 1}, {'a': 1}, {'a': [1]}, 3, 'w', (1, 2), b'x', 1.5], found\n"
        "assert [type(one) for one in found] == [dict, dict, dict, int, str, tuple, bytes, float]\n"
        "assert back(collections.Counter()) == 'dict'\n"
    )
    result = score(code, "isolated", command="python3 check.py", files={"check.py": tests})
    assert result.value == 1, result.details


PACKAGED = TESTS.replace("from solution", "from pkg.solution")


@pytest.mark.parametrize("files", [{"pkg/__init__.py": ""}, {}], ids=["a package", "a folder"])
def test_an_isolated_module_may_be_in_a_folder(files):
    options = {"output_file": "pkg/solution.py", "files": {"test_it.py": PACKAGED, **files}}
    assert score("def f(x): return x * x", "isolated", **options).value == 1
    assert score(WRONG, "isolated", **options).value == 0


@pytest.mark.parametrize("place", ["pkg", "src/pkg"])
@pytest.mark.parametrize("package", [True, False])
def test_an_isolated_module_imports_from_its_package(tmp_path, place, package):
    folder = tmp_path / place
    folder.mkdir(parents=True)
    (folder / "power.py").write_text("TWO = 2\n")
    if package:
        (folder / "__init__.py").write_text("from .solution import f\n")
    code = (
        "from .power import TWO\nfrom pkg.power import TWO as SAME\ndef f(x): return x ** (TWO if TWO == SAME else 0)\n"
    )
    if place != "pkg" and not package:
        code = code.replace("from pkg.power", "from power")
    options = {
        "command": f"PYTHONPATH={place.removesuffix('pkg')} python3 -m unittest test_it",
        "output_file": f"{place}/solution.py", "files": {"test_it.py": PACKAGED},
        "template": tmp_path, "candidate_files": (place,),
    }  # fmt: skip
    result = score(code, "isolated", **options)
    assert result.value == 1, result.details


def test_a_name_that_is_taken_is_the_candidates(tmp_path):
    tests = TESTS.replace("from solution", "from json_ import f; from json_")
    for name in ("candidate.py", "my-code/json_.py", "json_.py"):
        moved = (
            tests.replace("json_", "candidate")
            if "candidate" in name
            else f"import sys; sys.path.append('my-code')\n{tests}"
        )
        result = score("def f(x): return x * x", "isolated", output_file=name, files={"test_it.py": moved})
        assert result.value == 1, (name, result.details)


def test_an_isolated_candidate_sees_of_a_template_what_it_is_given(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "power.py").write_text("TWO = 2\n")
    (tmp_path / "library.py").write_text("")
    (tmp_path / "test_it.py").write_text(TESTS)
    see = "import os, sys\nsys.stderr.write(str(sorted(n for n in os.listdir('.') if n[0] not in '._'))); sys.stderr.flush(); os._exit(1)"
    for candidate_files, seen in ((None, []), (("lib/",), ["lib"]), (("test_it.py",), ["test_it.py"])):
        result = score(see, "isolated", files=None, template=tmp_path, candidate_files=candidate_files)
        assert result.details.endswith(str(sorted(["solution.py", *seen]))), result.details
    code = "from lib.power import TWO\ndef f(x): return x ** TWO\n"
    assert score(code, "isolated", files=None, template=tmp_path, candidate_files=("lib",)).value == 1
    assert score(code, "isolated", files=None, template=tmp_path).value == 0


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
    result = score(code, "isolated", command=("python3", "check.py"), files={"check.py": tests})
    assert result.value == 1, result.details


def test_the_tests_are_not_to_be_seen_by_an_isolated_candidate():
    code = "import os\ndef f(x): raise ValueError(str(sorted(os.listdir('.'))))"
    result = score(code, "isolated")
    assert "test_it" not in result.details.partition("\n")[2].split("ValueError: ")[1].split("\n")[0]


def test_a_candidate_of_another_language_talks_by_its_stdin_and_stdout():
    tests = (
        "import os\nends = os.fdopen(int(os.environ['DICAST_PEER_FD']), 'r+b', buffering=0)\nends.write(b'21\\n')\n"
        "assert ends.read(10) == b'42\\n'\n"
    )
    result = score(
        "read n; echo $((n * 2))", "isolated", candidate="sh solution.py", command="python3 check.py", files={"check.py": tests}
    )  # fmt: skip
    assert result.value == 1, result.details
