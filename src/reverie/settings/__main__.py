"""Print the page about settings and flags."""

from __future__ import annotations

import sys

from reverie.settings.reference import page

sys.stdout.write(page())
