"""The public Python API: what `import reverie` offers, made of the rooms below.

Each name of `reverie.__all__` stands here or further down, and is loaded when it is first used.
Nothing in this room decides: it hands arguments down and plain values up.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "async_fitter": "AsyncFitter",
        "async_memory": "AsyncMemory",
        "blocking_faces": "BlockingAgent BlockingSession",
        "learning": "Learning beside",
        "wrapping": "WrapRules Wrapping",
    },
)
