"""Runs the tests marked `doors`; one that failed is run once more by itself.

They talk to programs of foreign make, over real clocks, ports and processes: on a busy machine one
of them may miss its moment without anything being wrong. So up to two get a second chance, each in
a process of its own, and the last line names them. What fails twice fails, and all does where more
than two failed. The first failure stands in pytest's own report, in full.

    python -m scripts.doors [pytest's arguments]
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from reverie.text.counts import plural

CACHE = ".pytest_cache/doors"
SECOND_CHANCES = 2
FAILED = 1  # of pytest's exit codes, the one for tests that failed

Run = Callable[[Sequence[str]], tuple[int, list[str]]]
"""Runs pytest; its exit code, and which tests failed."""


def pytest_run(arguments: Sequence[str]) -> tuple[int, list[str]]:
    own = ["-m", "doors", "--timeout", "300", "--cache-clear", "-o", f"cache_dir={CACHE}"]
    done = subprocess.run([sys.executable, "-m", "pytest", *own, *arguments], check=False)
    noted = Path(CACHE) / "v" / "cache" / "lastfailed"
    failed = list(json.loads(noted.read_text())) if noted.exists() else []
    return done.returncode, failed


def run(arguments: Sequence[str], pytest: Run = pytest_run) -> tuple[int, str]:
    """The exit code of all of it, and the last line."""
    code, failed = pytest(arguments)
    if code == 0:
        return 0, "no door needed a second run"
    if code != FAILED or not failed:
        return code or FAILED, f"the doors could not be run: pytest ended with {code}"
    if len(failed) > SECOND_CHANCES:
        return FAILED, _said(failed, "failed, which is too many for a second run")
    twice = [one for one in failed if pytest([one])[0]]
    if twice:
        return FAILED, _said(twice, "failed twice")
    return 0, _said(failed, "needed a second run")


def _said(doors: list[str], what: str) -> str:
    return f"{plural(len(doors), 'door')} {what}: {', '.join(doors)}"


def main() -> None:
    code, last = run(sys.argv[1:])
    print(last, flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
