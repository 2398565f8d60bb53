"""The options that many commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Project = Annotated[
    Path, typer.Option("--project", help="A folder in the project.", show_default=False)
]
CURRENT = Path(".")
