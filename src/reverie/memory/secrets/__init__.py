"""Finds secrets before they are saved or sent.

`scan` lists rule and line of each; `checked` gives back the very bytes it looked at, or raises
`SecretFound`; `removed` is a text without them. All raise `ScanFailed` when they cannot tell,
which means no. The value of a secret is in no hit, error or log.
"""

from __future__ import annotations

from reverie.memory.secrets.removal import removed
from reverie.memory.secrets.scanner import (
    Scanned,
    ScanWork,
    SecretHit,
    checked,
    found,
    scan,
    tellable,
)

__all__ = ["ScanWork", "Scanned", "SecretHit", "checked", "found", "removed", "scan", "tellable"]
