"""`python -m reverie.apps.cli` is `reverie`."""

from __future__ import annotations

from reverie.apps.cli import main

main()
