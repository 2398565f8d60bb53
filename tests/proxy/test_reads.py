"""What was asked for arrives whole: a file read by its path. Through the real server."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from reverie.apps.proxy import sealing
from reverie.settings import DEFAULTS
from reverie.testing import provider
from tests.proxy.clients import assistant, unmarked, user
from tests.proxy.clients import text as block
from tests.proxy.forms import Call, asking, conversation, offered, results
from tests.proxy.proxied import PATHS, Through, proxied, standing

pytestmark = pytest.mark.spec("18.proxy")
LINES = [f"{n}\tvalue {n} of a file that somebody reads" for n in range(1, 6_000)]
FILE = "\n".join(LINES[:3_000])  # a file that has numbers of its own, over the limit


def text(size: int) -> str:
    return "\n".join(LINES)[:size]


def asked(proxy: Through, form: str, calls: list[Call], model: str = "claude-opus-5-5") -> None:
    proxy.post(PATHS[form], asking(form, calls, model), {"authorization": "Bearer a-key"})


CLAUDE = "Read", {"file_path": "/p/a.py", "offset": 1, "limit": 900}
QWEN = "read_file", {"file_path": "/p/a.py"}
WHOLE = [
    ("messages", *CLAUDE, 10_000, "claude-opus-5-5"),
    ("messages", *CLAUDE, 100_000, "claude-sonnet-4-5"),
    ("messages", "read", {"filePath": "/p/a.py"}, 50_000, "claude-opus-5-5"),
    ("messages", "NotebookRead", {"notebook_path": "/p/a.ipynb"}, 50_000, "claude-opus-5-5"),
    ("chat", *QWEN, 90_000, "a-model-of-ones-own"),
    ("chat", "read", {"path": "a.py"}, 30_000, "gpt-5.6"),
    ("chat", *QWEN, 60_000, "gpt-4o"),
    ("responses", "read_file", {"path": "a.py", "start_line": 3}, 99_000, "gpt-5.6"),
]
NOT_WHOLE = [
    ("messages", *CLAUDE, 100_001, "claude-opus-5-5"),
    ("messages", "Read", {}, 10_000, "claude-opus-5-5"),
    ("messages", "Bash", {"command": "cat /p/a.py"}, 10_000, "claude-opus-5-5"),
    ("messages", "mcp__files__read_file", {"path": "/p/a.py"}, 10_000, "claude-opus-5-5"),
    ("chat", "shell", {"command": ["cat", "a.py"]}, 10_000, "gpt-5.6"),
    ("chat", *QWEN, 70_000, "gpt-4o"),  # in proportion to its window
    ("responses", "Grep", {"path": "a.py"}, 10_000, "gpt-5.6"),
]


@pytest.mark.parametrize("policy", ["store", "collapse", "classic"])
@pytest.mark.parametrize("case", [*WHOLE, *NOT_WHOLE], ids=lambda c: f"{c[0]}-{c[1]}-{c[3]}")
def test_a_file_read_by_its_path_arrives_whole(home: Path, case: Any, policy: Any) -> None:
    form, tool, given, size, model = case
    seal = None if policy == "store" else sealing(policy)
    with standing(home, seal=seal) as (upstream, proxy):
        asked(proxy, form, [(tool, given, text(size))], model)
    (found,) = results(form, upstream.requests[0].messages)
    assert (found == text(size)) is (case in WHOLE)
    assert (case in WHOLE) or "<persisted-output>" in found


@pytest.mark.parametrize("policy", ["store", "collapse"])
@pytest.mark.parametrize("form", PATHS)
def test_ten_reads_at_once_stay_and_other_results_make_room(
    home: Path, form: str, policy: Any
) -> None:
    """All together are over what one message may have."""
    seal = None if policy == "store" else sealing(policy)
    reads: list[Call] = [(*CLAUDE, f"file {n}\n{text(21_000)}") for n in range(10)]
    shell: Call = ("Bash", {"command": "make"}, text(7_900))
    with standing(home, seal=seal) as (upstream, proxy):
        asked(proxy, form, [*reads, shell])
    found = results(form, upstream.requests[0].messages)
    assert found[:10] == [result for _, _, result in reads]


def test_what_was_decided_stays_as_it_was(home: Path) -> None:
    calls: list[Call] = [(*CLAUDE, text(20_000))]
    with provider(lambda body: "Good.") as upstream:
        for settings in (replace(DEFAULTS, read_whole=1), DEFAULTS):
            with proxied(home, upstream.anthropic_url, settings=settings) as proxy:
                asked(proxy, "messages", calls)
    first, second = upstream.requests
    assert "<persisted-output>" in results("messages", first.messages)[0]
    assert unmarked(second.messages) == unmarked(first.messages)


# Stored copies

REMINDER = "\n\n<system-reminder>\nThis is the client's,\nnot the file's.\n</system-reminder>\n"
OPENCODE = "read", {"filePath": "/p/a.py"}


def numbered(form: str, first: int = 1) -> str:
    return "\n".join(form.format(n) + line for n, line in enumerate(FILE.split("\n"), first))


DECORATED = {
    "tab": (CLAUDE, numbered("{}\t"), FILE),
    "offset": (CLAUDE, numbered("{}\t", 700), FILE),
    "arrow": (CLAUDE, numbered("{:6}→"), FILE),
    "reminder": (CLAUDE, numbered("{:6}→") + REMINDER, FILE + REMINDER),
    "bar": (OPENCODE, numbered("{:05}| "), FILE),
    "framed": (
        OPENCODE,
        f"<path>/p/a.py</path>\n<content>\n{numbered('{}: ')}\n\n(End of file)\n</content>",
        f"<path>/p/a.py</path>\n<content>\n{FILE}\n\n(End of file)\n</content>",
    ),
    "blocks": (CLAUDE, [block(numbered("{}\t"))], FILE),
    "cat -n": (QWEN, numbered("{:6}\t"), FILE),
}
PLAIN = {
    "the file's own": (QWEN, FILE),
    "of pi": (("read", {"path": "a.tsv"}), FILE),
    "one line without": (CLAUDE, numbered("{}\t").replace("\n900\t", "\nxxx\t")),
    "one number missing": (CLAUDE, numbered("{}\t").replace("\n900\t", "\n90\t")),
    "two forms": (CLAUDE, numbered("{}\t").replace("\n900\t", "\n900→")),
    "a shell's": (("Bash", {"command": "cat -n a.py"}), numbered("{:6}\t")),
}


@pytest.mark.parametrize(
    ("name", "form"), [*zip([*DECORATED, *PLAIN], cycle(PATHS), strict=False), ("arrow", "chat")]
)
def test_a_stored_copy_holds_the_file_and_not_its_tools_numbers(
    home: Path, form: str, name: str
) -> None:
    call, given, kept = DECORATED[name] if name in DECORATED else (*PLAIN[name], PLAIN[name][1])
    with standing(home) as (upstream, proxy):
        asked(proxy, form, [(*call, given)])
    (found,) = results(form, upstream.requests[0].messages)
    stored = Path(found.partition("stored whole in ")[2].partition(";")[0])
    assert stored.read_text() == kept


def test_a_read_that_is_sealed_is_kept_without_numbers_too(home: Path) -> None:
    lines = [f"value {n} of a file that somebody reads" for n in range(1, 900)]
    given = "\n".join(f"{n:6}→{line}" for n, line in enumerate(lines, 1))
    messages: list[Any] = []
    for n in range(8):
        rounds = conversation("messages", [(*CLAUDE, f"{given}\n   900→file {n}")])
        rounds[0] = user(f"Read number {n}, please")
        rounds[1]["content"][0]["id"] = rounds[2]["content"][0]["tool_use_id"] = f"call_{n}"
        messages += [*rounds, assistant("I have read it.")]
    messages.append(user("Which was the last?"))
    body = {"model": "claude-opus-5-5", "max_tokens": 99, "messages": messages}
    body["tools"] = [offered("messages", "Read")]
    with standing(home, seal=sealing("collapse")) as (_, proxy):
        proxy.post(PATHS["messages"], body)
    kept = [path.read_text() for path in home.glob("projects/**/sealed/*.txt")]
    assert [one for one in kept if "value 17 of a file" in one]
    assert not [one for one in kept if "→" in one]
