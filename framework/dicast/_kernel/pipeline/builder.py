"""Builder of the components that a pipeline file names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as FilePath
from stat import S_ISREG
from typing import Any

from ..classes import evolve, fields, frozen
from ..contract.declared import declared_faults
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
    """A component of the pipeline: the *live* object, and the slot options, such as ``weight``, that the file has among the component's options."""

    component: Component
    live: Any
    slot_options: Any = None


class Builder:
    """Builder of the components of one pipeline.

    :param registry: the registry of components.
    :param defined: the ``define`` section: components by name.
    :param base: returns the folder that a relative path at a place in the data is relative to.
    :param texts: for further types, functions that make a value from text at a path.
    :param ready: finished components by the names that refer to them.
    """

    def __init__(
        self,
        registry: Registry,
        defined: Mapping[str, object],
        base: Callable[[Path], FilePath],
        texts: Mapping[Any, Hook],
        ready: Mapping[str, object] | None = None,
    ) -> None:
        self.written: dict[FilePath, str] = {}  # paths as the user wrote them
        self.names: dict[type[Any], str] = {}  # names of the built components
        self.components: dict[type[Any], Component] = {}  # the components of the built classes
        self._registry, self._defined, self._base, self._ready = registry, defined, base, ready or {}
        self._shared: dict[tuple[str, tuple[str, ...]], Built | Invalid] = {}
        self._open: list[str] = []
        self.reads = True  # if False, the files of sources may be missing
        paths = {FilePath: self._file_path, InputPath: self._input_path}
        self.data = Structurer(self._nested, {**paths, **texts})

    def _nested(self, value: object, kinds: tuple[str, ...]) -> Any:
        """Return the component that *value* describes, or *value* itself if it is a component, as a preset passes."""
        return value if type(value) in self.names else self.component(value, kinds).live

    def component(self, value: object, kinds: tuple[str, ...], slot_class: type[Any] | None = None) -> Built:
        """Build the component of one of *kinds* that *value* describes: ``name`` or ``{name: {options}}``.

        :param slot_class: an attrs class with slot options, which may be written among the component's options.
        :raises Invalid: with every fault.
        """
        name, options = self._parts(value, kinds)
        key_path = (Part(name),) if isinstance(value, Mapping) else ()
        extra, faults, slot_keys = None, list[Fault](), set[str]()
        if slot_class is not None:
            slot_keys = {key for field in hints.fields(slot_class) for key in hints.keys(field)} - self._claimed(
                name, kinds
            )
            with self.data.at(*key_path, faults=faults):
                extra = self.data.options({key: options[key] for key in options if key in slot_keys}, slot_class, name)
            options = {key: options[key] for key in options if key not in slot_keys}
        with self.data.at(faults=faults):
            new = "/" in name
            built = (
                self._build_new(name, kinds, options, key_path, slot_keys)
                if new
                else self._reference(name, kinds, options, key_path)
            )
            if not faults:
                return evolve(built, slot_options=extra)
        raise Invalid(faults)

    def _claimed(self, name: str, kinds: tuple[str, ...]) -> set[str]:
        """Return the slot keys that are options of the component itself."""
        try:
            component = self._registry.find(name, kinds)
        except PluginError:
            return set()  # reported when the component is built
        return {field.name for field in fields(component.cls)}.intersection(CLAIMABLE)

    def shared(self, name: str, kinds: tuple[str, ...]) -> Built:
        """Build the component *name* of ``define`` once. Its faults are raised on each call."""
        if name in self._open:
            circle = " -> ".join((*self._open[self._open.index(name) :], name))
            raise self.data.invalid(f"{name!r} is defined in terms of itself: {circle}", name)
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
        """Build the components of ``define`` that nothing refers to, so that their faults are found too."""
        used = {name for name, _ in self._shared}
        for name in self._defined:
            if name not in used:
                with self.data.at(faults=faults):
                    self.shared(name, tuple(KINDS))

    def misplaced_options(self, section: str, value: object, kind: str, default: str) -> str | None:
        """Return a message if *value*, the content of *section*, has options without the name of a component; None otherwise.

        :param default: the component of a file without the section, which offers another component of *kind* if its options have another name.
        """
        if not isinstance(value, Mapping) or not value or any("/" in key or key in self._defined for key in value):
            return None
        from .unknown_keys import place_of_options  # needed for invalid files alone

        key, options = next(iter(value.items()))
        options = options if isinstance(options, Mapping) else value
        offered = [component for component in self._registry.load(default.partition("/")[0]) if component.kind == kind]
        written, path = place_of_options(section, options, offered, default)
        return f"{section} has {key!r} in place of a component; write {written}, or --set {path}"

    def _parts(self, value: object, kinds: tuple[str, ...]) -> tuple[str, Mapping[str, Any]]:
        if isinstance(value, str):
            return value, {}
        advice = ""
        if isinstance(value, Mapping) and len(value) == 1:
            name, options = next(iter(value.items()))
            if isinstance(options, Mapping):
                return name, options
            message = f"the options of {name} must be a mapping; without options, write only {name}"
            raise Invalid([Fault((*self.data.path, Part(name)), message)])
        if isinstance(value, Mapping) and any("/" in key for key in value):
            advice = "; indent its options below its name"
        message = f"expected a {' or '.join(kinds)}, written NAME or {{NAME: {{options}}}}{advice}"
        raise Invalid([Fault(self.data.path, message, mismatch=not advice)])

    def _build_new(
        self, name: str, kinds: tuple[str, ...], options: Mapping[str, Any], keyed: Path, extra_keys: Iterable[str]
    ) -> Built:
        try:
            component = self._registry.find(name, kinds)
        except PluginError as error:
            problem = error.problems[0]
            key = name if keyed else None
            raise Invalid(
                [Fault(self.data.path, problem.message, name, problem.hint, key, plugin=True, cause=error)]
            ) from error
        self.names[component.cls], self.components[component.cls] = component.name, component
        with self.data.jump((*self.data.path, *keyed)):
            built = Built(component, self.data.options(options, component.cls, name, extra_keys))
            self._refuse_declared(built)
            return built

    def _refuse_declared(self, built: Built) -> None:
        """Refuse a component that declares values that a run cannot use."""
        name, kind = built.component.name, built.component.kind
        if faults := [
            Fault(self.data.path, f"{name}: {fault}", plugin=True) for fault in declared_faults(kind, built.live)
        ]:
            raise Invalid(faults)

    def _reference(self, name: str, kinds: tuple[str, ...], options: Mapping[str, Any], keyed: Path) -> Built:
        key = name if keyed else None
        if name not in self._defined and name not in self._ready:
            names = ", ".join(self._defined) or "nothing"
            message = f"{name!r} is not under 'define' ({names}); a component is written PLUGIN/NAME"
            raise self.data.invalid(message, name, nearest(name, self._defined), key)
        if options:
            raise self.data.invalid(f"the options of {name!r} belong under 'define'", key=key)
        return self._from_ready(name, kinds) if name in self._ready else self.shared(name, kinds)

    def _from_ready(self, name: str, kinds: tuple[str, ...]) -> Built:
        live = self._ready[name]
        fitting = [kind for kind in kinds if all(hasattr(live, member) for member in KINDS[kind].members)]
        kind = next(iter(fitting), kinds[0] if hasattr(live, "open") else None)
        if kind is None:
            message = f"{name!r} is {live!r:.80}, not a {' or '.join(kinds)}"
            raise self.data.invalid(message, name)
        try:
            component = describe_component(kind, type(live), "given", "given from Python", "0")
        except PluginError as error:
            raise self.data.invalid(str(error), name) from error
        from .option_types import wrong_options  # needed for components from Python alone

        if option_faults := [Fault(self.data.path, f"{name}: {message}") for message in wrong_options(live)]:
            raise Invalid(option_faults)
        self.names.setdefault(component.cls, name)
        self.components.setdefault(component.cls, evolve(component, name=name))
        built = Built(evolve(component, name=name), live)
        self._refuse_declared(built)
        return built

    def _file_path(self, text: str, path: Path) -> FilePath:
        file = FilePath(os.path.normpath(self._base(path) / text))
        self.written.setdefault(file, text)
        return file

    def _input_path(self, text: str, path: Path) -> FilePath:
        if text == "-":
            return FilePath("-")
        file = self._file_path(text, path)
        if not self.reads:
            return file
        mode = 0
        try:
            mode = file.stat().st_mode
            reason = f"is not a file: {file}"
        except (FileNotFoundError, NotADirectoryError):
            reason = f"does not exist: {file}"
        except OSError as error:
            raise Invalid([Fault(path, f"the file {text!r} cannot be opened: {error.strerror}", text)]) from error
        if not S_ISREG(mode):
            folder = file.parent if not mode and file.parent.is_dir() else None
            near = nearest(file.name, (entry.name for entry in folder.iterdir() if entry.is_file()) if folder else ())
            raise Invalid(
                [Fault(path, f"the file {text!r} {reason}", text, near and str(FilePath(text).with_name(near)))]
            )
        return file
