"""Checks every file of the tree for what must not be in it.

No package registry's host, no path of the machine it was written on, no address in a
lock. The files are those git tracks or would track.

    python -m scripts.tree
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REGISTRIES = re.compile(
    r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|yarnpkg\.com|deb\.debian\.org|"
    r"security\.debian\.org|archive\.ubuntu\.com|static\.crates\.io|index\.crates\.io"
)
# Names that stand for anyone in examples and tests.
ANYONE = "alice|ann|bob|dev|me|someone|user|you"
HOMES = re.compile(
    rf"(?<![\w.~}}-])/(?:home|Users)/(?!(?:{ANYONE})\b)\w[\w.-]*/|(?<![\w.~-])/roo[t]/"
)
WORKPLACE = re.compile(r"(?<![\w.~-])/work/(?:main|shared)\b")
ADDRESS = re.compile(r"\w+://|--(?:extra-)?index-url|--find-links|--trusted-host")


def files(root: Path) -> list[Path]:
    """What git tracks, and what it would if asked."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=root,
        check=True,
        capture_output=True,
    ).stdout.decode()
    return sorted(path for name in listed.split("\0") if name and (path := root / name).is_file())


def rules(path: Path, root: Path) -> list[tuple[str, re.Pattern[str]]]:
    """The rules that hold for this file, each with its name."""
    held = [
        ("host of a package registry", REGISTRIES),
        ("path of somebody's home", HOMES),
        ("path of one machine", WORKPLACE),
    ]
    if len(root.parts) > 2:
        held.append(("path of this clone", re.compile(re.escape(str(root)) + r"\b")))
    if "locks" in path.relative_to(root).parts[:-1]:
        held.append(("address in a lock", ADDRESS))
    return held


def problems(root: Path) -> Iterator[str]:
    """One line for each thing found, with file and line."""
    for path in files(root):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        held = rules(path, root)
        for number, line in enumerate(text.splitlines(), 1):
            for name, pattern in held:
                if found := pattern.search(line):
                    yield f"{path.relative_to(root)}:{number}: {name}: {found[0]}"


def main() -> None:
    found = list(problems(ROOT))
    print("\n".join(found) if found else "tree: nothing that should not be there")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
