"""One model of meaning for everybody: the local one as an endpoint of the usual form.

Peers reach it over HTTP as they would a provider's, so that all compare texts by the same vectors.
A text is worked on once.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from reverie.providers import MiniLM

AT_ONCE = 64


class Vectors:
    """The vectors of texts, kept in a file: each text is worked on once."""

    def __init__(self, model: MiniLM, path: Path) -> None:
        self.name = model.name
        self._model, self._turn = model, Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(path, check_same_thread=False)
        self._base.execute("CREATE TABLE IF NOT EXISTS vector (text TEXT PRIMARY KEY, value BLOB)")

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        with self._turn:
            new = [text for text in dict.fromkeys(texts) if self._known(text) is None]
            for start in range(0, len(new), AT_ONCE):
                part = new[start : start + AT_ONCE]
                made = (array("f", one).tobytes() for one in self._model.encode(part))
                rows = zip(part, made, strict=True)
                self._base.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows)
                self._base.commit()
            return [array("f", self._known(text) or b"").tolist() for text in texts]

    def _known(self, text: str) -> bytes | None:
        found = self._base.execute("SELECT value FROM vector WHERE text = ?", (text,)).fetchone()
        return found[0] if found else None


@contextmanager
def endpoint(vectors: Vectors) -> Iterator[str]:
    """The address at which texts become vectors, while it stands."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            given = asked["input"]
            made = vectors.encode([given] if isinstance(given, str) else given)
            rows = [
                {"object": "embedding", "index": n, "embedding": packed(one, asked)}
                for n, one in enumerate(made)
            ]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            body = json.dumps(
                {"object": "list", "model": asked.get("model"), "data": rows, "usage": usage}
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing is told."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def packed(vector: Sequence[float], asked: dict[str, Any]) -> Any:
    if asked.get("encoding_format") == "base64":
        return base64.b64encode(array("f", vector).tobytes()).decode()
    return list(vector)
