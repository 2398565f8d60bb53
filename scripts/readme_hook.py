"""The long description of a built package: the README, with links that work elsewhere.

Hatchling runs this when it builds (`[tool.hatch.metadata.hooks.custom]`). A link to a file of the
repository becomes the address of that file at the version that is built; pictures become their
raw bytes. Code and everything else stays as it is written.
"""

from __future__ import annotations

import re
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(
    r"""(?P<code>^```.*?^```|`[^`\n]+`)"""
    r"""|(?P<before>\]\(|\b(?:src|href|srcset)=")(?P<path>[^)"\s]+)(?P<after>[^)"]*[)"])""",
    re.MULTILINE | re.DOTALL,
)
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//|#)", re.IGNORECASE)
PICTURES = (".gif", ".jpg", ".png", ".svg", ".webp")


def absolute(text: str, files: str, raw: str) -> str:
    """The text with every relative link led to `files`, and to `raw` where it is a picture."""

    def led(found: re.Match[str]) -> str:
        path = found["path"]
        if found["code"] or ELSEWHERE.match(path):
            return found[0]
        base = raw if path.partition("#")[0].endswith(PICTURES) else files
        return f"{found['before']}{base}{path.removeprefix('./')}{found['after']}"

    return LINK.sub(led, text)


class ReadmeHook(MetadataHookInterface):
    """Fills in `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        from pathlib import Path

        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata["urls"]["Source"].rstrip("/")
        version = metadata["version"]
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(text, f"{source}/blob/v{version}/", f"{source}/raw/v{version}/"),
        }
