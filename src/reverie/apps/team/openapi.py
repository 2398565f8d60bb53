"""The OpenAPI document, and Prometheus counters.

The OpenAPI document of the team server, as its handlers are.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from typing import cast

from reverie.team.protocol import BATCH_BYTES, BATCH_ENTRIES

_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_SUMS = {
    "type": "object",
    "additionalProperties": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
}
_KEY = {"type": "string", "pattern": r"^(?:[^./][^/]*/)*[^./][^/]*\.md$"}
_ETAG = {"ETag": {"schema": {"type": "string"}, "description": "The tag of the whole state"}}
_REPO = {
    "name": "repo",
    "in": "query",
    "required": True,
    "description": "owner/name",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9._-]*/[A-Za-z0-9_][\\w.-]*$"},
}


def document() -> dict[str, object]:
    """The document that /openapi.json answers with."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Reverie team memory",
            "version": "1",
            "description": "One repository's shared memory. Every request carries a token.",
        },
        "security": [{"token": []}],
        "paths": {
            "/api/team_memory": {"get": _read(), "put": _write()},
            "/api/team_memory/log": {"get": _log()},
            "/api/team_memory/refused": {"get": _refusals_operation()},
            "/api/team_memory/versions": {"get": _version()},
            "/health": {"get": _health()},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {
                        "error": {
                            "type": "object",
                            "required": ["what"],
                            "properties": {
                                "what": {"type": "string"},
                                "where": {"type": "string"},
                                "do": {"type": "string"},
                            },
                        }
                    },
                },
                "State": {
                    "type": "object",
                    "required": ["checksums", "tombstones", "authors", "etag"],
                    "properties": {
                        "entries": _TEXTS,
                        "checksums": _SUMS,
                        "tombstones": _TEXTS,
                        "authors": _TEXTS,
                        "etag": {"type": "string"},
                    },
                },
                "Batch": {
                    "type": "object",
                    "additionalProperties": False,
                    "description": f"At most {BATCH_BYTES:,} bytes and {BATCH_ENTRIES:,} entries",
                    "properties": {
                        "entries": {**_TEXTS, "propertyNames": _KEY},
                        "checksums": {**_SUMS, "propertyNames": _KEY},
                        "deleted": {"type": "array", "items": _KEY},
                    },
                },
            },
        },
    }


def _answers(content: Mapping[str, object] | None = None, *more: str) -> dict[str, object]:
    found: dict[str, object] = {}
    if content is not None:
        found["200"] = {
            "description": "Done",
            "headers": _ETAG,
            "content": {"application/json": {"schema": content}},
        }
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for status in ("400", "401", "404", "503", *more):
        found[status] = {"description": "Refused", "content": error}
    return found


def _link(answers: dict[str, object], operation: str, more: Mapping[str, str]) -> None:
    """What may be asked next, of the same repository."""
    done = cast("dict[str, dict[str, object]]", answers)["200"]
    links = cast("dict[str, object]", done.setdefault("links", {}))
    given = {"repo": "$request.query.repo", **more}
    links[operation] = {"operationId": operation, "parameters": given}


def _header(name: str, *, required: bool) -> dict[str, object]:
    return {"name": name, "in": "header", "required": required, "schema": {"type": "string"}}


def _read() -> dict[str, object]:
    answers = _answers({"$ref": "#/components/schemas/State"})
    answers["304"] = {"description": "As it was", "headers": _ETAG}
    _link(answers, "writeTeamMemory", {"If-Match": "$response.header.ETag"})
    view = {"name": "view", "in": "query", "schema": {"enum": ["hashes"]}}
    return {
        "operationId": "readTeamMemory",
        "parameters": [_REPO, view, _header("If-None-Match", required=False)],
        "responses": answers,
    }


def _write() -> dict[str, object]:
    done = {
        "type": "object",
        "required": ["written", "etag"],
        "properties": {
            "written": {"type": "array", "items": {"type": "string"}},
            "etag": {"type": "string"},
        },
    }
    batch = {"application/json": {"schema": {"$ref": "#/components/schemas/Batch"}}}
    answers = _answers(done, "403", "408", "409", "412", "413", "415", "428", "429")
    _link(answers, "readTeamMemory", {})
    _link(answers, "logTeamMemory", {})
    _link(answers, "writeTeamMemory", {"If-Match": "$response.header.ETag"})
    return {
        "operationId": "writeTeamMemory",
        "parameters": [_REPO, _header("If-Match", required=False)],
        "requestBody": {"required": True, "content": batch},
        "responses": answers,
    }


_LIMIT = {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1}}


def _log() -> dict[str, object]:
    row = {"type": "object", "required": ["key", "version", "sha256", "author", "at", "deleted"]}
    told = {"type": "object", "properties": {"versions": {"type": "array", "items": row}}}
    answers = _answers(told)
    return {"operationId": "logTeamMemory", "parameters": [_REPO, _LIMIT], "responses": answers}


def _refusals_operation() -> dict[str, object]:
    numbers = ("status", "times", "begun", "latest")
    row = {"type": "object", "required": ["org", "repo", "token", "author", *numbers]}
    told = {"type": "object", "properties": {"refused": {"type": "array", "items": row}}}
    return {
        "operationId": "readTeamRefusals",
        "parameters": [_REPO, _LIMIT],
        "responses": _answers(told),
    }


def _version() -> dict[str, object]:
    key = {"name": "key", "in": "query", "required": True, "schema": {"type": "string"}}
    number = {"name": "version", "in": "query", "required": True, "schema": {"type": "integer"}}
    told = {"type": "object", "required": ["key", "version", "content"]}
    return {
        "operationId": "readTeamVersion",
        "parameters": [_REPO, key, number],
        "responses": _answers(told),
    }


def _health() -> dict[str, object]:
    told = {"type": "object", "required": ["status"]}
    return {
        "operationId": "health",
        "security": [],
        "responses": {
            "200": {"description": "Up", "content": {"application/json": {"schema": told}}},
            "503": {"description": "Down", "content": {"application/json": {"schema": told}}},
        },
    }


# --- Figures of one server process in Prometheus' text form: requests by method and status,
# seconds.
#
# No repository, token or key is ever part of a label: whoever may read the figures learns nothing
# of what is stored.


class ServerFigures:
    """Counts since the process began."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._running = 0

    @contextlib.contextmanager
    def timed(self, method: str) -> Generator[Callable[[int], None]]:
        """Count a request; its block tells the status."""
        begun = time.perf_counter()
        self._running += 1

        def record_status(status: int) -> None:
            self._requests[method, status] += 1
            self._seconds[method] += time.perf_counter() - begun  # type: ignore[assignment]

        try:
            yield record_status
        finally:
            self._running -= 1

    def text(self) -> str:
        lines = [
            "# HELP reverie_team_requests_total Requests answered.",
            "# TYPE reverie_team_requests_total counter",
        ]
        for (method, status), count in sorted(self._requests.items()):
            lines.append(
                f'reverie_team_requests_total{{method="{method}",status="{status}"}} {count}'
            )
        lines += [
            "# HELP reverie_team_request_seconds_total Seconds spent on requests.",
            "# TYPE reverie_team_request_seconds_total counter",
        ]
        for method, seconds in sorted(self._seconds.items()):
            lines.append(f'reverie_team_request_seconds_total{{method="{method}"}} {seconds:.6f}')
        lines += [
            "# HELP reverie_team_requests_running Requests under way.",
            "# TYPE reverie_team_requests_running gauge",
            f"reverie_team_requests_running {self._running}",
        ]
        return "\n".join(lines) + "\n"
