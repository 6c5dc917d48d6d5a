"""Builder of the sections of a pipeline: typed values, slots of components, and faults with their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ..contract.registry import Registry
from ..plan.sections import Label, Slot
from ..values import Rubric, Secret
from .builder import Builder, Built
from .contents import Contents
from .describe import describe
from .faults import Fault, Part
from .faults import Path as Address
from .read import Document, dotted
from .rubrics import load_rubric
from .slots import judges_inside, make_slot, unpaid_model
from .structure import Hook

Placed = tuple[Address, Slot]


class SectionBuilder:
    """Builder of sections and slots of a pipeline. Faults are added to *faults*, and the rest is still built."""

    def __init__(self, document: Document, registry: Registry, ready: Mapping[str, object]) -> None:
        self.faults: list[Fault] = []
        self.document, self.file = document, document.data
        texts: dict[Any, Hook] = {
            Rubric: lambda text, path: load_rubric(text, self._base(path)),
            Secret: lambda text, path: Secret(text, document.empty.get(path, ())),
        }
        define = self.file.get("define")
        self.builder = Builder(registry, define if isinstance(define, Mapping) else {}, self._base, texts, ready)
        self.structurer = self.builder.data
        self.contents = Contents(document.base)

    def _base(self, path: Address) -> Path:
        return self.document.place(path).base

    def fault(
        self, path: Address, message: str, value: object = None, hint: str | None = None, key: str | None = None
    ) -> None:
        """Add a fault of the value at *path*, or of its *key*."""
        self.faults.append(Fault(path, message, value, hint, key))

    def section(self, name: str, annotation: Any, default: Any) -> Any:
        """Return the section *name* as a value of the type *annotation*; *default* if it is missing or has faults."""
        if name in self.file:
            with self.structurer.at(name, faults=self.faults):
                return self.structurer.structure(self.file[name], annotation)
        return default

    def single(
        self, section: str, kind: str, default: str | None = None, slot_class: type[Any] | None = None
    ) -> Slot | None:
        """Return the slot of the only component of *section*; None if it is missing or has faults.

        :param default: the component of a file without the section.
        :param slot_class: an attrs class whose fields may be among the options.
        """
        content = self.file.get(section, default)
        if default is not None and (advice := self.builder.misplaced_options(section, content, kind, default)):
            self.fault((section,), advice)
            return None
        if section in self.file or default is not None:
            with self.structurer.at(section, faults=self.faults):
                return self.slot((section,), self.builder.component(content, (kind,), slot_class))
        return None

    def components(
        self, path: Address, items: object, kinds: tuple[str, ...], slot_class: type[Any]
    ) -> list[tuple[Address, Built]]:
        """Return the components in the list *items* at *path*, without components that have faults."""
        if not isinstance(items, list):
            message = f"invalid value for {dotted(path)}, expected a list of components (NAME or {{NAME: {{options}}}})"
            self.fault(path, message)
            return []
        components = []
        for index, item in enumerate(items):
            with self.structurer.at(*path, index, faults=self.faults):
                components.append(((*path, index), self.builder.component(item, kinds, slot_class)))
        return components

    def labeled(self, section: str, kind: str) -> list[Placed]:
        """Return the slots of the components of *kind* in *section*, and report labels that two of them have."""
        listed = self.components((section,), self.file.get(section, []), (kind,), Label)
        placed = [(path, self.slot(path, built)) for path, built in listed]
        self.check_labels(placed)
        return placed

    def slot(self, path: Address, built: Built, **slot: Any) -> Slot:
        """Return the slot of *built*, with the slots of the judges inside it."""
        outer = self._alone(path, built, **slot)
        return outer if self.faults else attrs.evolve(outer, inside=self._inside(path, outer))

    def _alone(self, path: Address, built: Built, **slot: Any) -> Slot:
        if (message := unpaid_model(built)) is not None:
            self.fault(path, message)
        names, written = self.builder.names, self.builder.written
        (options,) = describe(built.live, names, written).values()  # keyed by the component's name
        (counting,) = describe(built.live, names, written, counting=True).values()
        reads = list[dict[str, str]]()
        with self.structurer.at(faults=self.faults):
            reads = self.contents.of(built, path)
        if built.slot_options is not None:
            slot = attrs.asdict(built.slot_options, recurse=False, filter=attrs.filters.exclude("label")) | slot
        return make_slot(built, dotted(path), options, counting, reads, **slot)

    def _inside(self, path: Address, around: Slot) -> dict[str, Slot]:
        """Return the slots of the judges in *around*, each as if it were the only judge."""
        slots: dict[str, Slot] = {}
        for at, judge in judges_inside(around.component):
            if (offered := self.builder.components.get(type(judge))) is not None:
                alone = self._alone(path, Built(offered, judge), tier="truth", on=tuple(getattr(judge, "accepts", ())))
                slots[at] = attrs.evolve(alone, label=f"{around.label}{at}", path=f"{around.path}{at}")
        return slots

    def check_labels(self, placed: Sequence[Placed]) -> None:
        """Report a label that two of *placed* have."""
        first: dict[str, Placed] = {}
        for path, slot in placed:
            other_path, other = first.setdefault(slot.label, (path, slot))
            if other is not slot:
                at = self.document.place((*other_path, other.name, "as"))
                place_text = ":".join(str(part) for part in (at.file, at.line, at.column) if part is not None)
                message = f"the label {slot.label!r} is used already at {place_text} ({other.path}); rename one of them with 'as'"
                self.fault((*path, Part(slot.name), "as"), message, slot.label)
