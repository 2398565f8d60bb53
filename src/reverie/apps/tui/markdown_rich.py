"""Rich's Markdown with quiet headings: left, bold, no box."""

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
    """Markdown for a conversation."""

    elements: ClassVar = {**Markdown.elements, "heading_open": _QuietHeading}
