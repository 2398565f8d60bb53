"""The proxy: a client that is already in use gets the layers by changing one URL."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "encodings": "unpack",
        "policies": "FOLDER StreamObserver sealing",
        "server": "run upstreams_of",
    },
)
