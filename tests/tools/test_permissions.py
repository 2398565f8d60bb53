"""Who may do what: rules, questions, what is remembered and what is never allowed."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from reverie.errors import PathRefused, StoreError
from reverie.store import Project, decide
from reverie.text import plain_commands, plain_words
from reverie.toolbox import (
    MAX_WORDS,
    PermissionAnswer,
    PermissionPolicy,
    PermissionRule,
    ProposedEdit,
    Question,
    Verdict,
    keep,
    load_rules,
    parse_rule,
    standard,
    with_rule,
)
from tests.tools.kit import Place, call, snapshot, use

pytestmark = pytest.mark.spec("13")


def project_of(place: Place) -> Project:
    return Project.at(place.root, home=place.home, environ={})


class Person:
    """Answers with what it was given, and keeps the questions."""

    def __init__(self, *answers: PermissionAnswer) -> None:
        self.answers = list(answers)
        self.questions: list[Question] = []

    async def __call__(self, question: Question) -> PermissionAnswer:
        await anyio.lowlevel.checkpoint()
        self.questions.append(question)
        return self.answers.pop(0)


YES, NO = PermissionAnswer(True), PermissionAnswer(False)


def judged(
    place: Place,
    tool: str,
    rules: tuple[PermissionRule, ...] = (),
    mode: Verdict = "ask",
    /,
    **value: object,
) -> Verdict:
    policy = place.policy(mode, rules)
    found = standard().get(tool)
    assert found is not None
    return policy.judge(found, value, place.context().files).verdict


def path_of(place: Place, text: str) -> str:
    for name in ("root", "outside", "user", "home", "memory", "project"):
        text = text.replace(f"<{name}>", str(getattr(place, name)))
    return text


@pytest.mark.parametrize(
    ("tool", "path", "verdict"),
    [
        ("Read", "a.py", "allow"),
        ("Read", "<root>/a.py", "allow"),
        ("Read", "<outside>/a", "ask"),
        ("Read", "../outside/a", "ask"),
        ("Read", "link/a", "ask"),
        ("Read", "<project>/x/tool-results/t.txt", "allow"),
        ("Read", "<memory>/m.md", "allow"),
        ("Read", "<home>/settings.json", "ask"),
        ("Read", "<home>/projects/-other/s.jsonl", "ask"),
        ("Read", "~/.ssh/id_rsa", "ask"),
        ("Read", ".git/config", "ask"),
        ("List", ".", "allow"),
        ("Write", "a.py", "ask"),
        ("Write", "<memory>/m.md", "allow"),
        ("Write", "<memory>/../x.md", "ask"),
        ("Edit", ".git/hooks/pre-commit", "ask"),
        ("Edit", "<outside>/a", "ask"),
    ],
)
def test_defaults(place: Place, tool: str, path: str, verdict: str) -> None:
    (place.root / "link").symlink_to(place.outside)
    key = "path" if tool == "List" else "file_path"
    assert judged(place, tool, **{key: path_of(place, path)}) == verdict


def test_commands_ask_and_others_go(place: Place) -> None:
    assert judged(place, "Bash", command="ls") == "ask"
    assert judged(place, "ReadBack", reference="x") == "allow"
    assert judged(place, "BashOutput", id="x") == "allow"


PROTECTED = [
    ("Write", ".git/config"),
    ("Write", ".GIT/hooks/x"),
    ("Write", "sub/.git/HEAD"),
    ("Write", "link/config"),
    ("Write", ".reverie/settings.json"),
    ("Write", ".reverie/settings.local.json"),
    ("Write", ".claude/settings.json"),
    ("Write", "<home>/settings.json"),
    ("Write", "<project>/s.jsonl"),
    ("Write", "~/.ssh/authorized_keys"),
    ("Read", "~/.ssh/id_rsa"),
    ("Read", "~/.aws/credentials"),
    ("Read", "~/.netrc"),
    ("Read", "<home>/projects/-other/x.jsonl"),
]


@pytest.mark.parametrize(("tool", "path"), PROTECTED)
def test_protected_files_ask_whatever_the_rules_say(place: Place, tool: str, path: str) -> None:
    (place.root / ".git").mkdir()
    (place.root / "link").symlink_to(".git")
    value = {"file_path": path_of(place, path)}
    rules = (
        PermissionRule("*"),
        PermissionRule(tool),
        PermissionRule(tool, "/**"),
        PermissionRule(tool, "**"),
    )
    assert judged(place, tool, rules, "allow", **value) == "ask"
    assert judged(place, tool, rules, "deny", **value) == "deny"


@pytest.mark.parametrize(
    ("rule", "command", "covered"),
    [
        ("npm test", "npm test", True),
        ("npm test", "  npm   test ", True),
        ("npm test", "npm test --watch", False),
        ("npm test *", "npm test --watch", True),
        ("npm test *", "npm test", True),
        ("npm test *", "npm tested", False),
        ("npm test *", "npm 'test' x", True),
        ("npm test:*", "npm test x", True),
        ("", "anything; at all", True),
        ("npm test *", "npm test; rm -rf x", False),
        ("npm test *", "npm test && rm x", False),
        ("npm test *", "npm test | sh", False),
        ("npm test *", "npm test > x", False),
        ("npm test *", "npm test $(rm x)", False),
        ("npm test *", "npm test `rm x`", False),
        ("npm test *", "npm test\nrm x", False),
        ("npm test *", "npm test & rm x", False),
        ("npm test *", "npm test # x", False),
        ("npm test *", "npm test \\\nrm", False),
        ("npm test *", 'npm test "$(rm x)"', False),
        ("npm test *", "npm test {a,b}", False),
        ("npm test *", "npm test <(rm x)", False),
        ("npm test *", "X=1 npm test", False),
        ("npm test *", "npm test ~", False),
        ("npm test *", "npm test 'unclosed", False),
        ("npm test *", "npm test $HOME", False),
        ("npm test *", "(npm test)", False),
        ("npm test *", "npm test *", False),
    ],
)
def test_an_allowing_rule_covers_one_plain_command(
    place: Place, rule: str, command: str, covered: bool
) -> None:
    verdict = judged(place, "Bash", (PermissionRule("Bash", rule),), command=command)
    assert verdict == ("allow" if covered else "ask")


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("src/**", "src/a/b.py", True),
        ("src", "src/a/b.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src", "src-evil/a.py", False),
        ("src/**", "src/../b.py", False),
        ("src/**", "link/b.py", False),
        ("/**", "<outside>/x", True),
        ("~/notes", "<user>/notes/a", True),
        ("{a,b}.py", "b.py", True),
        ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "aaaaaaa", False),
    ],
)
def test_path_rules(place: Place, pattern: str, path: str, covered: bool) -> None:
    (place.root / "link").symlink_to(place.outside)
    value = {"file_path": path_of(place, path)}
    verdict = judged(place, "Write", (PermissionRule("Write", pattern),), **value)
    assert verdict == ("allow" if covered else "ask")


def test_deny_is_stronger_than_ask_and_ask_than_allow(place: Place) -> None:
    rules = (
        PermissionRule("Read", "", "allow"),
        PermissionRule("Read", "*.env", "deny"),
        PermissionRule("Read", "x", "ask"),
    )
    assert judged(place, "Read", rules, file_path="a.env") == "deny"
    assert judged(place, "Read", rules, file_path="x") == "ask"
    assert judged(
        place,
        "Read",
        (PermissionRule("mcp__*", "", "deny"), PermissionRule("R*", "", "deny")),
        file_path="x",
    )
    assert judged(place, "Read", (PermissionRule("R*", "", "deny"),), file_path="x") == "deny"
    rules = (PermissionRule("Bash", "rm -rf *", "deny"), PermissionRule("Bash"))
    assert judged(place, "Bash", rules, "allow", command="ls && rm -rf x") == "deny"


# --- asking


async def test_yes_no_and_nobody_there(place: Place) -> None:
    person = Person(YES, PermissionAnswer(False, words="use the other file"))
    box = place.box(place.policy("ask", asker=person))
    assert not (await use(box, "Write", file_path="a", content="1")).is_error
    refused = await use(box, "Write", file_path="b", content="1")
    assert "the user said no, in the words below" in refused.text
    assert not (place.root / "b").exists()
    assert [q.subject for q in person.questions] == [str(place.root / n) for n in "ab"]
    alone = await use(place.box(place.policy("ask")), "Bash", command="touch c")
    assert "nobody can be asked" in alone.text
    quiet = await use(place.box(place.policy("deny", asker=person)), "Bash", command="touch c")
    assert "nobody is asked" in quiet.text
    assert not (place.root / "c").exists()


@pytest.mark.spec("13.words")
@pytest.mark.parametrize("allow", [True, False])
async def test_what_a_person_says_when_asked_is_no_part_of_the_result(
    place: Place, allow: bool
) -> None:
    words = "不要模拟数据库 — \x1b[31mnever\x1b[0m mock it\x07, \x1b]0;title\x07because it lied."
    box = place.box(place.policy("ask", asker=Person(PermissionAnswer(allow, words=words))))
    message = await box.run(call("Write", file_path="b", content="1"))
    first, second = message.blocks
    assert first.type == "tool_result"
    assert "mock" not in first.raw
    assert second.text == "不要模拟数据库 — never mock it, because it lied."


@pytest.mark.spec("13.words")
async def test_words_without_end_are_cut_and_that_is_told(place: Place) -> None:
    person = Person(PermissionAnswer(False, words="word " * 10_000))
    box = place.box(place.policy("ask", asker=person))
    said = (await box.run(call("Write", file_path="b", content="1"))).blocks[1].text
    assert len(said) < MAX_WORDS + 200
    assert said.endswith("[the user said more: 49,999 characters, of which these are the first]")


@pytest.mark.spec("18.permission")
async def test_nobody_is_asked_for_an_edit_that_cannot_succeed(place: Place) -> None:
    person = Person()
    box = place.box(place.policy("ask", asker=person))
    (place.root / "a.py").write_text("one\ntwo\ntwo\n")
    edit = {"file_path": "a.py", "new_string": "x"}
    unread = await use(box, "Edit", **edit, old_string="one")
    assert "was not read yet" in unread.text
    assert "was not read yet" in (await use(box, "Write", file_path="a.py", content="x")).text
    await use(box, "Read", file_path="a.py")
    missing = await use(box, "Edit", **edit, old_string="three")
    assert "Edit failed: old_string is not in the file" in missing.text
    assert "2 times" in (await use(box, "Edit", **edit, old_string="two")).text
    (place.root / "a.py").write_text("changed\n")
    assert "changed since it was read" in (await use(box, "Edit", **edit, old_string="one")).text
    assert person.questions == []


@pytest.mark.spec("18.permission")
async def test_a_question_carries_what_would_become_of_the_file(place: Place) -> None:
    person = Person(YES, YES, YES)
    box = place.box(place.policy("ask", asker=person))
    await use(box, "Write", file_path="a.py", content="one\n")
    await use(box, "Edit", file_path="a.py", old_string="one", new_string="two")
    await use(box, "Bash", command="true")
    changes = [question.change for question in person.questions]
    assert changes == [ProposedEdit(None, b"one\n"), ProposedEdit(b"one\n", b"two\n"), None]
    assert [question.runs for question in person.questions] == [False, False, True]


@pytest.mark.spec("18.permission")
async def test_what_may_not_be_read_unasked_is_not_looked_at_for_a_question(place: Place) -> None:
    """Nothing is learned about a file by asking to write it."""
    rules = (PermissionRule("Read", "quiet.txt", "deny"),)
    for path in (place.root / ".env", place.outside / "f", place.root / "quiet.txt"):
        path.write_text("secret\n")
        person = Person(PermissionAnswer(False))
        box = place.box(place.policy("ask", rules, asker=person))
        refused = await use(box, "Write", file_path=str(path), content="x")
        assert "the user said no" in refused.text
        assert [question.change for question in person.questions] == [None]


@pytest.mark.spec("18.permission")
async def test_a_rule_of_the_persons_own_is_the_one_that_is_kept(place: Place) -> None:
    wide = PermissionRule("Bash", "true *")
    person = Person(PermissionAnswer(True, "session", rule=wide))
    box = place.box(place.policy("ask", asker=person))
    for end in ("a", "b", "c"):
        await use(box, "Bash", command=f"true {end}")
    assert len(person.questions) == 1
    assert wide in box.policy.rules


async def test_an_answer_for_the_session_saves_the_next_question(place: Place) -> None:
    person = Person(PermissionAnswer(True, "session"), YES)
    box = place.box(place.policy("ask", asker=person))
    for _ in range(3):
        await use(box, "Bash", command="true")
    assert len(person.questions) == 1
    assert person.questions[0].rule == PermissionRule("Bash", "true")
    await use(box, "Bash", command="true && true")
    assert person.questions[1].rule is None  # not plain: nothing to remember


async def test_one_question_at_a_time(place: Place) -> None:
    """Two calls that wait for the same answer ask once."""
    person = Person(PermissionAnswer(True, "session"))
    box = place.box(place.policy("ask", asker=person))
    (place.outside / "f").write_text("x")
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(lambda: use(box, "Read", file_path=str(place.outside / "f")))
    assert len(person.questions) == 1


async def test_being_asked_takes_none_of_the_time(place: Place) -> None:
    async def slow(question: Question) -> PermissionAnswer:
        for _ in range(20):
            await anyio.sleep(0.01)
        return YES

    place.settings = replace(place.settings, tool_seconds=0.1)
    box = place.box(place.policy("ask", asker=slow))
    assert not (await use(box, "Write", file_path="a", content="1")).is_error


async def test_an_answer_for_the_project_is_kept_in_the_local_settings(place: Place) -> None:
    person = Person(PermissionAnswer(True, "project"))

    async def kept(rule: PermissionRule) -> None:
        await keep(project_of(place), rule)

    policy = PermissionPolicy(place.ground(), asker=person, keep=kept)
    await use(place.box(policy), "Bash", command="true")
    local = place.root / ".reverie" / "settings.local.json"
    assert json.loads(local.read_text()) == {"permissions": {"allow": ["Bash(true)"]}}
    rules, problems = load_rules(project_of(place))
    assert rules == [PermissionRule("Bash", "true")]
    assert not problems


async def test_protected_files_are_never_remembered(place: Place) -> None:
    person = Person(PermissionAnswer(True, "project"), NO)
    box = place.box(place.policy("ask", asker=person))
    target = str(place.user / ".ssh" / "config")
    await use(box, "Write", file_path=target, content="1")
    found = await use(box, "Read", file_path=target)
    assert found.is_error
    assert [q.rule for q in person.questions] == [None, None]
    assert not (place.root / ".reverie").exists()


async def test_what_was_permitted_is_what_is_touched(place: Place) -> None:
    """The person sees a path; another file stands behind it when the tool runs."""
    (place.outside / "real").mkdir()
    (place.root / "d").mkdir()

    async def swaps(question: Question) -> PermissionAnswer:
        assert question.subject == str(place.root / "d" / "f")
        (place.root / "d").rmdir()
        (place.root / "d").symlink_to(place.outside / "real")
        return YES

    before = snapshot(place.outside)
    found = await use(
        place.box(place.policy("ask", asker=swaps)), "Write", file_path="d/f", content="x"
    )
    assert found.is_error
    assert snapshot(place.outside) == before


# --- settings


def test_a_rule_is_added_and_the_rest_stays() -> None:
    text = '{"flags": {"dream": false}, "permissions": {"deny": ["Read(.env)"]}, "é": 1}'
    once = with_rule(text, PermissionRule("Bash", "npm test"))
    assert json.loads(once) == {
        "flags": {"dream": False},
        "permissions": {"deny": ["Read(.env)"], "allow": ["Bash(npm test)"]},
        "é": 1,
    }
    assert with_rule(once, PermissionRule("Bash", "npm test")) == once
    assert parse_rule("Bash(npm test)", "allow") == PermissionRule("Bash", "npm test")
    assert parse_rule("Read", "deny") == PermissionRule("Read", "", "deny")
    assert parse_rule("Read(", "deny") is None
    assert parse_rule("", "deny") is None


@pytest.mark.parametrize("text", ["{", "[]", '{"a":1,"a":2}', "nonsense"])
async def test_settings_that_cannot_be_read_are_not_written_over(place: Place, text: str) -> None:
    local = place.root / ".reverie" / "settings.local.json"
    local.parent.mkdir()
    local.write_text(text)
    with pytest.raises(StoreError):
        await keep(project_of(place), PermissionRule("Bash", "x"))
    assert local.read_text() == text


async def test_a_linked_settings_folder_is_not_written_through(place: Place) -> None:
    (place.root / ".reverie").symlink_to(place.outside)
    before = snapshot(place.outside)
    with pytest.raises(PathRefused):
        await keep(project_of(place), PermissionRule("Bash", "x"))
    assert snapshot(place.outside) == before


def test_a_repository_may_only_deny(place: Place) -> None:
    folder = place.root / ".reverie"
    folder.mkdir()
    both = {"permissions": {"allow": ["Bash"], "ask": ["Read"], "deny": ["Read(.env)", 7, "(("]}}
    (folder / "settings.json").write_text(json.dumps(both))
    rules, problems = load_rules(project_of(place))
    assert rules == [PermissionRule("Read", ".env", "deny")]
    assert sum("may only deny" in p for p in problems) == 2
    assert sum("cannot be read" in p for p in problems) == 2
    (place.home / "settings.json").write_text('{"permissions": {"allow": ["Edit(src/**)"]}}')
    assert PermissionRule("Edit", "src/**") in load_rules(project_of(place))[0]


@pytest.mark.spec("15.trust")
async def test_local_settings_that_nobody_approved_may_only_deny(place: Place) -> None:
    """Nor does an answer at the prompt approve what else stands in them."""
    local = place.root / ".reverie" / "settings.local.json"
    local.parent.mkdir()
    local.write_text('{"permissions": {"allow": ["Bash"], "deny": ["Read(.env)"]}}')
    assert load_rules(project_of(place))[0] == [PermissionRule("Read", ".env", "deny")]
    with pytest.raises(StoreError, match="not trusted: nobody has approved it"):
        await keep(project_of(place), PermissionRule("Edit", "a.py"))
    assert "a.py" not in local.read_text()
    decide(place.home, local, local.read_bytes(), trusted=True)
    await keep(project_of(place), PermissionRule("Edit", "a.py"))
    rules, problems = load_rules(project_of(place))
    assert {PermissionRule("Bash"), PermissionRule("Edit", "a.py")} <= set(rules)
    assert not problems


@pytest.mark.parametrize("given", ['{"permissions": []}', '{"permissions": {"allow": "Bash"}}'])
def test_odd_permissions_are_said(place: Place, given: str) -> None:
    (place.home / "settings.json").write_text(given)
    rules, problems = load_rules(project_of(place))
    assert rules == []
    assert len(problems) == 1


# --- command lines


def test_plain_lines_mean_the_same_to_a_shell(tmp_path: Path) -> None:
    """Every line that is understood is written out so that sh reads the same words."""
    lines = [
        "printf %s\\n a 'b c' \"d e\" f\"g\"'h'",
        "printf '%s|' \"it's\" '\"' 'a b'c \"\\d\" ''",
        "printf '%s|' a,b=c:d@e%f+g^h ä '*' '$x' '`x`'",
    ]
    for line in lines[1:]:
        (one,), _ = plain_commands(line)
        words = [w.text for w in one.words[2:]]
        told = subprocess.run(["sh", "-c", str(one)], capture_output=True, check=True, cwd=tmp_path)
        assert told.stdout.decode() == "".join(f"{w}|" for w in words)
    assert plain_commands(lines[0]) == ([], "the command has '\\\\' outside quotes")
    assert plain_words("git log -3") == ("git", "log", "-3")
    found, _ = plain_commands("a | b && c || d; e 2>/dev/null")
    assert [one.then for one in found] == ["|", "&&", "||", ";", ""]
    for bad in ("", "|", "a |", "a ;; b", "a && ", "; a", "2>&1", "a" * 20_000, "a;" * 30):
        found, why = plain_commands(bad)
        assert found == []
        assert why
