"""The audit: what must survive a compaction, whether it does, and the keep-list."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.transcript import (
    HEAD,
    INTERRUPTED,
    READABLE,
    Item,
    MustSurvive,
    SentBlock,
    audit_replacement,
    binding,
    block_of,
    blocks_of,
    estimate,
    names_in,
    open_tasks,
    parts,
    rank_names,
    reference,
    stands_for_others,
    trouble,
)
from tests.transcript.histories import build, histories

pytestmark = pytest.mark.spec("B10")


def item(ident: str, role: Any, *blocks: dict[str, Any] | str, kind: str = "message") -> Item:
    made = [blocks_of(b)[0] if isinstance(b, str) else block_of(b) for b in blocks]
    return Item(ident, role, tuple(SentBlock(b, ident, i) for i, b in enumerate(made)), kind)


def call(ident: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": ident, "name": name, "input": given}


def result(ident: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": ident, "content": text, **more}


def work() -> list[Item]:
    """A short piece of work: a request with a condition, an edit, a failure, a list."""
    tasks = [
        {"content": "Write the parser", "status": "completed"},
        {"content": "Run the slow tests", "status": "pending"},
        {"content": "Fix the lexer", "status": "in_progress"},
    ]
    frames = "/home/user/src/wire/frames.py"
    code = "def parse_header(raw_bytes):\n    return decode_prefix(raw_bytes)"
    failed = "E   ValueError: bad prefix in frame 7\n1 failed"
    return [
        item("m1", "user", "Fix parse_header in wire/frames.py. Never touch the vendored code."),
        item("m2", "assistant", "I read it.", call("c1", "Read", file_path=frames)),
        item("m3", "user", result("c1", code)),
        item("m4", "assistant", call("c2", "Bash", command="pytest -x tests/test_frames.py")),
        item("m5", "user", result("c2", failed, is_error=True)),
        item("m6", "assistant", call("c3", "TodoWrite", todos=tasks)),
        item("m7", "user", result("c3", "ok")),
    ]


def kinds(found: Any) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for one in found:
        out.setdefault(one.kind, []).append(one.text)
    return out


def test_what_must_survive_is_found_with_where_it_comes_from():
    found = audit_replacement(work(), "").missing
    by = kinds(found)
    assert by["constraint"] == ["Never touch the vendored code."]
    assert by["user"] == [work()[0].pieces[0].block.text]
    assert by["task"] == ["Fix the lexer", "Run the slow tests"]
    assert by["error"] == ["E ValueError: bad prefix in frame 7"]
    assert "/home/user/src/wire/frames.py" in by["path"]
    assert {"parse_header", "decode_prefix"} <= set(by["identifier"])
    assert next(h for h in found if h.kind == "error").message == "m5"
    assert next(h for h in found if h.kind == "task").message == "m6"


def test_a_context_that_has_everything_needs_no_keep_list():
    texts = [p.block.text for i in work() for p in i.pieces]
    references = " ".join(map(reference, ("c1", "c2", "c3")))
    found = audit_replacement(work(), [*texts, references])
    assert (found.fidelity, found.unaided, found.missing, found.keep) == (1.0, 1.0, (), "")
    assert found.held == len(audit_replacement(work(), "").missing)


def test_what_is_missing_is_kept_word_for_word():
    found = audit_replacement(work(), "Some work was done on src/wire/frames.py.")
    assert found.unaided < 0.5
    assert found.fidelity == 1.0
    for one in found.missing:
        assert one.text in found.keep or reference(one.readers[-1]) in found.keep
    assert "Never touch the vendored code." in found.keep
    assert audit_replacement(work(), [found.keep]).missing == found.lost == ()


def test_a_reference_in_the_context_reaches_what_its_call_holds():
    without = audit_replacement(work(), "nothing")
    having = audit_replacement(work(), f"see {reference('c1')}")
    assert "decode_prefix" in kinds(without.missing)["identifier"]
    assert "decode_prefix" not in kinds(having.missing).get("identifier", [])
    assert having.unaided > without.unaided


def test_a_reference_does_not_reach_behind_what_one_answer_reads_back():
    far = "x \n" * READABLE + "far_away_name"
    items = [
        item("m1", "assistant", call("c1", "Read", file_path="/home/user/big.log")),
        item("m2", "user", result("c1", f"near_by_name {far}")),
    ]
    missing = kinds(audit_replacement(items, reference("c1")).missing)
    assert missing["identifier"] == ["far_away_name"]


@pytest.mark.parametrize("tokens", [0, 1, 20, 60, 200, 2_000])
def test_the_keep_list_stays_within_its_budget(tokens: int):
    words = [f"Keep rule_number_{n} in module_{n}/part_{n}.py, always." for n in range(300)]
    many = [item(f"u{n}", "user", text) for n, text in enumerate(words)]
    found = audit_replacement([*work(), *many], "", keep_tokens=tokens)
    assert estimate(found.keep) <= tokens
    assert 0 <= found.unaided <= found.fidelity <= 1
    assert found.lost == audit_replacement([*work(), *many], found.keep, keep_tokens=0).missing
    if tokens >= 200:
        assert found.keep


def test_conditions_come_first_and_the_newest_before_the_oldest():
    many = [item(f"u{n}", "user", f"Always keep rule {n:03d}.") for n in range(300)]
    keep = audit_replacement(many, "", keep_tokens=100).keep
    assert "rule 299." in keep
    assert "rule 000." not in keep
    assert keep.count("rule 299.") == 1  # a condition that is a whole message is said once


def test_calls_that_nothing_names_are_listed_by_reference():
    items = work()
    texts = [p.block.text for i in items for p in i.pieces]
    found = audit_replacement(items, texts)
    assert found.missing == ()
    assert all(reference(c) in found.keep for c in ("c1", "c2", "c3"))
    assert "frames.py: " in found.keep


def test_sentences_that_bind():
    text = "It is red. Do not push to main! Use version 2.1 only, e.g. v2.1.4.\n必须用中文回答。"
    assert binding(text) == [
        "Do not push to main!",
        "Use version 2.1 only, e.g.",
        "必须用中文回答。",
    ]
    assert binding("All is well.") == []


def test_attached_text_thinking_and_the_head_are_nobodys_words():
    items = [
        item(HEAD, "user", "Never trust head_context_name."),
        item("a", "user", "Always recall attached_memory_name.", kind="attached"),
        item("r", "user", "<system-reminder>Always mind reminder_name.</system-reminder>"),
        item("t", "assistant", {"type": "thinking", "thinking": "must hidden_thought_name"}),
        item("i", "user", result("c9", INTERRUPTED, is_error=True)),
    ]
    assert audit_replacement(items, "").missing == ()
    assert audit_replacement(items, "").fidelity == 1.0
    assert audit_replacement([], "anything").fidelity == 1.0


def test_a_long_message_must_survive_by_its_beginning():
    text = "Look at this log. " + "noise " * 1_000
    (found,) = [
        h for h in audit_replacement([item("m", "user", text)], "").missing if h.kind == "user"
    ]
    assert text.startswith(found.text)
    assert len(found.text) < len(text)
    assert audit_replacement([item("m", "user", text)], text[:400]).missing == ()


def test_quoting_and_line_ends_do_not_count_as_loss():
    text = "First line of it.\n\nDo not forget   the second."
    quoted = "> First line of it.\n>\n> Do not forget the second."
    assert audit_replacement([item("m", "user", text)], quoted).missing == ()


def test_pictures_alone_leave_nothing_to_lose():
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    assert audit_replacement([item("m", "user", picture)], "").missing == ()


# --- names


def test_names_are_ranked_by_who_used_them_and_when():
    items = [
        item("m0", "user", result("c0", "old_printed_name " * 50)),
        item("m1", "user", "Please look at users_own_name."),
        item("m2", "assistant", call("c1", "Grep", pattern="called_with_name")),
        item("m3", "user", result("c1", "printed_by_tool " * 200)),
    ]
    order = [name.text for name in rank_names(parts(items))]
    assert order == ["called_with_name", "users_own_name", "printed_by_tool", "old_printed_name"]


def test_a_path_keeps_its_root_and_loses_a_listings_line_numbers():
    text = "/home/user/app/main_file.go-65-func ./scripts/run-all.sh pkg.SomeStruct.FieldName "
    text += "conf_file.toml"
    assert names_in(text) == [
        "/home/user/app/main_file.go",
        "scripts/run-all.sh",
        "SomeStruct",
        "FieldName",
        "conf_file.toml",
    ]


STUB = """\
<persisted-output>
This result has 68,103 characters and is stored whole in
/home/user/.reverie/projects/-w/0a1b/tool-results/toolu_01XyZ9.txt
It begins:
____________________ test_frames ____________________
<Frame object at 0x7f3a2c1d0e80>, id 7ffd5c1e2a40b6f0
[…]
</persisted-output>
<system-reminder>toolu_01AbCdEfGhIjKlMnOpQrSt</system-reminder>
call_8sJ2kQ0aZx81LmVb req_011CSomething9
parse_header
"""


def test_our_own_signs_ids_addresses_and_rules_are_no_names():
    found = names_in(STUB)
    assert "parse_header" in found
    assert "test_frames" in found
    junk = ("persisted-output", "system-reminder", "toolu_", "call_8s", "req_0", "0x7f3", "____")
    assert [name for name in found if any(one in name for one in junk)] == []


def test_a_keep_list_has_no_junk():
    gone = [
        item("m1", "user", "Look at the frames."),
        item("m2", "assistant", call("toolu_01XyZ9", "Bash", command="pytest")),
        item("m3", "user", result("toolu_01XyZ9", STUB)),
        item(
            "m4", "assistant", "The stub is <persisted-output> of toolu_01XyZ9 at 0x7f3a2c1d0e80."
        ),
    ]
    keep = audit_replacement(gone, "nothing of it").keep
    assert "parse_header" in keep
    assert not any(one in keep for one in ("persisted", "toolu_", "0x7f", "____"))


def test_what_only_looks_like_junk_is_a_name():
    names = [
        "call_handler",
        "request_id_of",
        "__init_subclass__",
        "toolu_registry",
        "0xdead_beef_mask",
    ]
    assert names_in(" ".join(names)) == names


def test_a_line_of_trouble():
    assert trouble("a\nE   KeyError: 'x'\nFAIL\n") == "E KeyError: 'x'"
    assert trouble("\n\nnothing telling\n") == "nothing telling"
    assert trouble("") == ""


def test_what_stands_for_older_messages_is_not_the_users_word():
    sections = "## 1. Primary request and intent\nx\n## 3. Files and code\ny\n## 8. Current work\nz"
    assert stands_for_others(f"[This summary stands for it.]\n{sections}")
    assert stands_for_others("> Read a r:abc123\n> Read b r:abc124\n> Read c r:abc125")
    assert not stands_for_others("Current work is fine, see r:abc123")
    assert not stands_for_others(f"Please write a page like this:\n{sections}")
    pasted = item("m", "user", f"Here is my summary.\n{sections}")
    assert [p.who for p in parts([pasted])] == ["user"]  # an item's kind is known
    stood = item("m", "user", "Anything.", kind="replaced")
    assert [p.who for p in parts([stood])] == ["stand"]


# --- tasks


def test_tasks_made_one_by_one_are_followed_by_their_numbers():
    items = [
        item("a", "assistant", call("t1", "TaskCreate", subject="Write the docs", description="d")),
        item("b", "user", result("t1", "Task #1 created")),
        item("c", "assistant", call("t2", "TaskCreate", subject="Ship the build", description="d")),
        item("d", "user", result("t2", "Task #2 created")),
        item("e", "assistant", call("t3", "TaskUpdate", taskId="1", status="completed")),
        item("f", "user", result("t3", "ok")),
    ]
    assert [t.text for t in open_tasks(parts(items))] == ["Ship the build"]


def test_unticked_boxes_count_where_no_tool_keeps_a_list():
    said = item("a", "assistant", "Plan:\n- [x] Read the code\n- [ ] Write the test\n")
    assert [t.text for t in open_tasks(parts([said]))] == ["Write the test"]
    assert "Write the test" not in {t.text for t in open_tasks(parts([*work(), said]))}


@pytest.mark.parametrize("odd", [None, 7, "x", [1], [{"status": 3}], [{"status": "pending"}], {}])
def test_odd_lists_are_no_tasks(odd: Any):
    made = call("t", "TodoWrite", todos=odd)
    assert (
        open_tasks(parts([item("a", "assistant", made), item("b", "user", result("t", "#1"))]))
        == []
    )


# --- any conversation


@given(histories, st.text(max_size=200), st.integers(0, 300))
def test_an_audit_is_total_and_the_same_each_time(taken: Any, context: str, tokens: int):
    items = list(build(taken).view.items)
    one = audit_replacement(items, context, keep_tokens=tokens)
    assert one == audit_replacement(items, context, keep_tokens=tokens)
    assert 0 <= one.unaided <= one.fidelity <= 1
    assert estimate(one.keep) <= tokens
    assert all(isinstance(h, MustSurvive) and h.text for h in one.missing)


def test_a_text_of_one_huge_line_is_read_in_bounded_steps():
    huge = "a" * 1_000_000 + " ." * 200_000 + "_b" * 200_000
    items = [item("m", "user", huge), item("n", "user", result("c", huge, is_error=True))]
    assert audit_replacement(items, "").fidelity <= 1
