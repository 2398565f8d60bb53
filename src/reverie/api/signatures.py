"""Functions that take what a dataclass is made of, and show it.

The arguments of `Session.open` and its like are said once, as the fields of a dataclass. Type
checkers follow by `ParamSpec`; `takes` lets `help` and `inspect` see the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def takes(given: Callable[..., object], gives: str) -> Callable[[F], F]:
    """Give a function the signature by which `given` is called, and what it gives."""

    def dressed(function: F) -> F:
        import inspect

        shown: Any = function
        shown.__signature__ = inspect.signature(given).replace(return_annotation=gives)
        return function

    return dressed
