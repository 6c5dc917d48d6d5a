"""What the sections of a pipeline are built with: data made into types, components made into slots, faults noted at their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ..contract.registry import Registry
from ..plan.sections import Label, Slot
from ..values import Rubric
from .builder import Builder, Built
from .contents import Contents
from .describe import describe
from .faults import Fault, Part
from .faults import Path as Address
from .read import Document, dotted
from .rubrics import load_rubric
from .slots import judges_inside, make_slot, unpaid_model

Placed = tuple[Address, Slot]


class SectionBuilder:
    """Builds the parts of one pipeline; what is wrong is added to *faults*, and the rest is still built."""

    def __init__(self, document: Document, registry: Registry, ready: Mapping[str, object]) -> None:
        self.faults: list[Fault] = []
        self._document, self._file = document, document.data
        texts = {Rubric: lambda text, path: load_rubric(text, self._base(path))}
        define = self._file.get("define")
        self._builder = Builder(registry, define if isinstance(define, Mapping) else {}, self._base, texts, ready)
        self._structurer = self._builder.data
        self._contents = Contents(document.base)

    def _base(self, path: Address) -> Path:
        return self._document.place(path).base

    def _fault(
        self, path: Address, message: str, value: object = None, hint: str | None = None, key: str | None = None
    ) -> None:
        self.faults.append(Fault(path, message, value, hint, key))

    def _section(self, name: str, annotation: Any, default: Any) -> Any:
        if name in self._file:
            with self._structurer.at(name, faults=self.faults):
                return self._structurer.structure(self._file[name], annotation)
        return default

    def _single(
        self, section: str, kind: str, default: str | None = None, beside: type[Any] | None = None
    ) -> Slot | None:
        given = self._file.get(section, default)
        if section in self._file or default is not None:
            with self._structurer.at(section, faults=self.faults):
                return self._slot((section,), self._builder.component(given, (kind,), beside))
        return None

    def _list(
        self, path: Address, items: object, kinds: tuple[str, ...], beside: type[Any]
    ) -> list[tuple[Address, Built]]:
        if not isinstance(items, list):
            what = f"invalid value for {dotted(path)}, expected a list of components (NAME or {{NAME: {{options}}}})"
            self._fault(path, what)
            return []
        made = []
        for index, item in enumerate(items):
            with self._structurer.at(*path, index, faults=self.faults):
                made.append(((*path, index), self._builder.component(item, kinds, beside)))
        return made

    def _labelled(self, section: str, kind: str) -> list[Placed]:
        """The components of *kind* that *section* lists, each with a label of its own."""
        listed = self._list((section,), self._file.get(section, []), (kind,), Label)
        placed = [(path, self._slot(path, built)) for path, built in listed]
        self._check_labels(placed)
        return placed

    def _slot(self, path: Address, built: Built, **slot: Any) -> Slot:
        made = self._alone(path, built, **slot)
        return made if self.faults else attrs.evolve(made, inside=self._inside(path, made))

    def _alone(self, path: Address, built: Built, **slot: Any) -> Slot:
        if (message := unpaid_model(built)) is not None:
            self._fault(path, message)
        names, written = self._builder.names, self._builder.written
        (options,) = describe(built.live, names, written).values()  # by the component's name
        (counting,) = describe(built.live, names, written, counting=True).values()
        reads = list[dict[str, str]]()
        with self._structurer.at(faults=self.faults):
            reads = self._contents.of(built, path)
        if built.beside is not None:
            slot = attrs.asdict(built.beside, recurse=False, filter=attrs.filters.exclude("label")) | slot
        return make_slot(built, dotted(path), options, counting, reads, **slot)

    def _inside(self, path: Address, around: Slot) -> dict[str, Slot]:
        """The slots of the judges in *around*, each as it would be if it stood there alone."""
        found: dict[str, Slot] = {}
        for at, judge in judges_inside(around.component):
            if (offered := self._builder.components.get(type(judge))) is not None:
                alone = self._alone(path, Built(offered, judge), tier="truth", on=tuple(getattr(judge, "accepts", ())))
                found[at] = attrs.evolve(alone, label=f"{around.label}{at}", path=f"{around.path}{at}")
        return found

    def _check_labels(self, placed: Sequence[Placed]) -> None:
        first: dict[str, Placed] = {}
        for path, slot in placed:
            other_path, other = first.setdefault(slot.label, (path, slot))
            if other is not slot:
                at = self._document.place((*other_path, other.name, "as"))
                where = ":".join(str(part) for part in (at.file, at.line, at.column) if part is not None)
                message = (
                    f"the label {slot.label!r} is taken, at {where} ({other.path}); give one of them another with 'as'"
                )
                self._fault((*path, Part(slot.name), "as"), message, slot.label)
