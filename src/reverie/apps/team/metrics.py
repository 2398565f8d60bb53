"""Figures of one server process in Prometheus' text form: requests by method and status, seconds.

No repository, token or key is ever part of a label: whoever may read the figures learns nothing
of what is stored.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Generator


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

        def told(status: int) -> None:
            self._requests[method, status] += 1
            self._seconds[method] += time.perf_counter() - begun  # type: ignore[assignment]

        try:
            yield told
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
