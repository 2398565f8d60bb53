"""Finds secrets before they are saved or sent.

`scan` lists rule and line of each; `check_clean` gives back the very bytes it looked at, or raises
`SecretFound`; `remove_secrets` is a text without them. All raise `ScanFailed` when they cannot
tell, which means no. The value of a secret is in no hit, error or log.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "names": "one_byte_each rows spelt",
        "patterns": "AFTER_SECRET GITLEAKS TOKENS TOKEN_FLOOR SecretRule compile_pattern keywords"
        " matches rules widen_pattern",
        "plausibility": "certain entropy likely plausible words",
        "scanner": "ScanStats SecretHit check_clean mark remove_secrets scan secret_error tellable",
    },
)
