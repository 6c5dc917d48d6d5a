"""What the tests of every folder share: servers on loopback, how many examples are drawn, and how long a test may take."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# How long an example takes says what else the machine does: speed is measured in benchmarks. The default draws other examples each time;
# all tests draw the same ones each time, so a failure comes from the change under test and not from a new draw.
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("all", deadline=None, derandomize=True)

WAITS = 5
"""How many times longer than it computes a test may take: what else the machine does makes it wait, too."""

DAY = 24 * 60 * 60

TESTS = Path(__file__).parent / "tests"


def load(name: str) -> Any:
    """Import ``tests/NAME.py``, which is on nobody's path."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, TESTS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--bar`` and ``--slow-of``."""
    what = f"fail a test that is not marked slow and computes for longer, in its processes, too, or takes {WAITS} times as long"
    parser.addoption("--bar", type=float, metavar="SECONDS", help=what)
    what = "run of the tests in this file or folder only those that are marked slow; may be repeated"
    parser.addoption("--slow-of", action="append", default=[], metavar="PATH", help=what)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes more than there are cores: tests wait much of their time, for processes, servers and the disk."""
    return (os.cpu_count() or 1) + 2


def pytest_configure(config: pytest.Config) -> None:
    """Draw all examples if all tests run, and let processes that tests start compile once and parse no options of this session."""
    settings.load_profile("quick" if config.option.markexpr else "all")
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # What Hypothesis has read of the modules, also for tests that run pytest in another folder.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(config.rootpath / ".hypothesis"))
    if hasattr(config, "workerinput") or not getattr(
        config.option, "numprocesses", None
    ):  # workers read the options, too
        os.environ.pop("PYTEST_ADDOPTS", None)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Let each process begin a folder at another file: compiling takes longer than reading what another has compiled."""
    report = yield
    worker = getattr(collector.config, "workerinput", None)
    if worker and isinstance(collector, pytest.Directory) and report.result:
        first = len(report.result) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        report.result[:] = report.result[first:] + report.result[:first]
    return report


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of ``--slow-of`` that marks no test: most of its tests would be left out after their collection."""
    names, root = {str(path) for path in (collection_path, *collection_path.parents)}, config.rootpath
    if collection_path.suffix != ".py" or names.isdisjoint(f"{root}{os.sep}{path}" for path in config.option.slow_of):
        return None
    return b"slow" not in collection_path.read_bytes() or None


def in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests by file, the files with the most slow tests and then the most tests first: all processes have to agree on the order.

    A process runs whole files, so it builds the shared fixtures of a file once. Long files may not come last.
    """
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    count = Counter(item.path for item in items)
    return sorted(items, key=lambda item: (-slow[item.path], -count[item.path], item.path))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put in order what each process has read in another, and leave out what ``--slow-of`` says."""
    if hasattr(config, "workerinput"):
        items[:] = in_order(items)
    folders = [config.rootpath / path for path in config.option.slow_of]
    below = {path for path in {item.path for item in items} if any(map(path.is_relative_to, folders))}
    left = [item for item in items if item.path in below and not item.get_closest_marker("slow")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item.path not in below or item.get_closest_marker("slow")]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Look for no garbage while 20,000 tests are collected, nor among them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def computed() -> float:
    """Return the seconds for which this process and the processes it has waited for were computing."""
    return sum(os.times()[:4]) + load("forked").Forked.origin.seconds


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Wait for midnight UTC in the minute before it: runs of a test are of one day, which caps and reports count by."""
    left = DAY - time.time() % DAY
    if left < 60:
        time.sleep(left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Hold a test to the bar, if there is one; what its fixtures take is not counted, for many are shared."""
    bar = item.config.option.bar
    if not bar:  # asking the system for the seconds takes as long as many a test
        yield
        return
    began, before = time.monotonic(), computed()
    yield
    used, passed = computed() - before, time.monotonic() - began
    # A process that an earlier test began counts where it is waited for, with more seconds than have passed.
    over = min(used, passed) > bar or passed > WAITS * bar
    if over and not item.get_closest_marker("slow"):
        pytest.fail(
            f"takes {used:.1f} s of computing and {passed:.1f} s in all: make it quicker, or mark it slow",
            pytrace=False,
        )


@pytest.fixture(scope="session", autouse=True)
def probes_forked() -> Iterator[None]:
    """Import a plugin in a forked process; a plugin that a test installs has a process in which nothing was prepared."""
    from dicast.testing import conformance  # the kernel, which not every process of pytest needs

    probe, path = conformance.probe, os.environ.get("PYTHONPATH")
    probes = cache(lambda: load("probes").Probes())

    def forked(plugin: str) -> dict[str, Any]:
        return probe(plugin) if os.environ.get("PYTHONPATH") != path else probes().probe(plugin)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conformance, "probe", forked)
        yield
    if probes.cache_info().currsize:
        probes().stop()


@pytest.fixture(scope="session", autouse=True)
def metadata_read_once() -> Iterator[None]:
    """Read once what the environment's distributions say of themselves; what a test installs is read each time."""
    from importlib.metadata import Distribution, PathDistribution

    site = sysconfig.get_path("purelib")

    def once(read: Callable[..., Any]) -> Callable[..., Any]:
        found = {}

        def known(self: Any, *about: str) -> Any:
            key = str(self._path), *about
            if not key[0].startswith(site):
                return read(self, *about)
            if key not in found:
                found[key] = read(self, *about)
            return found[key]

        return known

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PathDistribution, "read_text", once(PathDistribution.read_text))
        patch.setattr(PathDistribution, "metadata", property(once(Distribution.metadata.fget)))
        patch.setattr(PathDistribution, "entry_points", property(once(Distribution.entry_points.fget)))
        yield


@pytest.fixture(scope="session", autouse=True)
def plugins_described_once() -> Iterator[None]:
    """Describe the plugins of this repository once, not for each pipeline; see ``tests/described_once.py``."""
    with pytest.MonkeyPatch.context() as patch:
        load("described_once").describe_once(patch)
        yield


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The system's Chromium, headless; never playwright's download.

    While it runs, playwright's event loop occupies this thread: tests that run another loop belong in other modules.
    """
    browsers = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")  # the first is quickest
    executable = next(filter(None, map(shutil.which, browsers)), None)
    if executable is None:
        pytest.skip("there is no Chromium here: apt-get install chromium-headless-shell")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield load("patient_browser").PatientBrowser(browser)
        browser.close()


@pytest.fixture(scope="session", autouse=True)
def dicast_forked() -> Iterator[None]:
    """Fork the processes of dicast that tests start from one that has imported it; see ``tests/forked.py``."""
    with pytest.MonkeyPatch.context() as patch:
        origin = load("forked").fork_dicast(patch)
        yield
    origin.stop()


@pytest.fixture
def processes_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start every process of the test normally, never as a fork. Tests of process ids and zombies need it."""
    monkeypatch.setattr(subprocess, "Popen", load("forked").Started)


@pytest.fixture
def batch_server() -> Iterator[Any]:
    """A batch API in the OpenAI format; see ``tests/batch_server.py``."""
    server = load("batch_server").BatchServer().start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def type_checkers() -> Any:
    """Runs of mypy and basedpyright; see ``tests/type_checkers.py``."""
    for name in ("mypy", "basedpyright"):
        pytest.importorskip(name, reason=f"{name} is in the group lint")
    return load("type_checkers")


@pytest.fixture(scope="session")
def api_signatures() -> Any:
    """The comparison of the public API with its frozen form; see ``tests/api_signatures.py``."""
    return load("api_signatures")


@pytest.fixture
def chat_server() -> Iterator[Any]:
    """An OpenAI-compatible endpoint that does what it is told; see ``tests/chat_server.py``."""
    server = load("chat_server").ChatServer().start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def unused_port() -> Callable[[], int]:
    """Return a port of loopback for a server that starts later or again; see ``tests/ports.py``."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return load("ports").Ports(worker).unused


@pytest.fixture(scope="session")
def loopback() -> Any:
    """Serve HTTP requests with ``with loopback(answer) as url``; see ``tests/loopback.py``."""
    return load("loopback").serve


@pytest.fixture
def claude() -> Any:
    """Anthropic's Messages API as an answer of ``chat_server``; see ``tests/claude.py``."""
    return load("claude").Claude(load("chat_server").Answer)


@pytest.fixture
def endpoint_modes(chat_server: Any) -> Any:
    """Quirks of endpoints as answers for ``chat_server``; see ``tests/endpoint_modes.py``."""
    return load("endpoint_modes")


@pytest.fixture(scope="session")
def model_server() -> Iterator[Any]:
    """A real model behind an OpenAI-compatible endpoint, one for all tests; see ``tests/model_server.py``."""
    server = load("model_server").ModelServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def model_file() -> Path:
    """The path of a real model's GGUF file."""
    path: Path = load("model_server").model_file()
    return path


@pytest.fixture(scope="session")
def small_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a GGUF file of random weights, which loads in milliseconds; see ``tests/small_gguf.py``."""
    path: Path = load("small_gguf").write_small_gguf(tmp_path_factory.mktemp("models") / "small.gguf")
    return path


@pytest.fixture(scope="session")
def run_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that runs a *script* with packages in an environment of its own, and returns the folder, its first argument."""

    def run(script: Path, *arguments: str, packages: tuple[str, ...], module: str) -> Path:
        if shutil.which("uv") is None:
            pytest.skip(f"uv, which installs {packages[0]}, is not installed")
        folder = tmp_path_factory.mktemp("packages")
        cache = os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))
        environment = {**os.environ, "HOME": str(folder), "UV_CACHE_DIR": cache}
        for name in ("UV_ENV_FILE", "PYTHONWARNINGS"):  # warnings of other packages are no errors
            environment.pop(name, None)
        options = [word for package in packages for word in ("--with", package)]
        command = ["uv", "run", "-q", "--no-project", "--python", sys.executable, *options, "python"]
        call = partial(subprocess.run, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        # Found and not imported, which may take seconds.
        search = f"from importlib.util import find_spec; assert all(map(find_spec, {module.split(', ')}))"
        if (done := call([*command, "-c", search])).returncode:
            pytest.skip(f"{packages[0]} cannot be installed here: {done.stderr.strip()[-200:]}")
        done = call([*command, str(script), str(folder), *arguments])
        assert done.returncode == 0, done.stdout + done.stderr
        return folder

    return run
