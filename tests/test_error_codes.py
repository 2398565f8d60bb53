"""Errors have codes, and no code branches on words that people read."""

from __future__ import annotations

import ast
import copy
import importlib
import pickle
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import reverie
from reverie import Memory, errors

SOURCE = Path(reverie.__file__).parent
WORDS = frozenset({"what", "reason", "message"})
EDGES = frozenset({"startswith", "endswith"})
PATTERNS = frozenset({"match", "search", "fullmatch"})
BETWEEN = frozenset({"lower", "strip", "casefold", "upper", "lstrip", "rstrip"})

ALLOWED = {
    ("apps/cli/team.py", "one.what in ('pull', 'returning')"),  # a code: a key of DIFFERS
    ("apps/web/team.py", "one['what'] in ('pull', 'returning', 'conflict')"),  # the same
    ("store/approvals.py", "reason.startswith('must ')"),  # grammar: the sentence's subject
    ("wire/failures.py", "'model' in words.message.lower()"),  # providers that send no code
}


class _Finder(ast.NodeVisitor):
    """Comparisons of words with a literal, as text."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._caught = {"error", "problem"}
        self._copied: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        before, self._copied = self._copied, set()
        self.generic_visit(node)
        self._copied = before

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        before, self._copied = self._copied, set()
        self.generic_visit(node)
        self._copied = before

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._caught.add(node.name or "")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if self._is_words(node.value):
            self._copied |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = (node.left, *node.comparators)
        within = isinstance(node.ops[0], ast.In | ast.NotIn) and _is_literal(node.left)
        is_words = any(map(self._is_words, sides)) or (within and any(map(_is_reason, sides)))
        if is_words and any(map(_is_literal, sides)):
            self.found.append(ast.unparse(node))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            on, name = node.func.value, node.func.attr
            edge = name in EDGES and (self._is_words(on) or _is_reason(on))
            if edge or (name in PATTERNS and any(map(self._is_words, node.args))):
                self.found.append(ast.unparse(node))
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        if self._is_words(node.subject):
            self.found.append(f"match {ast.unparse(node.subject)}")
        self.generic_visit(node)

    def _is_words(self, node: ast.expr) -> bool:
        match node:
            case ast.Attribute(attr=name):
                return name in WORDS
            case ast.Subscript(slice=ast.Constant(value=str(key))):
                return key in WORDS
            case ast.Name(id=name):
                return name in self._copied
            case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
                return name in self._caught
            case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in BETWEEN:
                return self._is_words(value)
            case ast.JoinedStr(values=[ast.FormattedValue(value=ast.Name(id=name))]):
                return name in self._caught
            case _:
                return False


def _is_reason(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "reason"


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(_is_literal, node.elts))
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != ""


def branches(source: str) -> list[str]:
    """The places in a source that branch on words."""
    finder = _Finder()
    finder.visit(ast.parse(source))
    return finder.found


FOUND = (
    'if "Several" in error.what: pass',
    'raise error if "Several" not in error.what.lower() else missing',
    'x = any(p.reason.startswith("cannot be read") for p in problems)',
    "x = problem.reason.startswith(REFUSED)",
    'x = f"It {reason}" if reason.startswith("must ") else reason',
    'x = error.message.endswith(("gone", "away"))',
    'x = error.what == "There is no such memory"',
    'x = one.reason in ("torn by a crash", "cut off")',
    'x = row["reason"] == "There is none"',
    'x = re.search("no such", error.message)',
    "x = _PATTERN.match(str(error))",
    'try:\n  f()\nexcept OSError as wrong:\n  x = "no such" in str(wrong)',
    'try:\n  f()\nexcept OSError as wrong:\n  x = "no such" in f"{wrong}"',
    'def f(error):\n  words = str(error)\n  return "malformed" in words',
    'match error.what:\n  case "none": pass',
)
NOT_FOUND = (
    'if error.code == "ambiguous": pass',
    "if error.what not in self._said: self._said.add(error.what)",
    "sealed = item.reason == SEALED",
    'x = reply.stop_reason == "end_turn"',
    'x = error.what == ""',
    'x = f"{error.what}. {error.do}"',
    'x = str(path).startswith("/")',
    'x = "content" in message',
    'x = reason == "cache_hit"',
    "names = [problem.reason for problem in problems]",
    'def f(error):\n  words = str(error)\ndef g(words):\n  return "the day" in words',
)


@pytest.mark.parametrize("source", FOUND)
def test_a_branch_on_words_is_found(source: str) -> None:
    assert branches(source)


@pytest.mark.parametrize("source", NOT_FOUND)
def test_what_is_no_branch_on_words_is_left_alone(source: str) -> None:
    assert branches(source) == []


def test_no_code_branches_on_the_words_of_an_error() -> None:
    found = {
        (path.relative_to(SOURCE).as_posix(), one)
        for path in SOURCE.rglob("*.py")
        for one in branches(path.read_text("utf-8"))
    }
    assert found == ALLOWED, "give the value a code, and ask for that"


def _classes(top: type[errors.ReverieError]) -> Iterator[type[errors.ReverieError]]:
    yield top
    for below in top.__subclasses__():
        yield from _classes(below)


def test_every_error_has_a_code_of_its_own() -> None:
    for one in pkgutil.walk_packages([str(SOURCE)], "reverie."):
        room, last = one.name.split(".")[1], one.name.rpartition(".")[2]
        if room not in ("apps", "adapters", "fleet") and last != "__main__":
            importlib.import_module(one.name)
    ours = {c for c in _classes(errors.ReverieError) if c.__module__.startswith("reverie.")}
    codes = sorted(c.code for c in ours)
    assert len(ours) > 40
    assert codes == sorted(set(codes))
    assert [c for c in codes if not (c.isidentifier() and c == c.lower())] == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ReverieError("x"), "error"),
        (errors.NotFound("x", where="y", do="z"), "not_found"),
        (errors.NotFound("x", where="y", do="z", code="ambiguous"), "ambiguous"),
        (errors.PathRefused("x", where="y"), "path_refused"),
        (errors.PromptTooLong("x", needed=2, allowed=1), "prompt_too_long"),
        (type("Own", (errors.NotFound,), {})("x"), "not_found"),
    ],
)
def test_a_copied_error_keeps_its_code(error: errors.ReverieError, code: str) -> None:
    copies = [error, copy.copy(error), copy.deepcopy(error)]
    if type(error).__module__ == errors.__name__:
        copies.append(pickle.loads(pickle.dumps(error)))
    for one in copies:
        assert (one.code, str(one), vars(one)) == (code, str(error), vars(error))


def test_a_name_that_two_memories_have_is_ambiguous(home: Path, tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    for number in (1, 2):
        saved = memory.add(f"The port of server {number} is 808{number}.")
        path = memory.folder / saved.file
        path.write_text(f"---\nname: Port\n---\nPort 808{number}.\n", encoding="utf-8")
    for ask in (memory.get, memory.remove):
        with pytest.raises(errors.NotFound) as none:
            ask("nothing of this name")
        assert none.value.code == "not_found"
        with pytest.raises(errors.NotFound, match="Several") as several:
            ask("Port")
        assert several.value.code == "ambiguous"
