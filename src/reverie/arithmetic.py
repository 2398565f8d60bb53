"""numpy, where it is installed, and one thread for what is reckoned with it.

The products of recall are small: of several threads all but one mostly wait, and their waiting
costs several times the work. The caller's own arithmetic keeps as many threads as it had.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

_ALONE = threading.Lock()


def numpy() -> Any:
    """numpy, or None: it comes with local models and is never needed."""
    return _offered("numpy")


@contextmanager
def one_thread() -> Generator[None]:
    """One thread for the products within.

    One piece of work at a time: two that overlap would each restore what the other had set.
    """
    libraries = _libraries()
    if libraries is None:
        yield
        return
    with _ALONE, libraries.limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries() -> Any:
    """The libraries of arithmetic in this process, whose threads can be counted."""
    _offered("numpy")  # only what is loaded by now is counted
    counted = _offered("threadpoolctl")
    return counted and counted.ThreadpoolController()


def _offered(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
