"""Rich's Markdown for a conversation: quiet headings, and lines that end where they were ended."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown
from rich.text import Text


class _QuietHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        yield Text(self.text.plain, style="bold")


class QuietMarkdown(Markdown):
    """Headings are left, bold, without a box; a line that was ended is not joined to the next."""

    elements: ClassVar = {**Markdown.elements, "heading_open": _QuietHeading}

    def __init__(self, markup: str) -> None:
        super().__init__(markup, hyperlinks=False)
        for token in self.parsed:
            for part in token.children or ():
                if part.type == "softbreak":
                    part.type = "hardbreak"
