"""The page in a real Chromium: what people do on it, with and without script."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.fleet import FleetLedger
from reverie.store import canonical_root
from tests.cli.conftest import Run
from tests.processes import running
from tests.web.conftest import Page, talk
from tests.web.nights import half_a_night

pytestmark = [pytest.mark.integration, pytest.mark.needs("chromium"), pytest.mark.spec("18.web")]
AXE = Path(__file__).parents[2] / ".venv/clients/node_modules/axe-core/axe.min.js"
VIEWS = ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark"))
SLEEPER = Path(__file__).parents[1] / "cli" / "sleeping_dream.py"


class Browser:
    """A Chromium on the page of a running `reverie web`."""

    def __init__(self, chromium: Any, link: str) -> None:
        self.chromium = chromium
        self.base = link.partition("/?")[0]
        self.faults: list[str] = []
        self.outside: list[str] = []
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        self.tab = self.watched(context.new_page())
        self.tab.goto(link)
        self.tab.wait_for_url("**/sessions")
        self.cookies = context.cookies()

    def watched(self, tab: Any) -> Any:
        tab.on("console", lambda one: one.type == "error" and self.faults.append(one.text))
        tab.on("pageerror", lambda one: self.faults.append(str(one)))
        tab.on("request", lambda one: one.url.startswith(self.base) or self.outside.append(one.url))
        return tab

    def plain(self) -> Any:
        """A tab without script, with the same cookie."""
        context = self.chromium.new_context(java_script_enabled=False)
        context.add_cookies(self.cookies)
        return context.new_page()

    def go(self, path: str) -> Any:
        self.tab.goto(self.base + path)
        return self.tab


@pytest.fixture
def browser(page: Page, project: Path) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    line = [sys.executable, "-m", "reverie.apps.cli", "web", "--port", "0", "--json"]
    with running(line, cwd=project) as process:
        assert process.stdout is not None
        link = json.loads(process.stdout.readline())["url"]
        with sync_playwright() as play:
            chromium = play.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            try:
                yield Browser(chromium, link)
            finally:
                chromium.close()


def apart(work: Any, *given: Any) -> Any:
    """Run it beside the browser's own loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(anyio.run, work, *given).result()


def screens(page: Page) -> list[str]:
    (file,) = page.desk.library.sessions()
    with page.desk.memory_there() as memories:
        keys = memories.folder.keys()
    hostile = next(key for key in keys if "hostile" in key)
    found = ["/sessions", f"/sessions/{file.id}", "/memories", f"/memories/{hostile}", "/review"]
    found += [f"/memories/{hostile}?view=source", "/memories/moving", "/health", "/health/mend"]
    found += ["/savings", "/team", "/fleet"]
    return [*found, f"/memories/edit/{hostile}", "/recall?q=port+of+service", "/dream", "/nothing"]


def test_every_screen_is_whole_and_within_reach_in_four_views(page: Page, browser: Browser) -> None:
    """No sideways scroll, no fault of the policy, nothing loaded from elsewhere, and no serious
    finding of axe, at both widths, light and dark."""
    for path in screens(page):
        whole_in_four_views(browser.go(path), path)
    assert browser.outside == []
    assert [one for one in browser.faults if "404" not in one] == []


def whole_in_four_views(tab: Any, path: str) -> None:
    for width, theme in VIEWS:
        tab.set_viewport_size({"width": width, "height": 844})
        tab.emulate_media(color_scheme=theme)
        over = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, (path, width)
        tab.evaluate(AXE.read_text())  # the tool speaks over the debugging line, past the policy
        found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
        bad = [
            (one["id"], [node["html"][:120] for node in one["nodes"][:2]])
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        assert bad == [], (path, width, theme)
    tab.set_viewport_size({"width": 320, "height": 700})
    assert tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path


def test_row_68_hostile_text_does_nothing_in_a_browser(page: Page, browser: Browser) -> None:
    for path in screens(page):
        tab = browser.go(path)
        assert tab.title() != "pwned", path
        assert tab.locator("main img, main iframe, main svg[onload]").count() == 0
        assert tab.locator("main a[href^=javascript], main a[href^=data]").count() == 0
    assert browser.outside == []


def test_row_67_a_page_of_another_site_changes_nothing(page: Page, browser: Browser) -> None:
    """Forms, fetches and frames from another origin, with the browser's own cookie in place."""
    tab = browser.watched(browser.tab.context.new_page())
    action = f"{browser.base}/memories/new"
    tab.goto("data:text/html,<title>evil</title>")
    tab.set_content(
        f'<form method="post" action="{action}"><input name="text" value="Planted"></form>'
    )
    with tab.expect_navigation():
        tab.evaluate("document.forms[0].submit()")
    assert "page of another site" in tab.content()
    tab.goto("data:text/html,<title>evil</title>")
    got = tab.evaluate(
        "async url => { try { await fetch(url, {method: 'POST', mode: 'no-cors', credentials:"
        " 'include', headers: {'content-type': 'text/plain'}, body: 'text=Planted'});"
        " return 'sent' } catch { return 'refused' } }",
        action,
    )
    assert got in ("sent", "refused")
    rebound = browser.chromium.new_context(extra_http_headers={"host": "evil.test"})
    assert rebound.request.get(f"{browser.base}/sessions").status == 403
    assert "Planted" not in browser.go("/memories").content()


@pytest.mark.parametrize("script", [True, False])
def test_a_memory_is_edited_and_undone(
    page: Page, browser: Browser, process: Run, script: bool
) -> None:
    key = "user_port_of_service_0.md"
    tab = browser.tab if script else browser.plain()
    tab.goto(f"{browser.base}/memories/{key}")
    tab.get_by_role("link", name="Edit").click()
    tab.get_by_label("Text").fill("Fact 0: the service listens on port 9000.")
    tab.get_by_role("button", name="Save").click()
    assert "9000" in process("memory", "show", key, "--json").json()["text"]
    assert tab.locator(".diff ins", has_text="9000").count()
    tab.locator(".banner").get_by_role("button", name="Undo").click()
    assert "8000" in process("memory", "show", key, "--json").json()["text"]
    assert "Undone" in tab.locator(".banner").inner_text()


def test_a_text_is_reviewed(browser: Browser, process: Run) -> None:
    tab = browser.go("/review")
    tab.keyboard.press("e")
    tab.get_by_label("Text").fill(
        "---\nname: Orders\ntype: reference\n---\n\nOrders are in Linear.\n"
    )
    tab.get_by_role("button", name="Save", exact=True).click()
    assert process("memory", "review", "list", "--json").json()["items"] == []
    assert "Orders are in Linear" in process("memory", "show", "reference_orders.md", "--json").out


@pytest.mark.parametrize("script", [True, False])
def test_a_dream_is_seen_running_and_killed(
    browser: Browser, process: Run, home: Path, project: Path, script: bool
) -> None:
    tab = browser.go("/dream") if script else browser.plain()
    line = [sys.executable, str(SLEEPER), str(home), str(canonical_root(project))]
    with running(line) as dreaming:
        assert dreaming.stdout is not None
        assert dreaming.stdout.readline() == "dreaming\n"
        if not script:
            tab.goto(f"{browser.base}/dream")
        kill = tab.get_by_role("button", name="Kill")
        kill.wait_for(timeout=30_000)  # with script it appears by itself
        if script:
            tab.keyboard.press("k")
        else:
            kill.click()
        tab.locator(".banner").wait_for(timeout=30_000)
        assert "Killed" in tab.locator(".banner").first.inner_text()
        assert dreaming.stdout.readline() == "killed\n"
    assert process("dream", "status", "--json").json()["dreams"][0]["status"] == "killed"


@pytest.mark.parametrize("script", [True, False])
def test_a_dream_is_accepted_and_undone(browser: Browser, process: Run, script: bool) -> None:
    for said in ("The freeze ends with the release.", "the freeze ends with the release!"):
        process("memory", "add", said, "--name", "Freeze", "--type", "project")
    process("dream", "run", "--dry-run")
    tab = browser.tab if script else browser.plain()
    tab.goto(f"{browser.base}/dream")
    tab.get_by_role("button", name="Accept").click()
    done = process("dream", "status", "--json").json()["dreams"][0]
    assert done["status"] == "completed"
    assert done["changed"]
    tab.get_by_role("button", name="Undo").click()
    assert process("dream", "status", "--json").json()["dreams"][0]["status"] == "undone"


def test_a_running_session_is_followed(page: Page, browser: Browser, project: Path) -> None:
    """A new session appears in the list, and its timeline grows, without a reload."""
    tab = browser.go("/sessions")
    tab.evaluate("window.same = true")
    ident = apart(talk, project, "A live one", 1)
    row = tab.locator("tbody a", has_text="A live one")
    row.wait_for(timeout=30_000)
    assert tab.evaluate("window.same") is True
    row.click()
    assert tab.url.endswith(ident)
    tab.evaluate("window.same = true")
    apart(_goes_on, project, ident)
    tab.get_by_text("And another thing").first.wait_for(timeout=30_000)
    assert tab.evaluate("window.same") is True


async def _goes_on(project: Path, ident: str) -> None:
    from reverie.session import open_session
    from reverie.wire import user
    from tests.web.conftest import reply

    async with open_session(project, resume=ident, model="test-model") as session:
        await session.add(user("And another thing"))
        await session.prepare()
        await session.observe(reply("Yes.", read=5_000))
        await session.end_turn()


@pytest.fixture
def night(home: Path) -> Iterator[FleetLedger]:
    """A fleet of this host in the middle of a night."""
    with half_a_night(home) as ledger:
        yield ledger


@pytest.mark.parametrize("script", [True, False])
def test_a_dead_job_is_retried_and_taken_back(
    night: FleetLedger, browser: Browser, script: bool
) -> None:
    """Seen whole in four views, by keys alone with script, by clicks without."""
    (dead,) = night.jobs(state="dead")
    tab = browser.tab
    tab.keyboard.press("g")
    tab.keyboard.press("f")
    tab.wait_for_url("**/fleet")
    tab.get_by_role("heading", name="What is wrong").wait_for(timeout=30_000)
    tab.locator("[aria-busy]").first.wait_for(state="detached", timeout=30_000)
    if script:
        whole_in_four_views(tab, "/fleet")
    else:
        tab = browser.plain()
        tab.goto(f"{browser.base}/fleet")
    tab.get_by_role("button", name=re.compile("Retry ?: search, dream")).first.press("Enter")
    tab.locator(".banner").wait_for(timeout=30_000)
    assert "It is queued again" in tab.locator(".banner").inner_text()
    assert night.job("default", dead["key"])["state"] == "queued"
    assert tab.locator(".tile", has_text="Dead").locator("dd").inner_text().strip() == "0"
    if script:
        tab.keyboard.press("u")
    else:
        tab.get_by_role("button", name="Cancel it").click()
    tab.locator(".banner", has_text="Cancelled.").wait_for(timeout=30_000)
    assert night.job("default", dead["key"])["state"] == "cancelled"
    assert browser.outside == []
    assert browser.faults == []


@pytest.fixture
def other(home: Path, tmp_path: Path) -> Path:
    """Another project of the home, with a session."""
    folder = tmp_path / "other"
    folder.mkdir()
    anyio.run(talk, folder, "Another project", 1)
    return folder


@pytest.mark.spec("18.web-projects")
@pytest.mark.parametrize("script", [True, False])
def test_another_project_is_chosen_and_what_is_done_stays_in_it(
    other: Path, browser: Browser, process: Run, script: bool
) -> None:
    """By the keyboard alone, with script and without; seen whole in four views."""
    tab = browser.tab if script else browser.plain()
    tab.goto(f"{browser.base}/memories")
    tab.locator(".switch summary").press("Enter")
    tab.locator(".switch").get_by_role("link", name=re.compile("^other")).press("Enter")
    tab.wait_for_url("**/projects/*-other/memories")
    assert "No memories yet" in tab.content()
    tab.get_by_role("link", name="Remember something").first.press("Enter")
    tab.get_by_role("textbox", name="Text").fill("The port of the other project is 7000.")
    tab.get_by_role("button", name="Save").press("Enter")
    tab.wait_for_url("**/projects/*-other/memories/*")
    shown = process("memory", "list", "--json", "--project", str(other)).json()
    assert len(shown["memories"]) == 1
    assert "7000" not in process("memory", "list", "--json").out
    assert browser.outside == []
    if not script:
        return
    tab.keyboard.press("g")
    tab.keyboard.press("s")
    tab.wait_for_url("**/projects/*-other/sessions")
    tab.locator("tbody a", has_text="Another project").wait_for(timeout=30_000)
    apart(talk, other, "A live one", 1)
    tab.locator("tbody a", has_text="A live one").wait_for(timeout=30_000)
    tab.locator(".switch summary").click()
    whole_in_four_views(tab, "/sessions")
    whole_in_four_views(browser.go("/projects"), "/projects")
    assert browser.faults == []


@pytest.mark.spec("18.web-resume")
def test_the_resume_command_is_copied_and_told(page: Page, browser: Browser) -> None:
    (file,) = page.desk.library.sessions()
    command = f"reverie --resume {file.id}"
    tab = browser.tab
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=browser.base)
    browser.go(f"/sessions/{file.id}")
    button = tab.get_by_role("button", name="Copy the resume command")
    button.press("Enter")
    said = tab.locator(".head [role=status]")
    said.get_by_text("Copied. Paste it into a terminal.").wait_for(timeout=30_000)
    assert tab.evaluate("navigator.clipboard.readText()") == command
    # a page that is not given the clipboard: what is to be copied is selected
    tab.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    browser.go(f"/sessions/{file.id}")
    tab.keyboard.press("c")
    said.get_by_text("It is selected below").wait_for(timeout=30_000)
    assert tab.evaluate("getSelection().toString()") == command
    plain = browser.plain()
    plain.goto(f"{browser.base}/sessions/{file.id}")
    assert plain.get_by_text(command).is_visible()
    assert not plain.get_by_role("button", name="Copy the resume command").is_visible()
    assert browser.faults == []


def test_keys_move_and_can_be_switched_off(browser: Browser) -> None:
    tab = browser.go("/sessions")
    tab.keyboard.press("g")
    tab.keyboard.press("m")
    tab.wait_for_url("**/memories")
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.type") == "search"
    tab.keyboard.type("gs")
    assert tab.url.endswith("/memories")
    tab.evaluate("document.activeElement.blur()")
    tab.keyboard.press("?")
    tab.get_by_role("button", name="Switch keys off").click()
    tab.keyboard.press("Escape")
    tab.keyboard.press("g")
    tab.keyboard.press("s")
    assert tab.url.endswith("/memories")
