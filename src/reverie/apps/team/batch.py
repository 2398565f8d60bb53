"""What a client sends, read strictly: a batch of entries, and the tags of conditions.

JSON with a key given twice, a wrong type, more depth than a batch has or anything that is not
known is refused: a server that guesses stores what nobody meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import cast

from reverie.team.values import Draft, HttpRefusal, is_sha256, sha256_of

_STRONG = re.compile(r'"[!#-~]{1,100}"', re.ASCII)
_ANY = re.compile(r'(?:W/)?("[!#-~]{0,100}")', re.ASCII)
_DEPTH = 3
_KNOWN = {"entries", "checksums", "deleted"}


def if_match(given: Sequence[str]) -> str:
    """The one strong tag of an If-Match."""
    if not given:
        raise HttpRefusal(
            428, "A write needs If-Match", do="Read the hashes, and send their ETag in If-Match"
        )
    if len(given) > 1 or not _STRONG.fullmatch(given[0]):
        raise HttpRefusal(400, "If-Match is one strong tag", do='Send it as it came: "…"')
    return given[0]


def none_match(given: Sequence[str]) -> frozenset[str]:
    """The tags of an If-None-Match, compared weakly."""
    return frozenset(tag for one in given for tag in _ANY.findall(one))


def batch_in(body: bytes, headers: Mapping[str, str]) -> list[Draft]:
    """The changes that a body asks for."""
    if headers.get("content-encoding", "identity").lower() not in ("identity", ""):
        raise HttpRefusal(415, "A body is sent as it is, without a Content-Encoding")
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HttpRefusal(415, "A body is JSON", do="Send Content-Type: application/json")
    found = _object(_parsed(body), "The body")
    if unknown := sorted(set(found) - _KNOWN):
        raise HttpRefusal(400, "Unknown members", where=", ".join(unknown)[:200])
    sums = _object(found.get("checksums", {}), "checksums")
    contents = _object(found.get("entries", {}), "entries")
    if strays := sorted(set(sums) - set(contents)):
        raise HttpRefusal(400, "A checksum without its entry", where=strays[0][:200])
    drafts = [_draft(key, value, sums.get(key)) for key, value in contents.items()]
    gone = found.get("deleted", [])
    if not isinstance(gone, list):
        raise HttpRefusal(400, "deleted is a list of keys")
    for key in cast("list[object]", gone):
        if not isinstance(key, str) or key in contents:
            raise HttpRefusal(400, "deleted is a list of keys that are not among the entries")
        drafts.append(Draft(_text(key, key), None, ""))
    if not drafts:
        raise HttpRefusal(400, "The batch is empty")
    return drafts


def _draft(key: str, value: object, checksum: object) -> Draft:
    if not isinstance(value, str):
        raise HttpRefusal(400, "An entry is a text", where=key[:200])
    content = _text(value, key)
    known = sha256_of(content) if checksum is None else checksum
    if not isinstance(known, str) or not is_sha256(known):
        raise HttpRefusal(400, "A checksum is a SHA-256 in 64 small hex digits", where=key[:200])
    return Draft(_text(key, key), content, known)


def _text(text: str, key: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise HttpRefusal(400, "Not valid Unicode", where=ascii(key)[:200]) from None
    return text


def _object(value: object, name: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise HttpRefusal(400, f"{name} is not an object")
    return cast("dict[str, object]", value)


def _parsed(body: bytes) -> object:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise HttpRefusal(400, "The body is not UTF-8") from None
    if _deeper(text):
        raise HttpRefusal(400, f"The body is nested more than {_DEPTH} deep")
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_constant)
    except ValueError:
        raise HttpRefusal(400, "The body is not JSON") from None
    except RecursionError:
        raise HttpRefusal(400, f"The body is nested more than {_DEPTH} deep") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise HttpRefusal(400, "A member is given twice")
    return found


def _constant(name: str) -> object:
    raise HttpRefusal(400, f"{name} is not JSON")


_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


def _deeper(text: str) -> bool:
    """Whether brackets outside of strings go deeper than a batch does."""
    depth = 0
    for sign in re.findall(r"[\[\]{}]", _STRING.sub("", text)):
        depth += 1 if sign in "[{" else -1
        if depth > _DEPTH:
            return True
    return False
