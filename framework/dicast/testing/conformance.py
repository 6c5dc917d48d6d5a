"""Checks for components of every kind; an author inherits the checks and names the component."""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, chdir
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar, NoReturn, TypeVar

import attrs
import pytest

from .._kernel.contract.kinds import KINDS, Component
from .._kernel.pipeline import types as hints
from .._kernel.pipeline.describe import describe
from .._kernel.stream.opening import open_component
from .._kernel.values import Cost, Rubric, RunContext, Secret
from .._kernel.values.errors import ConfigError, PluginError, RequestError
from .members import misnamed, mistyped, private_imports, undocumented, unread_fault
from .pipeline import Bench
from .probe import probe
from .secrets import SHORTEST, planted_secrets, secrets, texts_of
from .uses import FirstUse
from .watching import BLOCKED_SECONDS, Watch

T = TypeVar("T")

IMPORT_SECONDS = 0.5
"""CPU time that importing a plugin may take, in addition to the kernel's own."""

_IMPORTS = pytest.StashKey[dict[tuple[str, str | None], dict[str, object]]]()
"""Reports of a session by plugin and PYTHONPATH. All components of a plugin have the same."""

_GUARD = "test_contract_is_intact"
_LOADED, _BUILT = "test_has_name_version_and_summary", "test_has_the_methods_of_its_kind"
"""Checks that fail if the component does not load, or cannot be built."""

_PROTOCOLS = tuple(kind.protocol for kind in KINDS.values())
_UNREADABLE = (Rubric, Secret, Cost)
"""Types of options that a component stores in another form than the file's."""


class Contract:
    """Base of classes with checks. A subclass may replace a check only with a reason."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a class that switches the contract's own check off."""
        super().__init_subclass__(**options)
        if _GUARD in vars(cls) and not cls.__module__.startswith(__package__ or ""):
            raise TypeError(f"{cls.__qualname__} overrides {_GUARD}, which keeps the other checks in place; remove it")

    def test_contract_is_intact(self) -> None:
        """No inherited check is dropped or replaced, except by a check marked with ``xfail(reason=…)``."""
        changed = sorted(name for name, check in _contract(type(self)).items() if _changed(type(self), name, check))
        assert not changed, (
            f"{type(self).__name__} drops or overrides {', '.join(changed)}; if the component really cannot pass, "
            'override it with @pytest.mark.xfail(reason="why")'
        )


class Conformance(Contract):
    """Checks for components of every kind. Subclass the class of the kind, such as :class:`MetricConformance`.

    The attribute that is called like the kind has the component's name: ``metric = "brevity/brevity"``.

    - ``options``: the options of the component; at least its required options.
    - ``files``: text files by name, written before each check. Relative paths among the options start in their folder.
    - ``components``: components to which the options refer by a bare name: ``{"grader": FakeJudge()}``.
    """

    kind: ClassVar[str]
    options: Mapping[str, object] = {}
    files: Mapping[str, str] = {}
    components: Mapping[str, object] = {}
    _watch: Watch | None = None
    _check: str | None = None
    _imports: dict[tuple[str, str | None], dict[str, object]] | None = None

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Bench:
        """Return a bench that builds components in a folder with the ``files``."""
        for name, text in self.files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        return Bench(tmp_path, self.components)

    @pytest.fixture(autouse=True)
    def _name_of_the_check(self, request: pytest.FixtureRequest) -> None:
        self._check = request.function.__name__
        self._imports = request.config.stash.setdefault(_IMPORTS, {})

    @pytest.fixture
    def component(self, bench: Bench) -> Any:
        """Return the component, built with its ``options`` and not opened."""
        return self.built(bench)

    @property
    def named(self) -> str:
        """The component's name."""
        name = getattr(self, self.kind, None)
        if not isinstance(name, str) or "/" not in name:
            raise TypeError(f'{type(self).__name__} must say which {self.kind} it checks: {self.kind} = "PLUGIN/NAME"')
        return name

    @property
    def plugin(self) -> str:
        """The plugin's name."""
        return self.named.partition("/")[0]

    def offer(self, bench: Bench) -> Component:
        """Return the component that the plugin's entry point offers under the name. If it does not load, one check fails, and others are skipped."""
        try:
            return bench.registry.find(self.named, (self.kind,))
        except PluginError as error:
            fault = error
        return self._stopped(_LOADED, f"{self.named} does not load", fault)

    def built(self, bench: Bench) -> Any:
        """Return the component, built with its ``options``. If they are invalid, one check fails, and others are skipped."""
        self.offer(bench)
        try:
            return bench.build(self.kind, self.named, self.options)
        except ConfigError as error:
            fault = error
        return self._stopped(_BUILT, f"{self.named} cannot be built with the options of {type(self).__name__}", fault)

    def _stopped(self, check: str, fault: str, error: Exception) -> NoReturn:
        """Fail the test named *check* with the *error*; skip any other test, and name *check* as the reason."""
        if self._check is None:  # called without pytest
            raise error
        if self._check == check:
            pytest.fail(f"{fault}: {error}", pytrace=False)
        pytest.skip(f"{fault}: see {check}")

    def opened(self, component: Any, folder: Path, use: Callable[[Any], Awaitable[T]]) -> T:
        """Open *component* as a run does, pass the live object to *use*, and close it."""

        async def work() -> T:
            async with AsyncExitStack() as stack:
                live = await open_component(component, context(folder), stack)
                if self._watch is not None:
                    await stack.enter_async_context(self._watch.beating())
                return await use(live)

        return asyncio.run(work())

    def use(self, component: Any, bench: Bench) -> object:
        """Use *component* like a run, and return its answers."""

        async def nothing(live: Any) -> None:
            return None

        return self.opened(component, bench.folder, nothing)

    def watched(self, bench: Bench, options: Mapping[str, object] | None = None) -> tuple[Watch, object]:
        """Build the component, use it under a watch, and return the watch with the answers."""
        watch, component, answers = self._watched(bench, options)
        return watch, [repr(component), answers]

    def _watched(self, bench: Bench, options: Mapping[str, object] | None = None) -> tuple[Watch, Any, Any]:
        watch = Watch(self.offer(bench).cls.__module__)
        with watch.recording():
            component = self.built(bench) if options is None else bench.build(self.kind, self.named, options)
            self._watch = watch
            try:
                answers = self.use(component, bench)
            finally:
                self._watch = None
        return watch, component, answers

    def _first_use(self, bench: Bench) -> FirstUse:
        """Return the first use of the component."""
        current = bench.folder / "current-directory"
        current.mkdir(exist_ok=True)
        with chdir(current):
            watch, component, answers = self._watched(bench)
        return FirstUse(component, watch, answers, sorted(path.name for path in current.iterdir()))

    def test_loads_by_entry_point_in_a_fresh_process(self) -> None:
        """The plugin's module imports, quickly, without heavy libraries, other plugins or the network."""
        key = self.plugin, os.environ.get("PYTHONPATH")
        reports = {} if self._imports is None else self._imports
        report = reports[key] = reports.get(key) or probe(self.plugin)
        assert report["error"] is None, report["error"]
        assert not report["heavy"], (
            f"importing {self.plugin!r} brings {report['heavy']}; import them where they are used"
        )
        assert not report["others"], f"importing {self.plugin!r} brings other plugins: {report['others']}"
        if report["seconds"] > IMPORT_SECONDS:  # type: ignore[operator]  # a number, from JSON
            report = reports[key] = probe(self.plugin)  # the first time may have compiled it
        assert report["seconds"] <= IMPORT_SECONDS, f"the import takes {report['seconds']} s of CPU"  # type: ignore[operator]  # as above

    def test_has_name_version_and_summary(self, bench: Bench) -> None:
        """Users see name, version and summary in ``dicast plugins --load``."""
        offer = self.offer(bench)
        assert offer.name == self.named
        assert offer.version != "unknown", f"{offer.distribution} has no version"
        assert offer.summary, f"{offer.cls.__qualname__} needs a docstring; its first line is what users see"

    def test_every_option_is_documented(self, bench: Bench) -> None:
        """The docstring of the class, of a base class or of the function, or the README, names each option as a whole word."""
        offer = self.offer(bench)
        silent = undocumented(offer.cls, _readme(offer.distribution))
        assert not silent, (
            f"the docstring of {offer.cls.__qualname__} does not mention {', '.join(silent)}, and neither does the README"
        )

    def test_members_have_the_names_that_dicast_reads(self, component: Any, bench: Bench) -> None:
        """A member with a misspelled name, or of another kind, has no effect."""

        async def live_class(live: Any) -> type[Any]:
            return type(live)

        classes = {type(component), self.opened(component, bench.folder, live_class)}
        wrong = sorted({fault for cls in classes for fault in misnamed(self.kind, cls)})
        assert not wrong, "\n".join(wrong)

    def test_every_option_is_read(self, bench: Bench) -> None:
        """An option that no code reads has no effect, and its user cannot know."""
        fault = unread_fault(self.kind, self.offer(bench).cls)
        assert fault is None, f"{fault}. Such an option has no effect"

    def test_imports_public_modules_of_dicast_alone(self, bench: Bench) -> None:
        """A private module of dicast may change in any version."""
        cls = self.offer(bench).cls
        private = [] if cls.__module__.startswith("dicast.") else [*private_imports(cls)]
        assert not private, f"{private[0]}, which is private; import dicast, or a public module such as dicast.toolkit"

    def test_options_have_the_types_of_secrets_and_paths(self, bench: Bench) -> None:
        """A secret in a ``str`` is stored and shown; a path in a ``str`` depends on the current directory."""
        wrong = list(mistyped(self.kind, self.offer(bench).cls))
        assert not wrong, "\n".join(wrong)

    def test_writes_nothing_in_the_current_directory(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """Relative paths begin at the folder of the pipeline file, not at the current directory."""
        names = self._first_use(bench).names
        assert not names, (
            f"{self.named} writes {', '.join(names)} in the current directory; use the type pathlib.Path for the option, "
            "or begin the path with run.base"
        )

    def test_prints_nothing_on_standard_output(self, bench: Bench) -> None:
        """Standard output belongs to the results of a command, such as one JSON document."""
        watch = self._first_use(bench).watch
        places = [f"{text.strip()!r:.100} ({place})" for text, place in watch.printed]
        assert not places, f"{self.named} prints on standard output: {places[0]}; raise, return, or use logging"

    def test_leaves_the_event_loop_free(self, bench: Bench) -> None:
        """While a component waits in a ``def``, or blocks in an ``async def``, all other calls wait too."""
        watches = [self._first_use(bench).watch.blocked]
        while (
            watches[-1][0] > BLOCKED_SECONDS and len(watches) < 4
        ):  # the first use may import libraries, and other processes may slow it down
            watches.append(self.watched(bench)[0].blocked)
        seconds, place = min(watches)
        assert seconds <= BLOCKED_SECONDS, (
            f"{self.named} blocks the event loop for {seconds:.2f} s ({place or 'outside its own code'}); "
            "await, or call asyncio.to_thread"
        )

    def test_shows_no_secret(self, bench: Bench) -> None:
        """No message, repr, log record or printed text contains the value of a secret option."""
        options = {**self.options, **planted_secrets(self.offer(bench).cls, self.options)}
        try:
            component = bench.build(self.kind, self.named, options)
        except ConfigError:  # the planted secret is refused: the options of the test may have one that is valid
            component, options = self.built(bench), dict(self.options)
        values = [value for value in secrets(component) if len(value) >= SHORTEST]
        if values:
            watch, answers = self.watched(bench, options)
            texts = [("an answer or a repr", text) for text in texts_of(answers)]
            texts += [("a printed text", text) for text, _ in watch.printed]
            texts += [("a log record", text) for text in watch.logged]
            shown = [
                f"{where}: {text.replace(value, '(secret)'):.300}"
                for where, text in texts
                for value in values
                if value in text
            ]
            assert not shown, f"{self.named} shows the value of a secret option in {shown[0]}"

    def test_unknown_option_is_refused_by_name(self, bench: Bench) -> None:
        """A misspelt option is never ignored."""
        self.offer(bench)
        with pytest.raises(ConfigError, match="no_such_option"):
            bench.build(self.kind, self.named, {**self.options, "no_such_option": 1})

    def test_options_survive_a_round_trip(self, component: Any, bench: Bench) -> None:
        """Options written back as plain data build an equal component."""
        written = self.written(component, bench)
        assert bench.build(self.kind, self.named, written) == component, (
            f"the options {written} build another component"
        )

    def written(self, component: Any, bench: Bench) -> Mapping[str, object]:
        """Return the options of *component* as plain data; options that cannot be read back from it keep their original form."""
        builder = bench.builder()
        builder.component({self.named: dict(self.options)}, (self.kind,))
        ((_, plain),) = describe(component, builder.names, builder.written, include_later=True).items()
        options = {}
        for field in hints.fields(type(component)):
            key = hints.keys(field)[0]
            is_opaque = any(hints.mentions(field.type, type_) for type_ in (*_UNREADABLE, *_PROTOCOLS))
            if key in self.options or not is_opaque:
                options[key] = self.options[key] if is_opaque else plain[field.name]
        return options

    def test_is_frozen(self, component: Any) -> None:
        """A component is configuration. State that changes belongs into the object that ``open`` yields."""
        for field in attrs.fields(type(component)):
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                setattr(component, field.name, None)

    def test_can_be_pickled(self, component: Any) -> None:
        """An executor may send components to other processes."""
        assert pickle.loads(pickle.dumps(component)) == component  # noqa: S301  # our own bytes

    def test_building_uses_no_network(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """``dicast check`` builds every component and must work offline."""

        def refuse(*args: object, **options: object) -> None:
            raise OSError("the network was used while the component was built")

        for owner, name in ((socket.socket, "connect"), (socket.socket, "connect_ex"), (socket, "getaddrinfo")):
            monkeypatch.setattr(owner, name, refuse)
        self.built(bench)

    def test_has_the_methods_of_its_kind(self, component: Any, bench: Bench) -> None:
        """The open component has every method that a run calls."""

        async def missing(live: Any) -> list[str]:
            return [name for name in KINDS[self.kind].members if not hasattr(live, name)]

        assert self.opened(component, bench.folder, missing) == []


def _readme(distribution: str) -> str:
    """Return the README of *distribution* from its metadata."""
    try:
        message: Any = metadata.metadata(distribution)  # an email message, which has the README as its payload
        return str(message.get_payload() or message.get("Description") or "")
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return ""


def context(folder: Path) -> RunContext:
    """Return a run context in which to open a component; it trusts the code of the class's ``files``."""
    return RunContext("01KDZ3W5Z0000000000000TEST", "conformance", folder, trust=None)


def path_option(component: Any) -> str | None:
    """Return the name of the option ``path`` if the component has one that names a file, else None. An option without a value names no file."""
    names = [hints.keys(field)[0] for field in hints.fields(type(component)) if hints.mentions(field.type, Path)]
    return "path" if "path" in names and component.path is not None else None


def refuses_path(build: Callable[[], object]) -> None:
    """Check that *build*, which uses a path below a regular file, raises a RequestError."""
    with pytest.raises(RequestError):
        build()


def _contract(cls: type[Any]) -> dict[str, object]:
    owners = [owner for owner in cls.__mro__ if owner.__module__.startswith(f"{__package__}.")]
    return {
        name: check for owner in reversed(owners) for name, check in vars(owner).items() if name.startswith("test_")
    }


def _changed(cls: type[Any], name: str, check: object) -> bool:
    current = getattr(cls, name, None)
    marks = getattr(current, "pytestmark", ())
    has_reason = any(mark.name == "xfail" and mark.kwargs.get("reason") for mark in marks)
    return current is not check and not has_reason
