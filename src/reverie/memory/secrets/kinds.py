"""The ways in which a value that a rule of our own found is judged. `likely` has them."""

from __future__ import annotations

from typing import Literal, TypeAlias

SecretKind: TypeAlias = Literal[
    "",
    "token",
    "key",
    "password",
    "strict",
    "address",
    "cookie",
    "groups",
    "words",
    "alone",
    "beside",
    "near",
    "drawn",
]
"""How a value is told from what only stands in its place: `key` after the name of one, `strict`
where hardly anything was said before it, `address` where nothing else can stand, `cookie` for a
row of `name=value`, `groups` for letters in groups, `words` for a phrase,
`alone` where only a password can stand, `beside` for a long key that only has
a name beside it, `near` where each word of a stretch is judged by itself
(`certain`), `drawn` where a beginning is all there is before a long row without words."""
