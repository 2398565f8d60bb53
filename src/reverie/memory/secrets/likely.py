"""Whether what a rule of our own found is a secret, or a word that stands in its place.

A password is told from a name by how digits, signs and case are mixed in it: "required",
`config.password2` and `sha256` are none. One made of words alone passes for a name, but where
its place says what it is. It looks at nothing but the value.
"""

from __future__ import annotations

import re

from reverie.memory.secrets.own import SecretKind
from reverie.memory.secrets.plausible import worded

_ASCII = re.compile("[!-~]*")
_STAND_IN = re.compile(
    r"""\W*(?:(?:your|my|the|some|new|old|db|user|admin|root|test|example|sample|default|strong
        |secure|super|secret|change|me|it|password|passwd|passwort|kennwort|pass|pwd|pw|token|key|here|goes
        |username|user|host|guest|postgres|mysql|redis|redacted|hidden|foo|bar|baz|dummy|fake|mock
        |placeholder|replace|todo|string|required|x+|\*+|\.+|…)[\W_]*)+\d{0,4}\W*""",
    re.IGNORECASE | re.VERBOSE,
)
# Words with a number that are no password: ciphers, digests, codings, standards.
_TERM = re.compile(
    r"(?:pbkdf2?|argon2?|bcrypt|scrypt|sha|md|aes|rsa|hs|rs|es|ed|utf|base|oauth|saml|totp|rfc"
    r"|iso|http|ipv|tls|ssl|owasp|python|node|web|log4|step|line|page|phase|level|option|type|version)"
    r"[-_]?\d[a-z0-9.:/-]{0,12}",
    re.IGNORECASE,
)
_SIGN = re.compile(r"[!#%^*?+&$@~=]")
_INVALID = re.compile(
    r"://|^[$@./~-]|^\w+\.\w+\.\w|\.(?:md|py|ts|js|json|ya?ml|txt|go|rs|sh|env)\b|::|->|&&"
)


def likely(kind: SecretKind, value: str) -> bool:
    """Whether this may be a secret of such a kind, and not a word that stands in its place."""
    if kind == "token":
        return not worded(value, 0.8) and not _STAND_IN.fullmatch(value)
    if kind == "address":
        user, _, password = value.replace("/", ":").rpartition(":")
        return password != user and not _STAND_IN.fullmatch(password) and password[0] not in "$%{<["
    found = _ASCII.match(value.strip("\"'`"))
    bare = found[0].rstrip(".,;:)") if found else ""
    if len(bare) < 6 or _STAND_IN.fullmatch(bare) or _INVALID.search(bare) or _TERM.fullmatch(bare):
        return False
    return _random(bare, strict=kind == "strict")


def _random(value: str, *, strict: bool) -> bool:
    """Whether digits, signs and case are mixed as in a password and not as in a name."""
    digit = any(sign.isdigit() for sign in value)
    letter = any(sign.isalpha() for sign in value)
    sign = bool(_SIGN.search(value.rstrip("!?")) or (digit and _SIGN.search(value)))
    mixed = value.lower() != value and value.upper() != value
    named = worded(value, 0.7)
    if not letter:
        return len(value) >= 6 and digit and not strict and value.isdigit()
    if digit and sign:
        return True
    if strict and len(value) < 8:
        return False
    if digit:
        parts = "_" in value or "-" in value or "." in value or "/" in value
        return not (named and parts) and (not strict or (mixed and not named))
    return not named and mixed and (sign or not strict) and len(set(value)) >= 6
