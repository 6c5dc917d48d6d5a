"""Builds the components that a pipeline file names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as FilePath
from stat import S_ISREG
from typing import Any

from ..classes import evolve, fields, frozen
from ..contract.kinds import CLAIMABLE, KINDS, Component, describe_component
from ..contract.registry import Registry
from ..values import InputPath
from ..values.errors import PluginError
from ..values.names import nearest
from . import types as hints
from .faults import Fault, Invalid, Part, Path
from .structure import Hook, Structurer


@frozen
class Built:
    """A component of the pipeline: the *live* object, and what stood *beside* its options."""

    component: Component
    live: Any
    beside: Any = None


class Builder:
    """Builds the components of one pipeline.

    :param registry: where they are found.
    :param defined: the ``define`` section: components by name.
    :param base: the directory that a relative path at a place in the data is relative to.
    :param texts: for further types, how a value is made from text at a path.
    :param ready: components that are built already, by the names that refer to them.
    """

    def __init__(
        self,
        registry: Registry,
        defined: Mapping[str, object],
        base: Callable[[Path], FilePath],
        texts: Mapping[Any, Hook],
        ready: Mapping[str, object] | None = None,
    ) -> None:
        self.written: dict[FilePath, str] = {}  # how the user wrote the paths
        self.names: dict[type[Any], str] = {}  # the names of the components that were built
        self.components: dict[type[Any], Component] = {}  # what offers them
        self._registry, self._defined, self._base, self._ready = registry, defined, base, ready or {}
        self._shared: dict[tuple[str, tuple[str, ...]], Built | Invalid] = {}
        self._open: list[str] = []
        self.reads = True  # else the files of sources need not be there
        paths = {FilePath: self._file_path, InputPath: self._input_path}
        self.data = Structurer(self._nested, {**paths, **texts})

    def _nested(self, value: object, kinds: tuple[str, ...]) -> Any:
        """The component that *value* describes, or is: a preset hands on what it was given."""
        return value if type(value) in self.names else self.component(value, kinds).live

    def component(self, value: object, kinds: tuple[str, ...], beside: type[Any] | None = None) -> Built:
        """Build the component of one of *kinds* that *value* describes: ``name`` or ``{name: {options}}``.

        :param beside: an attrs class; its fields may stand among the options, and are not the component's.
        :raises Invalid: with everything that is wrong.
        """
        name, options = self._parts(value, kinds)
        keyed = (Part(name),) if isinstance(value, Mapping) else ()
        extra, faults, slot = None, list[Fault](), set[str]()
        if beside is not None:
            slot = {key for field in hints.fields(beside) for key in hints.keys(field)} - self._claimed(name, kinds)
            with self.data.at(*keyed, faults=faults):
                extra = self.data.options({key: options[key] for key in options if key in slot}, beside, name)
            options = {key: options[key] for key in options if key not in slot}
        with self.data.at(faults=faults):
            new = "/" in name
            made = self._new(name, kinds, options, keyed, slot) if new else self._reference(name, kinds, options, keyed)
            if not faults:
                return evolve(made, beside=extra)
        raise Invalid(faults)

    def _claimed(self, name: str, kinds: tuple[str, ...]) -> set[str]:
        """The slot keys that are options of the component's own."""
        try:
            found = self._registry.find(name, kinds)
        except PluginError:
            return set()  # reported where the component is built
        return {field.name for field in fields(found.cls)}.intersection(CLAIMABLE)

    def shared(self, name: str, kinds: tuple[str, ...]) -> Built:
        """Build what ``define`` has under *name*, once. What is wrong with it is raised each time, and is the same."""
        if name in self._open:
            circle = " -> ".join((*self._open[self._open.index(name) :], name))
            raise self.data.invalid(f"{name!r} is defined by itself: {circle}", name)
        if (name, kinds) not in self._shared:
            self._open.append(name)
            try:
                with self.data.jump(("define", name)):
                    self._shared[name, kinds] = self.component(self._defined[name], kinds)
            except Invalid as invalid:
                self._shared[name, kinds] = invalid
            finally:
                self._open.pop()
        shared = self._shared[name, kinds]
        if isinstance(shared, Invalid):
            raise shared
        return shared

    def check_unused(self, faults: list[Fault]) -> None:
        """Build what ``define`` has and nothing referred to, so that its faults are found too."""
        used = {name for name, _ in self._shared}
        for name in self._defined:
            if name not in used:
                with self.data.at(faults=faults):
                    self.shared(name, tuple(KINDS))

    def _parts(self, value: object, kinds: tuple[str, ...]) -> tuple[str, Mapping[str, Any]]:
        if isinstance(value, str):
            return value, {}
        advice = ""
        if isinstance(value, Mapping) and len(value) == 1:
            name, options = next(iter(value.items()))
            if isinstance(options, Mapping):
                return name, options
            message = f"the options of {name} are a mapping; without options write just {name}"
            raise Invalid([Fault((*self.data.path, Part(name)), message)])
        if isinstance(value, Mapping) and any("/" in key for key in value):
            advice = "; indent its options below its name"
        message = f"expected a {' or '.join(kinds)}, written NAME or {{NAME: {{options}}}}{advice}"
        raise Invalid([Fault(self.data.path, message, mismatch=not advice)])

    def _new(
        self, name: str, kinds: tuple[str, ...], options: Mapping[str, Any], keyed: Path, beside: Iterable[str]
    ) -> Built:
        try:
            found = self._registry.find(name, kinds)
        except PluginError as error:
            problem = error.problems[0]
            key = name if keyed else None
            raise Invalid([Fault(self.data.path, problem.message, name, problem.hint, key, plugin=True)]) from error
        self.names[found.cls], self.components[found.cls] = found.name, found
        with self.data.jump((*self.data.path, *keyed)):
            return Built(found, self.data.options(options, found.cls, name, beside))

    def _reference(self, name: str, kinds: tuple[str, ...], options: Mapping[str, Any], keyed: Path) -> Built:
        key = name if keyed else None
        if name not in self._defined and name not in self._ready:
            known = ", ".join(self._defined) or "nothing"
            message = f"{name!r} is not under 'define' ({known}); a component is written PLUGIN/NAME"
            raise self.data.invalid(message, name, nearest(name, self._defined), key)
        if options:
            raise self.data.invalid(f"the options of {name!r} belong under 'define'", key=key)
        return self._as_given(name, kinds) if name in self._ready else self.shared(name, kinds)

    def _as_given(self, name: str, kinds: tuple[str, ...]) -> Built:
        live = self._ready[name]
        fitting = [kind for kind in kinds if all(hasattr(live, member) for member in KINDS[kind].members)]
        kind = next(iter(fitting), kinds[0] if hasattr(live, "open") else None)
        if kind is None:
            message = f"{name!r} was given as {live!r:.80}, which is no {' or '.join(kinds)}"
            raise self.data.invalid(message, name)
        try:
            given = describe_component(kind, type(live), "given", "given from Python", "0")
        except PluginError as error:
            raise self.data.invalid(str(error), name) from error
        self.names.setdefault(given.cls, name)
        self.components.setdefault(given.cls, evolve(given, name=name))
        return Built(evolve(given, name=name), live)

    def _file_path(self, text: str, path: Path) -> FilePath:
        found = FilePath(os.path.normpath(self._base(path) / text))
        self.written.setdefault(found, text)
        return found

    def _input_path(self, text: str, path: Path) -> FilePath:
        if text == "-":
            return FilePath("-")
        found = self._file_path(text, path)
        if not self.reads:
            return found
        mode = 0
        try:
            mode = found.stat().st_mode
            reason = f"is not a file: {found}"
        except (FileNotFoundError, NotADirectoryError):
            reason = f"does not exist: {found}"
        except OSError as error:
            raise Invalid([Fault(path, f"the file {text!r} cannot be opened: {error.strerror}", text)]) from error
        if not S_ISREG(mode):
            folder = found.parent if not mode and found.parent.is_dir() else None
            near = nearest(found.name, (entry.name for entry in folder.iterdir() if entry.is_file()) if folder else ())
            raise Invalid(
                [Fault(path, f"the file {text!r} {reason}", text, near and str(FilePath(text).with_name(near)))]
            )
        return found
