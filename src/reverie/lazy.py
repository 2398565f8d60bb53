"""Names of a package that are loaded with their module when they are first used."""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, without importing it

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def offered(room: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package: names that stand in its modules, by module."""
    known = {name: place for place, names in places.items() for name in names.split()}

    def load_name(name: str) -> object:
        place = known.get(name)
        if place is None:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        from importlib import import_module
        from sys import modules

        value = getattr(import_module(f"{room}.{place}"), name)
        setattr(modules[room], name, value)
        return value

    return load_name
