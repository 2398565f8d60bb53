"""Who is let in, what every answer carries, and what a foreign page can do: nothing."""

from __future__ import annotations

import hashlib
import re

import pytest

from reverie.apps.web import HEADERS, HERE, Gate, application
from tests.web.conftest import Page, Visitor

pytestmark = pytest.mark.spec("18.web")
VENDORED = {
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    "sse.min.js": "98a46496de0c3605fbffdce9167ba427bdd9553184f83f149c261891a92c0136",
}
READS = ("/sessions", "/memories", "/review", "/recall?q=port", "/dream", "/events", "/nothing")


def test_the_token_works_once_and_becomes_a_cookie(page: Page) -> None:
    gate = Gate()
    token = gate.token
    visitor = Visitor(application(page.desk, gate))
    assert visitor.get("/sessions").status == 403
    entered = visitor.enter(gate)
    assert entered.status == 200
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert token not in cookie
    assert visitor.get("/sessions").status == 200
    assert Visitor(visitor.page).get(f"/?token={token}").status == 403
    assert Visitor(visitor.page, visitor.cookie[:-1] + "x").get("/sessions").status == 403


def test_row_67_nothing_is_read_without_the_cookie(page: Page) -> None:
    for path in READS:
        answer = Visitor(page.visitor.page).get(path)
        assert answer.status == 403, path
        assert "reverie web" in answer.text
        assert "Port of service" not in answer.text


def test_row_67_another_host_gets_nothing(page: Page) -> None:
    """A name that only points here, with the cookie or the token of the page."""
    for host in ("evil.test", "evil.test:4321", "127.0.0.1:99", "localhost.x:4321"):
        visitor = Visitor(page.visitor.page, page.visitor.cookie, host)
        for path in (*READS, "/static/reverie.css"):
            assert visitor.get(path).status in (403, 404), (host, path)
        gate = Gate()
        fresh = Visitor(application(page.desk, gate), host=host)
        assert fresh.enter(gate).status == 403
        assert gate.token


def test_row_67_a_change_comes_from_a_form_of_ours(page: Page) -> None:
    form = {"text": "Planted.", "name": "Planted"}
    for headers in (
        {"origin": "null"},
        {"origin": "http://evil.test"},
        {"origin": ""},
        {"origin": "", "sec_fetch_site": "cross-site"},
        {"content_type": "text/plain"},
        {"content_type": "application/json"},
        {"content_type": ""},
    ):
        assert page.visitor.post("/memories/new", form, **headers).status == 403, headers
    assert "Planted" not in page.visitor.get("/memories").text
    assert page.visitor.post("/memories/new", form).status == 303


def test_row_67_a_foreign_page_reads_nothing_and_gets_no_stream(page: Page) -> None:
    for path in ("/sessions", "/events"):
        for site in ("cross-site", "same-site"):  # another port of this machine is the same site
            assert page.visitor.get(path, sec_fetch_site=site).status == 403, site
        assert page.visitor.get(path, origin="http://evil.test").status == 403


def test_every_answer_says_what_may_be_loaded(page: Page) -> None:
    for path in (*READS[:5], "/nothing", "/static/reverie.css", "/static/none.js"):
        found = page.visitor.get(path).headers
        for name, value in HEADERS.items():
            wanted = name == "Cache-Control" and path == "/static/reverie.css"
            assert wanted or found[name.lower()] == value, (path, name)
    refused = Visitor(page.visitor.page).get("/sessions").headers
    assert refused["content-security-policy"] == HEADERS["Content-Security-Policy"]


def test_no_template_needs_what_the_policy_forbids() -> None:
    for file in (HERE / "templates").glob("*.html"):
        text = file.read_text()
        assert not re.search(r"\sstyle=|\son[a-z]+=|javascript:|<style|hx-on|hx-vals", text), file
        assert not re.search(r"<script(?! src=\"/static/)", text), file
        assert not re.search(r"(?:src|href|action)=\"(?:https?:)?//", text), file


def test_vendored_files_are_the_published_ones() -> None:
    for name, sha in VENDORED.items():
        assert hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest() == sha
        licence = HERE / "static" / f"{name.partition('.')[0]}.LICENSE.txt"
        assert "WITHOUT FEE" in licence.read_text().upper()


def test_text_on_its_ground_can_be_read() -> None:
    """4.5 to 1 for text and 3 to 1 for plots and fields, in both themes, from the sheet."""
    sheet = (HERE / "static" / "reverie.css").read_text()
    light, dark = sheet.split("@media (prefers-color-scheme:dark)")[:2]
    for theme in (light, dark.split("}}")[0]):
        colours = dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", theme))
        for ink in ("ink", "dim", "faint", "accent", "ok", "warn", "bad"):
            for ground in ("bg", "card", "sunk"):
                assert _contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
        for name, colour in colours.items():
            if name.startswith(("k-", "c-")) or name == "edge-strong":
                assert _contrast(colour, colours["card"]) >= 3.0, name


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_light(one), _light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _light(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_form_that_is_too_large_is_refused(page: Page) -> None:
    answer = page.visitor.post("/memories/new", {"text": "x" * 2_100_000})
    assert answer.status == 413
