"""What is costly to make, made when it is first needed: methods of values, and patterns.

`dataclass` is that of the standard library for classes with slots, and makes the same class: the
same fields, parameters, `repr`, equality, hash and pickling. But its methods are compiled when
they are first called. Of the hundreds of values that a program loads it uses some, and compiling
all their methods was nearly half of what loading cost. `pattern` is `re.compile` at first use.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from dataclasses import dataclass as standard
from reprlib import recursive_repr

TYPE_CHECKING = False  # as `typing` has it, without importing it

if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import Signature

__all__ = ["dataclass", "pattern"]


if TYPE_CHECKING:
    from dataclasses import dataclass  # to type checkers it is the very same
    from typing import Any, AnyStr, cast
else:

    def cast(_, value):
        """`typing.cast`, without `typing`."""
        return value

    def dataclass(*, slots, frozen=False, unsafe_hash=False, kw_only=False):
        """A class decorator, for classes with slots alone."""
        if not slots:
            raise TypeError("a class without slots takes the decorator of `dataclasses`")
        return lambda cls: _build_class(cls, (frozen, unsafe_hash, kw_only))


@standard(init=False, repr=False, eq=False)
class _Sample:
    """One of the standard library's own, for the marks by which it knows them."""

    one: int = 0


_FIELD = fields(_Sample)[0]
_GIVEN = ("default", "default_factory", "init", "repr", "hash", "compare", "metadata", "kw_only")


def _params(frozen: bool, unsafe_hash: bool, kw_only: bool) -> Any:
    """How a class was made, as `dataclasses` tells it."""
    made = copy(cast("Any", _Sample).__dataclass_params__)
    made.init = made.repr = made.eq = True
    made.frozen, made.unsafe_hash = frozen, unsafe_hash
    if hasattr(made, "slots"):  # from Python 3.12 on
        made.slots, made.kw_only = True, kw_only
    return made


def _build_class(cls: Any, how: tuple[bool, bool, bool]) -> Any:
    frozen, unsafe_hash, kw_only = how
    space: dict[str, Any] = {
        n: value
        for n, value in cast("dict[str, Any]", vars(cls)).items()
        if n not in ("__dict__", "__weakref__")
    }
    space["__dataclass_params__"] = _params(*how)
    space["__dataclass_fields__"] = known = _fields(cls, kw_only)
    own: dict[str, Any] = space.get("__annotations__", {})
    inherited = {slot for base in cls.__mro__[1:] for slot in getattr(base, "__slots__", ())}
    for name in own:
        space.pop(name, None)
    space["__slots__"] = tuple(name for name in own if name not in inherited)
    matched = (name for name, one in known.items() if one.init and not one.kw_only)
    space.setdefault("__match_args__", tuple(matched))
    made: Any = type(cls)(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    _equip(made, space, frozen=frozen, hashes=frozen or unsafe_hash)
    return made


def _fields(cls: type[Any], kw_only: bool) -> dict[str, Field[Any]]:
    known: dict[str, Field[Any]] = {}
    for base in cls.__mro__[-1:0:-1]:
        known.update(getattr(base, "__dataclass_fields__", {}))
    for name, kind in cast("dict[str, str]", vars(cls).get("__annotations__", {})).items():
        default = vars(cls).get(name, MISSING)
        given: Any = cast("Any", default) if isinstance(default, Field) else field(default=default)
        one: Any = copy(_FIELD)  # by its marks the standard library knows a field of a class
        for each in _GIVEN:
            setattr(one, each, getattr(given, each))
        one.name, one.type = name, kind
        if one.kw_only is MISSING:
            one.kw_only = kw_only
        known[name] = one
    return known


def _equip(cls: Any, space: dict[str, Any], *, frozen: bool, hashes: bool) -> None:
    """Give a class its methods; those that are compiled stand in until their first call."""
    _until_called(cls, "__init__", _init)
    cls.__signature__ = _ShownSignature()
    if "__repr__" not in space:
        cls.__repr__ = _repr
    if "__eq__" not in space:
        _until_called(cls, "__eq__", _eq)
    if space.get("__hash__") is None:
        if hashes:
            _until_called(cls, "__hash__", _hash)
        else:
            cls.__hash__ = None
    if frozen:
        cls.__setattr__, cls.__delattr__ = _refusals(cls)
    if "__getstate__" not in space:
        cls.__getstate__, cls.__setstate__ = _getstate, _setstate


def _until_called(cls: type[Any], name: str, write: Callable[[type[Any]], Any]) -> None:
    def first(self: Any, *given: Any, **named: Any) -> Any:
        return _install_method(cls, name, write)(self, *given, **named)

    first.__name__, first.__qualname__ = name, f"{cls.__qualname__}.{name}"
    setattr(cls, name, first)


def _install_method(cls: type[Any], name: str, write: Callable[[type[Any]], Any]) -> Any:
    made = write(cls)
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    setattr(cls, name, made)
    return made


class _ShownSignature:
    """`inspect.signature` of a class, without an instance having been made."""

    def __get__(self, instance: object, owner: type[Any]) -> Signature:
        from inspect import signature

        shown = signature(_init(owner))
        return shown.replace(parameters=list(shown.parameters.values())[1:])


# --- what is compiled


class _Made:
    """What a parameter defaults to whose value is made anew each time."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Made()


def _compile_function(name: str, head: str, body: list[str], known: dict[str, Any]) -> Any:
    text = f"def {name}({head}):\n " + "\n ".join(body or ["pass"])
    exec(text, known)  # the names of fields are identifiers, and there is nothing else of anyone's
    return known[name]


def _init(cls: type[Any]) -> Any:
    known: dict[str, Any] = {"put": object.__setattr__, "missing": _MADE}
    frozen = cls.__dataclass_params__.frozen
    heads: tuple[list[str], list[str]] = (["self"], [])
    body: list[str] = []
    for one in cls.__dataclass_fields__.values():
        name, value = one.name, one.name
        if one.default_factory is not MISSING:
            known[f"make_{name}"] = one.default_factory
            made = f"make_{name}()"
            value = f"{made} if {name} is missing else {name}" if one.init else made
        elif not one.init:
            if one.default is MISSING:
                continue
            known[f"default_{name}"] = one.default
            value = f"default_{name}"
        if one.init:
            heads[bool(one.kw_only)].append(_parameter(one, known))
        body.append(f"put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    head = ", ".join([*heads[0], *(["*", *heads[1]] if heads[1] else [])])
    made = _compile_function("__init__", head, body, known)
    made.__annotations__ = {n: f.type for n, f in cls.__dataclass_fields__.items() if f.init}
    made.__annotations__["return"] = None
    return made


def _parameter(one: Field[Any], known: dict[str, Any]) -> str:
    if one.default_factory is not MISSING:
        return f"{one.name}=missing"
    if one.default is MISSING:
        return one.name
    known[f"default_{one.name}"] = one.default
    return f"{one.name}=default_{one.name}"


def _eq(cls: type[Any]) -> Any:
    names = [one.name for one in fields(cls) if one.compare]
    mine, theirs = (_tuple(who, names) for who in ("self", "other"))
    body = ["if other.__class__ is self.__class__:", f" return {mine} == {theirs}"]
    return _compile_function("__eq__", "self, other", [*body, "return NotImplemented"], {})


def _hash(cls: type[Any]) -> Any:
    names = [one.name for one in fields(cls) if (one.compare if one.hash is None else one.hash)]
    return _compile_function("__hash__", "self", [f"return hash({_tuple('self', names)})"], {})


def _tuple(who: str, names: list[str]) -> str:
    return f"({''.join(f'{who}.{name}, ' for name in names)})"


# --- what is the same for all


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refusals(cls: Any) -> tuple[Any, Any]:
    def must_be_free(self: Any, name: str, what: str) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot {what} field {name!r}")

    def put(self: Any, name: str, value: object) -> None:
        must_be_free(self, name, "assign to")
        object.__setattr__(self, name, value)

    def remove(self: Any, name: str) -> None:
        must_be_free(self, name, "delete")
        object.__delattr__(self, name)

    return put, remove


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


# --- patterns


class _Pattern:
    """A pattern that is compiled when something is first asked of it."""

    def __init__(self, text: Any, flags: int) -> None:
        self._given = (text, flags)

    def __getattr__(self, name: str) -> Any:
        made = re.compile(*self._given)
        for each in ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"):
            setattr(self, each, getattr(made, each))
        return getattr(made, name)


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, put off; what comes back has a pattern's methods and is no argument to `re`."""
    made: Any = _Pattern(text, flags)
    return made
