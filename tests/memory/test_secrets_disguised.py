"""Row 55: a secret that is encoded, split or mixed with signs nobody sees is found as well."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from pathlib import Path

import pytest

from reverie.secrets import SecretHit, scan
from tests.conftest import Scale
from tests.memory.test_secrets_generator import CORE, Rule, one, upstream

pytestmark = [pytest.mark.spec("11.secrets"), pytest.mark.spec("7.secrets")]


@pytest.fixture(scope="module")
def published(shared: Path) -> dict[str, Rule]:
    return {rule.id: rule for rule in upstream(shared)}


def named(text: str | bytes) -> set[str]:
    return {hit.rule for hit in scan(text)}


FULL_WIDTH = {ord(c): chr(ord(c) + 0xFEE0) for c in map(chr, range(0x21, 0x7F))}
DISGUISES: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal in pairs": lambda text: text.encode().hex(" "),
    "percent": lambda text: "".join(f"%{ord(c):02x}" for c in text),
    "unicode escapes": lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    "byte escapes": lambda text: "".join(f"\\x{ord(c):02x}" for c in text),
    "entities": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "entities in hexadecimal": lambda text: "".join(f"&#x{ord(c):x};" for c in text),
    "entities by name": lambda text: html.escape(text).replace("_", "&lowbar;"),
}
FREE: dict[str, Callable[[str], str]] = {
    "zero-width": "\u200b".join,
    "soft hyphens": lambda text: text[:9] + "\u00ad" + text[9:],
    "a terminal's colour": lambda text: text[:9] + "\x1b[01;31m\x1b[K" + text[9:] + "\x1b[m",
    "full-width": lambda text: text.translate(FULL_WIDTH),
    "two lines": lambda text: text[:12] + "\n" + text[12:],
    "two lines, indented": lambda text: text[:12] + "\\\n    " + text[12:],
    "two lines of a quotation": lambda text: text[:12] + "\n> " + text[12:],
}
SEEN_THROUGH = [rule for rule in CORE if rule != "private-key"]


@pytest.mark.parametrize("disguise", [*DISGUISES, *FREE])
def test_row_55_one_disguise(published: dict[str, Rule], disguise: str) -> None:
    put = {**DISGUISES, **FREE}[disguise]
    for rule in SEEN_THROUGH:
        secret = one(published[rule])
        hits = scan(f"first\nkept as {put(secret)}\nand so on")
        assert rule in {hit.rule for hit in hits}, rule
        assert {hit.line for hit in hits if hit.rule == rule} == {2}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_text_that_begins_with_a_disguised_secret(
    published: dict[str, Rule], disguise: str
) -> None:
    secret = DISGUISES[disguise](one(published["github-pat"]))
    assert "github-pat" in named(secret)
    assert "github-pat" in named(f"{secret} is what it is kept as")


def test_row_55_two_disguises_one_in_the_other(published: dict[str, Rule], scale: Scale) -> None:
    chosen = scale.pick(["github-pat", "anthropic-api-key", "jwt"], SEEN_THROUGH)
    for rule in chosen:
        secret = one(published[rule])
        for inner, hide in DISGUISES.items():
            for outer, cover in DISGUISES.items():
                assert rule in named(f"kept as {cover(hide(secret))} here"), (rule, inner, outer)


def test_row_55_both_disguises_and_hidden_signs(published: dict[str, Rule]) -> None:
    secret = base64.b64encode(base64.b64encode(one(published["gitlab-pat"]).encode())).decode()
    for cover in (FREE["zero-width"], FREE["full-width"], FREE["two lines"]):
        assert "gitlab-pat" in named(f"kept as {cover(secret)} here")


def test_row_55_a_key_wrapped_in_a_block_of_base64(published: dict[str, Rule]) -> None:
    body = base64.encodebytes(b"notes first, many of them\n" * 5 + one(published["jwt"]).encode())
    assert "jwt" in named(b"attached:\n\n" + body + b"\nend\n")


def test_row_55_split_after_any_sign(published: dict[str, Rule], scale: Scale) -> None:
    secret = one(published["stripe-access-token"])
    for at in range(1, len(secret), scale.pick(5, 1)):
        for before in ("", "filler\n"):
            text = f"{before}{secret[:at]}\n{secret[at:]}\nNext line\n"
            assert "stripe-access-token" in named(text), at


def test_row_55_a_value_in_disguise_after_a_name_in_clear(published: dict[str, Rule]) -> None:
    value = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
    assert "adafruit-api-key" in named(f"adafruit_key = {value}")


def test_row_55_utf_16_and_32(published: dict[str, Rule]) -> None:
    text = f"one\nkey {one(published['npm-access-token'])}\n"
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"):
        assert scan(text.encode(encoding)) == (SecretHit("npm-access-token", 2),), encoding


@pytest.mark.parametrize("reach", ["reversed", "three encodings"])
def test_row_55_known_limits(published: dict[str, Rule], reach: str) -> None:
    secret = one(published["github-pat"])
    hide = DISGUISES["hexadecimal"]
    text = secret[::-1] if reach == "reversed" else hide(hide(hide(secret)))
    assert "github-pat" not in named(f"kept as {text} here")
