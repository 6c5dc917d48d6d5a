"""Classes of components that are imported on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, overload


class NamedClasses(Sequence[type[Any]]):
    """Classes of one *package* for a hook to return. A pipeline imports only the classes that it names; ``dicast plugins`` imports all.

    *places* has the module and the class by the component's name without the plugin: ``{"jsonl": ".jsonl:Jsonl"}``. With
    ``__getattr__ = classes.attribute`` the package has the classes as attributes.
    """

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self.names = tuple(places)
        self.package = package
        self._places = {name: (module, member) for name, (module, _, member) in _parts(places)}

    def named(self, name: str) -> type[Any]:
        """Import the class of the component *name*.

        :raises KeyError: if no class has this name.
        """
        module, member = self._places[name]
        cls: type[Any] = getattr(import_module(module, self.package), member)
        return cls

    def attribute(self, name: str) -> type[Any]:
        """Import the class whose own name is *name*: the ``__getattr__`` of the package.

        :raises AttributeError: if there is no such class.
        """
        for component, (_, member) in self._places.items():
            if member == name:
                return self.named(component)
        raise AttributeError(f"module {self.package!r} has no attribute {name!r}")

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> type[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[type[Any]]: ...
    def __getitem__(self, index: int | slice) -> type[Any] | list[type[Any]]:
        if isinstance(index, slice):
            return [*map(self.named, self.names[index])]
        return self.named(self.names[index])


def _parts(places: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str, str]]]:
    return ((name, place.partition(":")) for name, place in places.items())
