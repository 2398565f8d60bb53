"""Rules on parsed calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reverie.errors import InvalidInput
from reverie.rules import (
    CallContext,
    CompiledRule,
    RuleHead,
    RuleSet,
    breaks,
    index_of,
    parse,
    read,
    rules_for_call,
    says,
)
from reverie.store import RuleStore
from reverie.text import MAX_CHOICES, choices, fits
from reverie.topics import Origin, Trust, parse_frontmatter
from tests.rules.stage import USER, memories_in, project_of

ROOT = "/home/user/project"


def head(text: str) -> RuleHead:
    return read(parse_frontmatter(f"---\n{text}\n---\n".encode()))


def held(text: str, tool: str, given: dict[str, Any]) -> bool:
    rule = head(text).rule
    call = parse(tool, given, CallContext(ROOT, ROOT, "/home/user"))
    found = rules_for_call(call, index_of([rule]), lambda _: rule)
    assert bool(found) == breaks(rule, call)  # the index loses none
    return bool(found)


def runs(text: str, line: str) -> bool:
    return held(text, "Bash", {"command": line})


FORCE = "applies_to:\n  command: git push\n  has: --force|-f"


@pytest.mark.spec("B20.applies-to")
@pytest.mark.parametrize(
    "text",
    [
        FORCE,
        "applies_to: {command: git push, has: --force|-f}",
        "applies_to:\n  command:\n    program: git\n    subcommand: push\n    has: ['--force|-f']",
        "applies_to:\n  command:\n  - git push\n  has:\n  - --force|-f",
    ],
)
def test_every_form_of_a_head_says_the_same(text: str) -> None:
    assert head(text).rule == {
        "commands": [["git", "push"]],
        "has": [[["--force"], ["-f"]]],
    }


@pytest.mark.spec("B20.applies-to")
@pytest.mark.parametrize(
    "text",
    [
        "applies_to:\n  paths: *.py, **/*.pyi, !tests/",
        "applies_to:\n  paths: [*.py, **/*.pyi, !tests/]",
        "applies_to:\n  paths:\n    - *.py\n    - **/*.pyi\n    - !tests/",
        "applies_to: {paths: [*.py, **/*.pyi, !tests/]}",
        "description: *.py files are left alone\napplies_to:\n  paths: *.py, **/*.pyi, !tests/",
    ],
)
def test_a_path_without_quotes_is_no_alias(text: str) -> None:
    assert head(text).rule == {"paths": ["*.py", "**/*.pyi"], "spared": ["tests/"]}


@pytest.mark.parametrize("value", ["*x", "[*x]", "&x y", "!!python/object x", "!<tag> x"])
def test_an_alias_or_a_tag_is_refused_below_applies_to_too(value: str) -> None:
    assert parse_frontmatter(f"---\napplies_to:\n  paths: {value}\n---\n".encode()).fault


@pytest.mark.spec("B20.match")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("git push -f", True),
        ("git push -uf origin x", True),
        ("cd api && git -C sub push origin x --force", True),
        ("git push --force-with-lease", False),
        ("git push", False),
        ("git commit -m 'push --force'", False),
        ("git branch -f x", False),
        ("grep -- --force push", False),
    ],
)
def test_a_command_with_its_options(line: str, found: bool) -> None:
    assert runs(FORCE, line) is found


@pytest.mark.spec("B20.match")
def test_a_command_that_lacks_an_option() -> None:
    rule = "applies_to: {command: kubectl, lacks: --context dev}"
    assert runs(rule, "kubectl get pods")
    assert runs(rule, "kubectl --context prod get pods")
    assert not runs(rule, "kubectl --context dev get pods")
    assert not runs(rule, "kubectl get pods --context=dev")


@pytest.mark.spec("B20.match")
def test_paths_after_resolving() -> None:
    rule = "applies_to: {tool: write, paths: staging/}"
    for path in ("staging/a", f"{ROOT}/staging/a", "src/../staging/a", "./staging/b/c"):
        assert held(rule, "Write", {"file_path": path, "content": ""}), path
    assert not held(rule, "Write", {"file_path": "src/staging.py", "content": ""})
    assert not held(rule, "Read", {"file_path": "staging/a"})
    assert runs(rule, "rm -r staging/x")
    assert runs(rule, "echo > staging/x")
    assert runs(rule, "cd staging && touch x")
    assert not runs(rule, "cat staging/x")
    assert not runs(rule, "git checkout staging")


@pytest.mark.spec("B20.match")
def test_a_link_is_the_file_it_leads_to() -> None:
    place = CallContext(ROOT, ROOT, resolve=lambda path: path.replace("/alias/", "/staging/"))
    rule = head("applies_to: {tool: write, paths: staging/}").rule
    assert breaks(rule, parse("Write", {"file_path": "alias/x"}, place))


@pytest.mark.spec("B20.match")
def test_words_count_where_they_are_new() -> None:
    rule = "applies_to:\n  tool: write\n  words: [console.log, TODO]\n  file_type: ts"

    def edited(path: str, old: str, new: str) -> bool:
        return held(rule, "Edit", {"file_path": path, "old_string": old, "new_string": new})

    assert edited("a.ts", "x", "console.log(x)")
    assert not edited("a.ts", "console.log(x)", "console.log(y)")
    assert not edited("a.ts", "console.log(x)", "x")
    assert not edited("a.md", "x", "console.log(x)")
    assert not edited("a.ts", "x", "todo()")
    patch = "*** Begin Patch\n*** Update File: a.ts\n+// TODO\n*** End Patch"
    assert held(rule, "apply_patch", {"input": patch})


@pytest.mark.spec("B20.match")
def test_tools_by_name_and_by_kind() -> None:
    assert held("applies_to: {tool: Edit, paths: a.py}", "Edit", {"file_path": "a.py"})
    assert not held("applies_to: {tool: Edit, paths: a.py}", "Write", {"file_path": "a.py"})
    assert held("applies_to: {tool: Write, paths: a.py}", "write_file", {"path": "a.py"})
    assert held("applies_to: {tool: 'mcp__slack__*'}", "mcp__slack__post", {"text": "x"})
    assert held(
        "applies_to: {command: git push}", "shell", {"command": ["bash", "-lc", "git push"]}
    )


@pytest.mark.spec("B20.applies-to")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("applies_to: {tool: Bash}", "every call"),
        ("applies_to: {tool: any}", "every call"),
        ("applies_to: {paths: '**'}", "every call"),
        ("applies_to: {command: git push, has: -f, lacks: -f}", "never"),
        ("applies_to: {command: git push -f, lacks: -f}", "never"),
        ("applies_to: {tool: Read, command: git push}", "never"),
        ("applies_to:\n  paths:\n  - a/\n  - '!a/'", "never"),
        ("applies_to: {colour: red}", "colour"),
        ("applies_to: git push", "needs keys"),
    ],
)
def test_what_can_never_hold_or_always_would_is_told_and_not_used(text: str, why: str) -> None:
    found = head(text)
    assert found.never
    assert why in " ".join(found.faults)


@pytest.mark.spec("B20.bad-input")
def test_a_pattern_that_would_run_away_does_not() -> None:
    pattern = "/".join(["**", "*a*a*a*a*a*"] * 40)
    assert not fits(pattern, "/p/" + "a" * 5_000 + "/b", "/p", "")
    assert len(choices("{a,b}" * 40)) <= MAX_CHOICES
    assert not says("aaaa" * 50_000, "aab")


@pytest.mark.spec("B20.flat")
def test_a_look_costs_the_same_at_ten_thousand_rules() -> None:
    def looked_at(count: int) -> int:
        rules: list[CompiledRule] = []
        for n in range(count // 4):
            rules.append({"commands": [["git", f"sub{n}"]]})
            rules.append({"tools": ["write"], "paths": [f"folder{n}/**"]})
            rules.append({"tools": ["write"], "words": [f"word{n}"], "types": ["py"]})
            rules.append({"commands": [[f"program{n}"]], "lacks": [[["-x"]]]})
        index, seen = index_of(rules), list[int]()

        def rule_at(number: int) -> CompiledRule:
            seen.append(number)
            return rules[number]

        for tool, given in (
            ("Bash", {"command": "git sub7 && program7 a"}),
            ("Write", {"file_path": f"{ROOT}/folder7/a.py", "content": "word7 and more"}),
        ):
            call = parse(tool, given, CallContext(ROOT, ROOT))
            assert rules_for_call(call, index, rule_at)
        return len(seen)

    assert looked_at(10_000) == looked_at(100) == 4


@pytest.mark.spec("B20.match")
def test_nothing_that_a_call_can_hold_raises() -> None:
    book = RuleSet([head(FORCE).rule])
    for given in (None, 7, "x", [], {"command": None}, {"command": ["git", 7]}, {"edits": [1, {}]}):
        assert book.look("Bash", given, cwd=ROOT) == []


@pytest.mark.spec("B20.match")
@pytest.mark.parametrize(
    ("rule", "line", "same"),
    [
        ("npm install", "npm i left-pad", True),
        ("npm install", "npm -g add left-pad", True),
        ("npm install", "npm --prefix web i", True),
        ("npm i", "npm install left-pad", True),
        ("npm i", "cd web && sudo npm add left-pad", True),
        ("npm run deploy", "npm run-script deploy", True),
        ("pnpm install", "pnpm i --offline", True),
        ("pnpm remove", "pnpm un left-pad", True),
        ("bun add", "bun a left-pad", True),
        ("cargo build", "cargo b --release", True),
        ("npm install", "npm ci", False),
        ("npm install", "npm run i", False),
        ("npm install", "npm run add", False),
        ("pnpm install", "pnpm add left-pad", False),
        ("yarn install", "yarn add left-pad", False),
        ("bun install", "bun add left-pad", False),
        ("git commit", "git c", False),
    ],
)
def test_a_short_form_is_the_same_command_and_what_no_help_calls_an_alias_another(
    rule: str, line: str, same: bool
) -> None:
    assert runs(f"applies_to:\n  command: {rule}", line) is same


# --- choices, and what is refused when it is saved


@pytest.mark.spec("B20.applies-to")
@pytest.mark.parametrize(
    ("text", "tool", "given"),
    [
        ("words: Mock|mock", "Write", {"file_path": "a.py", "content": "x = mock(1)"}),
        ("words: Mock|mock", "Write", {"file_path": "a.py", "content": "x = Mock(1)"}),
        ("paths: a/**|b/**", "Write", {"file_path": "b/x.py", "content": ""}),
        ("paths: [a/**, b/**]", "Write", {"file_path": "b/x.py", "content": ""}),
        ("tool: Edit|Write\n  paths: a/", "Write", {"file_path": "a/x", "content": ""}),
        ("command: git push|git commit", "Bash", {"command": "git commit -m x"}),
        ("command:\n    program: npm|yarn\n    subcommand: add", "Bash", {"command": "yarn add x"}),
        ("file_type: py|ts\n  words: TODO", "Write", {"file_path": "a.ts", "content": "TODO"}),
        ("command: git push\n  has: [--force, -f]", "Bash", {"command": "git push -f"}),
        ("command: pytest\n  unless: uv run|poetry run", "Bash", {"command": "pytest -q"}),
        (r"words: a \| b", "Write", {"file_path": "a.sh", "content": "a | b"}),
        ("words: a || b", "Write", {"file_path": "a.sh", "content": "a || b"}),
    ],
)  # fmt: skip
def test_a_bar_or_a_list_means_either_in_every_key(
    text: str, tool: str, given: dict[str, Any]
) -> None:
    assert held(f"applies_to:\n  {text}", tool, given)


@pytest.mark.spec("B20.applies-to")
def test_choices_are_spared_together_and_two_options_are_both_wanted() -> None:
    assert head("applies_to: {tool: write, paths: '!a/**|b/**'}").rule.get("spared") == [
        "a/**",
        "b/**",
    ]
    for paths in ("['*.py', '*.{ts,tsx}']", "legacy", "src/**"):
        assert not head(f"applies_to: {{paths: {paths}, file_type: ts}}").faults
    both = "applies_to: {command: rm, has: [-r, -f]}"
    assert runs(both, "rm -rf a")
    assert not runs(both, "rm -r a")


@pytest.mark.spec("B20.match")
def test_a_command_run_by_another_is_spared_where_the_rule_says_so() -> None:
    rule = "applies_to: {command: pytest, unless: uv run|poetry run}"
    assert not runs(rule, "uv run pytest -q")
    assert not runs(rule, "poetry run pytest")
    assert runs(rule, "python -m pytest")


@pytest.mark.spec("B20.match")
@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("{command: pytest}", "pytest --version"),
        ("{command: npm}", "npm --help"),
        ("{has: --no-verify}", "grep -rn -e --no-verify docs"),
        ("{words: NODE_ENV=production}", "grep NODE_ENV=production .env"),
        ("{tool: shell, words: TODO}", "rg TODO src"),
    ],
)
def test_a_call_that_only_asks_or_searches_breaks_nothing(rule: str, line: str) -> None:
    assert not runs(f"applies_to: {rule}", line)


@pytest.mark.spec("B20.match")
def test_what_a_call_does_in_another_project_breaks_no_rule_of_this_one() -> None:
    def project_of(path: str) -> str:
        return "/home/user/other" if path.startswith("/home/user/other") else ""

    def breaks_it(text: str, line: str) -> bool:
        place = CallContext(ROOT, ROOT, "/home/user", None, project_of)
        return breaks(head(text).rule, parse("Bash", {"command": line}, place))

    npm, env = "applies_to: {command: npm}", "applies_to: {paths: .env}"
    assert breaks_it(npm, "cd web && npm ci")
    assert breaks_it(npm, "cd /tmp && npm ci")
    assert not breaks_it(npm, "cd ../other/web && npm ci")
    assert not breaks_it(npm, "npm --prefix /home/user/other ci")
    assert breaks_it(env, "cat .env")
    assert not breaks_it(env, "cat ../other/.env")
    assert breaks_it("applies_to: {paths: ~/other/.env}", "cat ../other/.env")
    assert runs("applies_to: {command: chmod, has: +x}", "chmod +x a.sh")


@pytest.mark.spec("B20.applies-to")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{paths: 'a||b'}", "a||b"),
        ("{command: git push, has: -f, lacks: -f}", "-f"),
        ("{paths: '*.py', file_type: ts}", "file types"),
        ("{colour: red}", "colour"),
        ("{tool: Bash}", "every call"),
    ],
)
def test_what_cannot_match_is_refused_when_saved(tmp_path: Path, text: str, value: str) -> None:
    data = f"---\nname: x\ntype: feedback\napplies_to: {text}\n---\n\nA rule.\n".encode()
    with memories_in(tmp_path) as memories:
        with pytest.raises(InvalidInput) as refused:
            memories.save("x.md", data, USER)
        assert value in refused.value.what
        assert refused.value.where == "x.md"
        assert "applies_to" in refused.value.do
        assert not memories.folder.exists("x.md")
        memories.save("y.md", data, Origin("import", Trust.USER))  # nothing is lost on the way in
        assert RuleStore(memories, project_of(tmp_path)).book().rules == ()
        (memories.root / "x.md").write_bytes(data)  # as an older version saved it
        memories.save("x.md", data.replace(b"A rule.", b"Our rule."), USER)
        assert b"Our rule." in memories.folder.bytes_of("x.md")
