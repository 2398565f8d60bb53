"""`python -m reverie.apps.hook`: one event of Claude Code, as JSON on standard input."""

from __future__ import annotations

import sys

from reverie.apps.hook.events import main

sys.exit(main(sys.stdin.buffer, sys.stdout))
