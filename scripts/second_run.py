"""Runs pytest; a few tests that failed are run once more by themselves, and named.

The tests marked `doors` talk to programs of foreign make, over real clocks, ports and processes: on
a busy machine one of them may miss its moment without anything being wrong. So up to two get a
second run, each in a process of its own, and the last line names them; where a clean clone is
checked before it lands, two of the other tests do as well. What fails twice fails, and all does
where more failed. The first failure stands in pytest's own report, in full.

    python -m scripts.second_run [--doors] [--most 2] [pytest's arguments of the first run]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from reverie.text import plural

CACHE = ".pytest_cache/second_run"
DOORS = ("-m", "doors", "--timeout", "300")
FAILED = 1  # of pytest's exit codes, the one for tests that failed

Run = Callable[[Sequence[str]], tuple[int, list[str]]]
"""Runs pytest; its exit code, and which tests failed."""


def pytest_run(always: Sequence[str], arguments: Sequence[str]) -> tuple[int, list[str]]:
    own = [*always, "--cache-clear", "-o", f"cache_dir={CACHE}"]
    done = subprocess.run([sys.executable, "-m", "pytest", *own, *arguments], check=False)
    noted = Path(CACHE) / "v" / "cache" / "lastfailed"
    failed = list(json.loads(noted.read_text())) if noted.exists() else []
    return done.returncode, failed


def run(arguments: Sequence[str], pytest: Run, noun: str, most: int) -> tuple[int, str]:
    """The exit code of all of it, and the last line."""
    code, failed = pytest(arguments)
    if code == 0:
        return 0, f"no {noun} needed a second run"
    if code != FAILED or not failed:
        return code or FAILED, f"the {noun}s could not be run: pytest ended with {code}"
    told = f"{plural(len(failed), noun)} failed"
    if len(failed) > most:
        few = ", which is too many for a second run" if most else ""
        return FAILED, f"{told}{few}: {', '.join(failed)}"
    twice = [one for one in failed if pytest([one])[0]]
    if twice:
        return FAILED, f"{plural(len(twice), noun)} failed twice: {', '.join(twice)}"
    return 0, f"{plural(len(failed), noun)} needed a second run: {', '.join(failed)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, add_help=False, allow_abbrev=False)
    parser.add_argument("--doors", action="store_true")
    parser.add_argument("--most", type=int, default=2)
    wanted, arguments = parser.parse_known_args()
    runs = partial(pytest_run, DOORS if wanted.doors else ())
    code, last = run(arguments, runs, "door" if wanted.doors else "test", wanted.most)
    print(last, flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
