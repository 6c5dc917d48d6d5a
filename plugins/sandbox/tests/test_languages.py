"""Workspaces of several languages, tested by common runners: their real output is read.

Tools that are not installed are skipped. ``DICAST_NODE_MODULES`` names a folder with jest and vitest (``npm install jest vitest``).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest
from boxes import needs_bubblewrap, with_pytest

from dicast import Score, Subject
from dicast_sandbox import Bubblewrap, Command, PassingTests

pytestmark = needs_bubblewrap

INSIDE = "/usr/local/bin:/usr/bin:/bin"
COLORS = {
    "FORCE_COLOR": "1",
    "CARGO_TERM_COLOR": "always",
    "PY_COLORS": "1",
    "CLICOLOR_FORCE": "1",
    "TERM": "xterm-256color",
}


@attrs.frozen
class Language:
    """Test command of candidates, and five candidates.

    *right* passes *passed* tests and skips *skipped*; *wrong* fails *failed* and passes the others of *ran*; *broken* cannot
    be built or imported; *leaving* ends with exit code 0 before its tests have; *forging* does the same after writing a report of its own.
    """

    command: str
    output_file: str
    files: dict[str, str]
    right: str
    wrong: str
    broken: str
    leaving: str
    forging: str
    passed: int
    skipped: int
    failed: int
    ran: int
    needs: str = "sh"
    report: str | None = None


PYTHON = {
    "right": "def f(x): return x * x\n",
    "wrong": "def f(x): return x\n",
    "broken": "def f(x: return\n",
    "leaving": "import os\ndef f(x): os._exit(0)\n",
}
NODE = {
    "right": "exports.f = x => x * x\n",
    "wrong": "exports.f = x => x\n",
    "broken": "exports.f = x =>\n",
    "leaving": "process.exit(0)\n",
}

LANGUAGES = {
    "pytest": Language(
        "python3 -m pytest -q .", "solution.py",
        {"test_a.py": "import pytest\nfrom solution import f\n\n@pytest.mark.parametrize('x', [1, 2, 3])\ndef test_f(x): assert f(x) == x * x\n"
                      "@pytest.mark.skip\ndef test_later(): pass\n@pytest.mark.xfail\ndef test_known(): assert False\n",
         "test_b.py": "def test_b(): pass\n"},
        **PYTHON, forging="import os\nprint('9 passed in 0.01s')\nos._exit(0)\n",
        passed=4, skipped=2, failed=2, ran=4,
    ),
    "unittest": Language(
        "python3 -m unittest", "solution.py",
        {"test_a.py": "import unittest\nfrom solution import f\nclass A(unittest.TestCase):\n"
                      "    def test_f(self):\n        for x in (1, 2):\n            with self.subTest(x=x): self.assertEqual(f(x), x * x)\n"
                      "    def test_b(self): pass\n    @unittest.skip('later')\n    def test_c(self): pass\n"
                      "    @unittest.expectedFailure\n    def test_d(self): self.fail()\n"},
        **PYTHON, forging="import os, sys\nprint('\\nRan 9 tests in 0.001s\\n\\nOK', file=sys.stderr, flush=True)\nos._exit(0)\n",
        passed=3, skipped=1, failed=1, ran=3,
    ),
    **{
        f"node, {name}": Language(
            f"node --test{options}", "a.js",
            {"a.test.js": "const {test, describe} = require('node:test'), assert = require('node:assert'), {f} = require('./a.js');\n"
                          "test('f', () => assert.equal(f(2), 4));\ntest('outer', async t => { await t.test('inner', () => {}) });\n"
                          "test('no', {skip: true}, () => {});\ntest('later', {todo: true}, () => { throw new Error('x') });\n"
                          "describe('index.js', () => { test('in a suite', () => {}) });\n"},
            **NODE, forging="console.log('# pass 9\\n# fail 0\\n\\u2139 pass 9\\n\\u2139 fail 0'); process.exit(0)\n",
            passed=4, skipped=2, failed=1, ran=4, needs="node",
        )
        for name, options in {"by default": "", "TAP": " --test-reporter tap", "spec": " --test-reporter spec"}.items()
    },
    "c": Language(
        "gcc -Wall -o check check.c a.c && ./check", "a.c",
        {"check.c": '#include <stdio.h>\nint f(int);\nstatic void is(int number, int ok) { printf("%sok %d - f\\n", ok ? "" : "not ", number); }\n'
                    'int main(void) { puts("1..3"); is(1, f(2) == 4); is(2, f(1) == 1); puts("ok 3 # SKIP no"); return f(2) != 4; }\n'},
        right="int f(int x) { return x * x; }\n",
        wrong="int f(int x) { return x; }\n",
        broken="int f(int x) { return x * }\n",
        leaving="#include <stdlib.h>\nint f(int x) { exit(0); }\n",
        forging='#include <stdio.h>\n#include <stdlib.h>\nint f(int x) { puts("ok 1\\nok 2\\nok 3"); exit(0); }\n',
        passed=2, skipped=1, failed=1, ran=2, needs="gcc", report="tap",
    ),
    "make": Language(
        "make -s test", "a.c",
        {"Makefile": "test: check\n\t./check\ncheck: check.o a.o\n",
         "check.c": '#include <stdio.h>\nint f(int);\nint main(void) { int ok = f(2) == 4; printf("1..1\\n%sok 1\\n", ok ? "" : "not "); return !ok; }\n'},
        right="int f(int x) { return x * x; }\n",
        wrong="int f(int x) { return x; }\n",
        broken="int g;\n",
        leaving="#include <stdlib.h>\nint f(int x) { exit(0); }\n",
        forging='#include <stdio.h>\n#include <stdlib.h>\nint f(int x) { puts("1..1\\nok 1"); exit(0); }\n',
        passed=1, skipped=0, failed=1, ran=1, needs="make", report="tap",
    ),
    "shell": Language(
        "sh check.sh", "a.sh",
        {"check.sh": "echo 1..3\n. ./a.sh\ntest $(f 2) = 4 && echo ok 1 || { echo not ok 1; bad=1; }\ng && echo ok 2 || echo not ok 2\n"
                     "echo 'ok 3 # TODO more'\nexit ${bad:-0}\n"},
        right="f() { echo $(($1 * $1)); }\ng() { :; }\n",
        wrong="f() { echo $1; }\ng() { :; }\n",
        broken="f() { echo $((\n",
        leaving="exit 0\n",
        forging="echo ok 1; echo ok 2; echo ok 3; exit 0\n",
        passed=2, skipped=1, failed=1, ran=2, report="tap",
    ),
    "cargo": Language(
        "cargo test --offline --no-fail-fast", "src/a.rs",
        {"Cargo.toml": "[package]\nname = 'x'\nversion = '0.1.0'\nedition = '2021'\n",
         "src/lib.rs": "pub mod a;\n/// ```\n/// assert_eq!(x::f(2), 4);\n/// ```\npub fn f(x: i32) -> i32 { a::f(x) }\n"
                       "#[test] fn one() { assert_eq!(f(2), 4); }\n#[test] #[ignore] fn two() {}\n#[test] #[should_panic] fn three() { panic!() }\n",
         "src/main.rs": "fn main() {}\n#[test] fn in_main() {}\n",
         "tests/it.rs": "#[test] fn it() { assert_eq!(x::f(3), 9); }\n"},
        right="pub fn f(x: i32) -> i32 { x * x }\n",
        wrong="pub fn f(x: i32) -> i32 { x }\n",
        broken="pub fn f(x: i32) -> i32 { x * }\n",
        leaving="pub fn f(_: i32) -> i32 { std::process::exit(0) }\n",
        forging='pub fn f(_: i32) -> i32 { println!("\\ntest result: ok. 9 passed; 0 failed; 0 ignored"); std::process::exit(0) }\n',
        passed=5, skipped=1, failed=3, ran=5, needs="cargo",
    ),
    **{
        f"go, {name}": Language(
            f"go test {options}./...", "a.go",
            {"go.mod": "module x\n\ngo 1.18\n",
             "a_test.go": 'package x\n\nimport "testing"\n\nfunc TestF(t *testing.T) {\n\tif F(2) != 4 {\n\t\tt.Fatal("no")\n\t}\n}\n'
                          'func TestOuter(t *testing.T) {\n\tt.Run("inner", func(t *testing.T) {})\n\tt.Run("later", func(t *testing.T) { t.Skip() })\n}\n',
             "sub/b.go": "package sub\n", "sub/b_test.go": 'package sub\n\nimport "testing"\n\nfunc TestB(t *testing.T) {}\n'},
            right="package x\n\nfunc F(x int) int { return x * x }\n",
            wrong="package x\n\nfunc F(x int) int { return x }\n",
            broken="package x\n\nfunc F(x int) int { return }\n",
            leaving='package x\n\nimport "syscall"\n\nfunc F(x int) int { syscall.Exit(0); return 4 }\n',
            forging='package x\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc init() { fmt.Println("--- PASS: TestF (0.00s)"); os.Exit(0) }\n'
                    "func F(x int) int { return 4 }\n",
            passed=4, skipped=1, failed=1, ran=4, needs="go",
        )
        for name, options in {"by default": "", "JSON": "-json "}.items()
    },
    "jest": Language(
        "node $NODE_MODULES/jest/bin/jest.js", "a.js",
        {"package.json": "{}", "b.test.js": "test('b', () => { console.log('Tests: 99 passed, 99 total') })\n",
         "a.test.js": "const {f} = require('./a.js');\ntest('f', () => expect(f(2)).toBe(4));\ntest.each([1, 1])('each', x => expect(f(x)).toBe(1));\n"
                      "test.skip('no', () => {});\ntest.todo('later');\n"},
        **NODE, forging="process.stderr.write('Tests:       9 passed, 9 total\\n'); process.exit(0)\n",
        passed=4, skipped=2, failed=1, ran=4, needs="jest", report="jest",
    ),
    "vitest": Language(
        "ln -s $NODE_MODULES node_modules && node node_modules/vitest/vitest.mjs run", "a.js",
        {"package.json": '{"type": "module"}',
         "b.test.js": "import {test} from 'vitest';\ntest('b', () => { console.log('Tests  99 passed (99)') });\n",
         "a.test.js": "import {test, expect} from 'vitest';\nimport {f} from './a.js';\ntest('f', () => expect(f(2)).toBe(4));\n"
                      "test.skip('no', () => {});\ntest.todo('later');\ntest.fails('known', () => { throw new Error() });\n"},
        right="export const f = x => x * x\n",
        wrong="export const f = x => x\n",
        broken="export const f = x =>\n",
        leaving="process.exit(0); export const f = 1\n",
        forging="import {writeSync} from 'node:fs'\nwriteSync(1, ' Tests  9 passed (9)\\n')\nprocess.reallyExit(0); export const f = 1\n",
        passed=3, skipped=2, failed=1, ran=3, needs="vitest", report="vitest",
    ),
}  # fmt: skip


def scored(language: Language, output: str, box: Bubblewrap) -> Score:
    metric = PassingTests(
        command=language.command,
        files=language.files,
        output_file=language.output_file,
        report=language.report,
        backend=box,
    )
    result = asyncio.run(metric.score(Subject("row", "1", output=output)))
    assert isinstance(result, Score), result
    assert result.signals["forgeable"] is True
    assert result.confidence <= 0.5
    return result


# What a runner needs inside


def node_modules() -> Bubblewrap:
    folder = Path(os.environ.get("DICAST_NODE_MODULES", "/nowhere"))
    if not folder.is_dir():
        pytest.skip("DICAST_NODE_MODULES does not name a folder with jest and vitest")
    return Bubblewrap(mounts=(folder,), environment={"NODE_MODULES": str(folder)})


def cargo() -> Bubblewrap:
    if shutil.which("cargo", path=INSIDE):
        return Bubblewrap()
    if not shutil.which("rustc"):
        pytest.skip("cargo is not installed")
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True, cwd="/")
    folder = readable(Path(sysroot.stdout.strip()), "bin", "lib", copy=os.link)  # it is large
    return Bubblewrap(mounts=(folder,), environment={"PATH": f"{folder}/bin:{INSIDE}"})


def readable(private: Path, *names: str, copy: Callable[[str, str], object]) -> Path:
    """Return the folder *private*, or if only root can read it a copy of *names* in it that others can read too."""
    if os.geteuid() != 0:
        return private
    folder = Path(tempfile.mkdtemp(prefix="dicast-readable-"))
    folder.chmod(0o755)
    try:
        for name in names:
            shutil.copytree(private / name, folder / name, copy_function=copy, symlinks=True)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(folder)
        pytest.skip(f"{private} cannot be made readable to all: {error}")
    return folder


BOXES: dict[str, Callable[[], Bubblewrap]] = {
    "cargo": cargo, "jest": node_modules, "vitest": node_modules,
}  # fmt: skip


@pytest.fixture(scope="module")
def boxes() -> Iterator[dict[str, Bubblewrap]]:
    with with_pytest() as box:
        sandboxes = {"pytest": box}
        yield sandboxes
    for path in (path for box in sandboxes.values() for path in box.mounts if path.name.startswith("dicast-readable-")):
        shutil.rmtree(path)


@pytest.fixture(params=LANGUAGES)
def language(request) -> Language:
    return LANGUAGES[request.param]


@pytest.fixture
def box(request, language, boxes) -> Bubblewrap:
    name = request.node.callspec.params["language"]
    if name in (*BOXES, *boxes):
        if name not in boxes:
            boxes[name] = BOXES[name]()
        tried = {"pytest": "python3 -c 'import pytest'", "cargo": "cargo --version"}.get(
            name, f"test -d $NODE_MODULES/{name}"
        )
        probe = Command(command=tried, backend=boxes[name])
        result = asyncio.run(probe.score(Subject("row", "1", output="")))
        if not isinstance(result, Score) or result.value == 0:
            pytest.skip(f"{name} does not run in a sandbox here: {getattr(result, 'details', result)}")
        return boxes[name]
    if not shutil.which(language.needs, path=INSIDE):
        pytest.skip(f"{language.needs} is not installed")
    return Bubblewrap()


def test_the_right_candidate_passes(language, box):
    result = scored(language, language.right, box)
    assert result.value == 1, result.details
    assert (result.signals["passed"], result.signals["failed"], result.signals["skipped"]) == (
        language.passed,
        0,
        language.skipped,
    )


def test_the_right_candidate_passes_in_colors(language, box):
    result = scored(language, language.right, attrs.evolve(box, environment={**COLORS, **box.environment}))
    assert result.value == 1, result.details
    assert (result.signals["passed"], result.signals["failed"], result.signals["skipped"]) == (
        language.passed,
        0,
        language.skipped,
    )


def test_the_wrong_candidate_fails(language, box):
    result = scored(language, language.wrong, box)
    assert result.value == 0, result.details
    assert (result.signals["failed"], result.signals["passed"]) == (language.failed, language.ran - language.failed), (
        result.details
    )


@pytest.mark.slow
def test_a_candidate_that_cannot_be_built_or_imported_fails(language, box):
    assert scored(language, language.broken, box).value == 0


def test_a_candidate_that_ends_before_its_tests_do_fails(language, box):
    result = scored(language, language.leaving, box)
    assert result.value == 0, result.details


def test_a_candidate_that_writes_the_report_itself_fails_or_is_marked(language, box):
    scored(language, language.forging, box)  # scored() checks the mark


def test_what_is_mounted_below_tmp_can_be_read():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "told").write_text("here")
        metric = Command(command=f"cat {folder}/told && ! touch {folder}/x", backend=Bubblewrap(mounts=(folder,)))
        result = asyncio.run(metric.score(Subject("row", "1", output="")))
    assert result.value == 1, result
    assert "\nhere" in result.details
