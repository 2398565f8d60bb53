"""The project itself: locks, rules of the house, manifest, mutants, skips, errors."""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from reverie import errors
from scripts import budgets, mutants, prove
from tests.conftest import not_proven
from tests.tools.kit import processes_with

TARGETS = ("install", "run", "chat", "test", "proof", "bench", "check", "lock", "clean")


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


# -- locks ---------------------------------------------------------------------------


def pins(root: Path, tier: str) -> dict[str, str]:
    text = (root / "locks" / f"{tier}.txt").read_text()
    return dict(re.findall(r"^([A-Za-z0-9][\w.-]*)==(\S+)", text, re.MULTILINE))


@pytest.mark.spec("project.locks")
@pytest.mark.parametrize(
    "tier", ["run", "anthropic", "openai", "semantic", "minilm", "all", "dev", "proof"]
)
def test_a_lock_pins_by_hash_and_names_no_address(root: Path, tier: str) -> None:
    text = (root / "locks" / f"{tier}.txt").read_text()
    assert not budgets.ADDRESS.search(text)
    for entry in re.split(r"\n(?=\S)", text.strip()):
        assert re.match(r"[A-Za-z0-9][\w.-]*==\S+( ; [^\n]+?)? \\\n", entry), entry
        assert "--hash=sha256:" in entry, entry


@pytest.mark.spec("project.locks")
def test_each_lock_holds_the_smaller_one(root: Path) -> None:
    run, all_, dev, proof = (pins(root, tier) for tier in ("run", "all", "dev", "proof"))
    assert run.items() <= all_.items() <= dev.items() <= proof.items()
    for extra in ("anthropic", "openai", "semantic"):
        assert run.items() < pins(root, extra).items() < all_.items()


@pytest.mark.spec("project.locks")
def test_the_locks_fit_what_the_project_asks_for(root: Path) -> None:
    raw = tomllib.loads((root / "pyproject.toml").read_text())
    groups = raw["dependency-groups"]
    plain = {name: [one for one in group if isinstance(one, str)] for name, group in groups.items()}
    optional = raw["project"]["optional-dependencies"]
    extras = [one for extra in optional.values() for one in extra]
    asked = {
        "run": raw["project"]["dependencies"] + plain["build"],
        "anthropic": optional["anthropic"],
        "openai": optional["openai"],
        "semantic": optional["semantic"],
        "all": extras,
        "dev": plain["dev"] + extras,
        "proof": plain["proof"],
    }
    for tier, wanted in asked.items():
        pinned = {canonicalize_name(name): version for name, version in pins(root, tier).items()}
        for one in map(Requirement, wanted):
            assert Version(pinned[canonicalize_name(one.name)]) in one.specifier, one


# -- the tree ------------------------------------------------------------------------


@pytest.mark.spec("project.tree")
@pytest.mark.needs("git")
@pytest.mark.parametrize(
    ("name", "line", "what"),
    [
        ("a.md", "see files.python" + "hosted.org", "registry"),
        ("a.toml", "/ho" + "me/jdoe/x", "home"),
        ("a.py", "'/ro" + "ot/.ssh'", "home"),
        ("a.txt", "/wo" + "rk/main/x", "one machine"),
        ("locks/run.txt", "--index" + "-url x", "lock"),
    ],
)
def test_what_must_not_be_in_the_tree_is_found(
    tmp_path: Path, name: str, line: str, what: str
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    write(tmp_path, {name: f"fine\n{line}\n", "b.md": "/home/user/x ~/x ./root/ https://a.b\n"})
    (found,) = budgets.forbidden(tmp_path)
    assert found.startswith(f"{name}:2: ")
    assert what in found


def test_the_makefile_has_its_targets(root: Path) -> None:
    text = (root / "Makefile").read_text()
    for target in TARGETS:
        assert re.search(rf"^{target}:", text, re.MULTILINE), target
        assert re.search(rf"^#   make {target} ", text, re.MULTILINE), target


def test_the_ci_script_runs_both_and_forbids_skips(root: Path) -> None:
    script = root / ".ci" / "run"
    assert os.access(script, os.X_OK)
    text = script.read_text()
    assert "REVERIE_REQUIRE=all" in text
    assert text.index("make check") < text.index("make test")


def test_the_readme_names_seven_layers(root: Path) -> None:
    rows = re.findall(r"^\| (\d) \|", (root / "README.md").read_text(), re.MULTILINE)
    assert rows == list("1234567")


# -- rules of the house --------------------------------------------------------------

# What would let a pure package see the world, though its module may be imported.
PURE = ("errors", "transcript", "consolidation", "recall", "rules", "secrets", "topics")
IMPURE = re.compile(
    r"(?:^|\.)(?:now|utcnow|today|uuid1|uuid4|uuid7|getenv|environ|open|read_text|"
    r"read_bytes|write_text|write_bytes|print|input)$"
)


def sources(root: Path, *names: str) -> Iterator[Path]:
    package = root / "src" / "reverie"
    for name in names:
        if (package / f"{name}.py").is_file():
            yield package / f"{name}.py"
        yield from sorted((package / name).rglob("*.py"))


def impure(source: str) -> set[str]:
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return {name for name in map(ast.unparse, calls) if IMPURE.search(name)}


@pytest.mark.spec("project.pure")
def test_pure_packages_read_no_clock_disk_or_environment(root: Path) -> None:
    found = {
        f"{path.relative_to(root)}: {name}"
        for path in sources(root, *PURE)
        for name in impure(path.read_text())
    }
    assert not found


@pytest.mark.spec("project.pure")
@pytest.mark.parametrize(
    "source", ["datetime.now(UTC)", "uuid.uuid4()", "os.getenv('X')", "open(p)", "p.read_text()"]
)
def test_an_impure_call_is_found(source: str) -> None:
    assert impure(source)
    assert not impure("view.opened(x); prints(x); fold(now)")


def environment_reads(source: str) -> bool:
    names = (ast.unparse(n) for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Attribute))
    return any(re.fullmatch(r"os\.(environ|environb|getenv)", name) for name in names)


@pytest.mark.spec("project.pure")
def test_settings_alone_read_the_environment(root: Path) -> None:
    package = root / "src" / "reverie"
    alone = package / "apps" / "hook"  # programs of their own, which load no engine
    readers = {
        path.relative_to(package).parts[0].removesuffix(".py")
        for path in package.rglob("*.py")
        if environment_reads(path.read_text()) and path.parent != alone
    }
    assert readers <= {"settings"}
    assert environment_reads("home = os.environ.get('X')")


LINT_IMPORTS = "from importlinter.cli import lint_imports_command as command; command()"


@pytest.mark.spec("project.imports")
@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ({}, "0 broken"),
        ({"errors.py": "import reverie.settings\n"}, "errors is not allowed to import reverie.set"),
        ({"errors.py": "import time\n"}, "reverie.errors is not allowed to import time"),
        ({"utils.py": ""}, "reverie.utils"),
        (
            {"layers/one.py": "import reverie.layers.two\n", "layers/two.py": ""},
            "reverie.layers.one is not allowed to import reverie.layers.two",
        ),
        (
            {"apps/one.py": "import reverie.apps.two\n", "apps/two.py": ""},
            "reverie.apps.one is not allowed to import reverie.apps.two",
        ),
    ],
)
def test_imports_go_one_way(root: Path, tmp_path: Path, planted: dict[str, str], said: str) -> None:
    shutil.copytree(root / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", tmp_path)
    write(tmp_path / "src" / "reverie", planted)
    done = subprocess.run(
        [sys.executable, "-c", LINT_IMPORTS, "--no-cache", "--no-logo"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said in done.stdout
    assert done.returncode == bool(planted)


# -- errors --------------------------------------------------------------------------

TREE = [
    one
    for _, one in inspect.getmembers(errors, inspect.isclass)
    if issubclass(one, errors.ReverieError)
]


@pytest.mark.spec("project.errors")
def test_an_error_says_what_where_and_what_to_do() -> None:
    plain = errors.StoreError("The disk is full")
    assert str(plain) == "The disk is full"
    full = errors.StoreError("The disk is full", where="a.jsonl", do="Free some space")
    assert str(full) == "The disk is full (a.jsonl). Free some space"


@pytest.mark.spec("project.errors")
def test_errors_are_one_tree_and_each_explains_itself() -> None:
    classes = [one for _, one in inspect.getmembers(errors, inspect.isclass)]
    raised = [one for one in classes if issubclass(one, BaseException)]
    assert sorted(one.__name__ for one in raised) == sorted(one.__name__ for one in TREE)
    assert all(one.__doc__ and one.exit_code > 0 for one in TREE)
    assert len({one.__doc__ for one in TREE}) == len(TREE)


@pytest.mark.spec("project.errors")
@pytest.mark.parametrize("clone", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize("kind", TREE)
def test_an_error_survives_a_copy(
    kind: type[errors.ReverieError], clone: Callable[[errors.ReverieError], errors.ReverieError]
) -> None:
    again = clone(kind("It broke", where="here", do="Mend it"))
    assert type(again) is kind
    assert str(again) == "It broke (here). Mend it"


# -- manifest ------------------------------------------------------------------------


def planned(*without: str) -> str:
    rows = (f'[[row]]\nid = "{one}"\ntitle = "t"\nstate = "planned"\n' for one in prove.SECTIONS)
    return "\n".join(row for row in rows if not any(f'"{one}"' in row for one in without))


BUILT = """
[[row]]
id = "{id}"
title = "t"
state = "built"
tests = ["{test}"]
"""
SOURCE = "LIMIT = 3\n\n\ndef fits(n: int) -> bool:\n    return n <= LIMIT\n"
TESTS = """import pytest
from reverie.a import fits

@pytest.mark.spec("3")
def test_limit():
    assert fits(3) and not fits(4)
"""
WHOLE = {"id": "3", "test": "tests/test_a.py"}


def threats(*without: int) -> str:
    rows = (n for n in prove.THREATS if n not in without)
    row = '[[threat]]\nid = "T.{}"\ntitle = "t"\noutcome = "o"\nstate = "planned"\n'
    return "".join(row.format(n) for n in rows)


def small(
    folder: Path,
    tests: str = TESTS,
    extra: str = "",
    unlisted: str = "",
    **changed: str,
) -> list[str]:
    row = BUILT.format_map({**WHOLE, **changed})
    without = () if "." in {**WHOLE, **changed}["id"] else ("3",)
    files = {
        "src/a.py": SOURCE,
        "tests/test_a.py": tests,
        prove.MANIFEST: planned(*without) + row + threats(*map(int, unlisted.split())) + extra,
    }
    return prove.problems(write(folder, files))


@pytest.mark.spec("project.manifest")
def test_the_manifest_holds(root: Path) -> None:
    assert prove.problems(root) == []


@pytest.mark.spec("project.manifest")
def test_the_manifest_lists_the_sections_of_the_specification(shared: Path) -> None:
    text = (shared / "SPEC.md").read_text()
    numbered = re.findall(r"^## (\d+) ", text, re.MULTILINE)
    beyond = re.findall(r"^- \*\*(B\d+) ", text, re.MULTILINE)
    assert (*numbered, *beyond, "project") == prove.SECTIONS


@pytest.mark.spec("project.manifest")
def test_a_sound_manifest_is_accepted(tmp_path: Path) -> None:
    assert small(tmp_path) == []
    assert small(tmp_path, id="3.part") == []
    assert small(tmp_path, test="tests/test_a.py::test_limit") == []
    in_class = (
        "import pytest\nclass TestA:\n    @pytest.mark.spec('3')\n    def test_b(self): ...\n"
    )
    assert small(tmp_path, tests=in_class, test="tests/test_a.py::TestA") == []
    by_file = "import pytest\npytestmark = [pytest.mark.spec('3.x')]\nasync def test_b(): ...\n"
    assert small(tmp_path, tests=by_file) == []


@pytest.mark.spec("project.manifest")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"test": "tests/test_a.py::test_gone"}, "row 3: no such test"),
        ({"test": "tests/test_a.py::test_lim"}, "row 3: no such test"),
        ({"tests": TESTS.replace('"3"', '"4"')}, "no row of 4 names it"),
        ({"tests": TESTS.replace('@pytest.mark.spec("3")', "")}, "is not marked"),
        ({"tests": TESTS + "\n@pytest.mark.spec('5')\ndef test_c(): ..."}, "no row of 5 names it"),
        ({"id": "20"}, "section 3: no row"),
        ({"id": "20"}, "there is no section 20"),
        ({"extra": planned(*prove.SECTIONS[1:])}, "row 1: it is there 2 times"),
        ({"extra": '[[row]]\nid = "4.b"\ntitle = "t"\nstate = "built"'}, "row 4.b: no tests"),
        ({"extra": '[[row]]\nid = "4.b"\ntitle = "t"\nstate = "done"'}, "not `done`"),
        (
            {"extra": '[[row]]\nid = "4.b"\ntitle = "t"\nstate = "planned"\ntests = ["x"]'},
            "so its state is `built`",
        ),
    ],
)
def test_a_fault_in_the_manifest_is_named(
    tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    assert any(said in line for line in small(tmp_path, **changed))


ROW_7 = "def test_row_07_x(): ..."
PROVEN = (
    '[[threat]]\nid = "T.7"\ntitle = "t"\noutcome = "o"\nstate = "built"\n'
    'tests = ["tests/test_a.py{}"]\n'
)


@pytest.mark.spec("project.manifest")
@pytest.mark.parametrize(
    ("extra", "tests", "said"),
    [
        ("", TESTS, "threat T.7: it is there 0 times, not once"),
        (PROVEN.format("") * 2, TESTS, "threat T.7: it is there 2 times, not once"),
        (PROVEN.format("::test_gone"), TESTS, "threat T.7: no such test"),
        (PROVEN.format("").replace("T.7", "T.98"), TESTS, "T.98: there is no such number"),
        (PROVEN.format("").replace("built", "planned"), TESTS, "a planned one none"),
        (PROVEN.format("").replace("built", "done"), TESTS, "not `done`"),
        (threats(*(n for n in prove.THREATS if n != 7)), TESTS + ROW_7, "T.7 does not name it"),
    ],
)
def test_a_fault_in_the_threats_is_named(tmp_path: Path, extra: str, tests: str, said: str) -> None:
    one = "tests/test_a.py::test_limit"
    assert small(tmp_path, TESTS + ROW_7, PROVEN.format(""), "7", test=one) == []
    assert any(said in line for line in small(tmp_path, tests, extra, "7", test=one))


@pytest.mark.spec("project.manifest")
def test_the_manifest_knows_as_many_threats_as_there_are(shared: Path) -> None:
    rows = re.findall(r"^\| (\d+) \|", (shared / "THREATS.md").read_text(), re.MULTILINE)
    assert sorted(int(one) for one in rows) == list(prove.THREATS)


@pytest.mark.spec("project.manifest")
@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('id = "3"\ntitle = "t"', "'state' is missing"),
        ('id = "3"\ntitle = "t"\nstate = "planned"\nproof = 1', "unknown keys proof"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, row: str, said: str) -> None:
    write(tmp_path, {prove.MANIFEST: f"[[row]]\n{row}\n"})
    with pytest.raises(prove.Malformed, match=f"row 3: {said}"):
        prove.load(tmp_path)


# -- mutants -------------------------------------------------------------------------


@pytest.fixture
def specimen(tmp_path: Path) -> Path:
    """A project of one module and one test, with the package's name."""
    return write(
        tmp_path / "specimen",
        {
            "src/reverie/__init__.py": "",
            "src/reverie/a.py": SOURCE,
            "tests/test_a.py": TESTS,
            "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["spec(*sections): x"]\n',
        },
    )


def test_what_a_test_leaves_running_is_ended(specimen: Path) -> None:
    mark = str(specimen / "left")
    left = f"""
import subprocess, sys
def test_leaves():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", {mark!r}])
"""
    write(specimen, {"tests/test_a.py": left})
    code, _ = mutants.run_tests(specimen, ["tests/test_a.py"])
    assert code == 0
    for _ in range(200):
        if not processes_with(mark):
            break
        time.sleep(0.05)
    assert not processes_with(mark)


# -- skips ---------------------------------------------------------------------------

SKIPS = """import pytest
def test_runs(): ...
def test_needs_shared(shared): ...
@pytest.mark.needs("no-such-program")
def test_needs_program(): ...
@pytest.mark.xfail(reason="known")
def test_xfail(): assert False
@pytest.mark.proof
def test_large(scale): assert scale.pick(1, 2) == 2
@pytest.mark.integration
def test_foreign(): ...
def test_home(home):
    import os
    assert os.environ["REVERIE_HOME"] == str(home) and not home.exists()
    assert "HIDDEN" not in os.environ.get("REVERIE_SIMPLE", "")
"""


@pytest.fixture
def outcome(root: Path, tmp_path: Path) -> Callable[..., tuple[int, list[str]]]:
    """Runs a few tests below our conftest in a process of their own."""
    write(tmp_path, {"tests/test_skips.py": SKIPS, "tests/test_module.py": ""})
    for name in ("conftest.py", "processes.py", "postgres.py"):
        shutil.copy(root / "tests" / name, tmp_path / "tests")
    shutil.copy(root / "pyproject.toml", tmp_path)

    def run(*options: str, **environment: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "REVERIE_SHARED": str(tmp_path / "none"),
                "REVERIE_SIMPLE": "HIDDEN",
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.splitlines()

    return run


Outcome = Callable[..., tuple[int, list[str]]]


@pytest.mark.spec("project.skips")
def test_the_last_lines_list_the_skips(outcome: Outcome) -> None:
    for options in ((), ("-n", "1"), ("-q",)):
        code, lines = outcome(*options)
        assert code == 0
        assert lines[-4] == "skips: 2"
        assert lines[-3].startswith("  tests/test_skips.py::test_needs_program: needs no-such-pro")
        assert lines[-2].startswith("  tests/test_skips.py::test_needs_shared: needs shared: ")
        assert lines[-1] == (
            "not proven here: 2 tests (1 for want of no-such-program, 1 for want of shared). "
            "To prove them: set REVERIE_SHARED to the recorded sessions"
        )
        assert "2 passed, 2 skipped, 1 xfailed" in re.sub(r", \d+ deselected", "", lines[-5])


@pytest.mark.spec("project.skips")
def test_what_was_not_proven_is_said_with_the_way_to_prove_it() -> None:
    said = not_proven(["needs bwrap: x", "needs rg: x", "needs rg: y", "needs shared: z", "odd"])
    assert said == (
        "not proven here: 5 tests (1 for want of bwrap, 2 for want of rg, 1 for want of shared, "
        "1 for want of something else). To prove them: apt-get install bubblewrap ripgrep; "
        "set REVERIE_SHARED to the recorded sessions"
    )


@pytest.mark.spec("project.skips")
@pytest.mark.parametrize(
    ("required", "counts"),
    [
        ("all", "2 passed, 1 xfailed, 2 errors"),
        ("shared,rg", "2 passed, 1 skipped, 1 xfailed, 1 error"),
    ],
)
def test_a_required_skip_is_a_failure(outcome: Outcome, required: str, counts: str) -> None:
    code, lines = outcome("-n", "1", REVERIE_REQUIRE=required)
    assert code == 1
    assert any(counts in line.replace(", 2 deselected", "") for line in lines)
    assert any("REVERIE_REQUIRE does not allow that: needs shared" in line for line in lines)


@pytest.mark.spec("project.skips")
def test_a_module_that_skips_is_a_failure_too(outcome: Outcome, tmp_path: Path) -> None:
    write(tmp_path, {"tests/test_module.py": "import pytest\npytest.importorskip('no_such')\n"})
    code, lines = outcome("tests/test_module.py", "tests/test_skips.py::test_runs")
    assert (code, lines[-3]) == (0, "skips: 1")
    assert outcome("tests/test_module.py", REVERIE_REQUIRE="all")[0] != 0


@pytest.mark.spec("project.skips")
def test_proof_scale_runs_what_is_marked_for_it(outcome: Outcome) -> None:
    code, lines = outcome("-k", "large or runs", REVERIE_SCALE="proof", REVERIE_BUDGET="60")
    assert code == 0
    assert "2 passed" in lines[-3]
    assert lines[-2].startswith("time: ")
    assert lines[-1] == "no skips"


@pytest.mark.spec("project.skips")
@pytest.mark.parametrize(
    ("options", "environment", "count"),
    [((), {}, 1), (("-m", "integration"), {}, 1), ((), {"REVERIE_INTEGRATION": "1"}, 2)],
)
def test_programs_of_foreign_make_are_met_where_that_is_asked_for(
    outcome: Outcome, options: tuple[str, ...], environment: dict[str, str], count: int
) -> None:
    code, lines = outcome("-k", "foreign or runs", "-v", *options, **environment)
    assert code == 0
    assert any(f"{count} passed" in line for line in lines)
    assert any("test_foreign" in line for line in lines) == bool(options or environment)


# -- programs that are started --------------------------------------------------------


_MODULE = re.compile(r"-[a-zA-Z]?m")
_SAFE = re.compile(r"-[a-zA-Z]*[PI]")


def loose_starts(source: str) -> list[int]:
    """The lines that start Python so that it imports from the working folder: `-m`, or the
    interpreter itself, in a list, a tuple or a call, without `-P` or `-I` in its place."""
    found: list[int] = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.List | ast.Tuple | ast.Call):
            continue
        items = node.args if isinstance(node, ast.Call) else node.elts
        words = [_word(one) for one in items]
        for at, word in enumerate(words[:-1]):
            options = itertools.takewhile(lambda one: one.startswith("-"), words[at + 1 :])
            given = options if word == "sys.executable" else words[:at]
            starts = word == "sys.executable" or _MODULE.fullmatch(word)
            if starts and not any(map(_SAFE.fullmatch, given)):
                found.append(node.lineno)
    return sorted(set(found))


def _word(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ast.unparse(node)


STARTS = re.compile(
    r"subprocess|multiprocessing|pty|(?:\w+\.)?(?:create_subprocess_\w+|open_process|run_process)"
    r"|os\.(?:exec\w+|spawn\w+|posix_spawn\w*|fork\w*|system|popen|startfile)|webbrowser"
)
STARTERS = {
    "programs.py": "the one that starts programs",
    "toolbox/supervisor.py": "becomes the command that `programs` started it for",
    "toolbox/landlock.py": "becomes the shell that `programs` started it for",
    "providers/bound_child.py": "becomes the agent that `programs` started it for",
}


def program_starts(source: str) -> set[str]:
    """What in a module starts a program, whatever it is imported as."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{one.name}" for one in node.names)]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node), f"x.{node.attr}"]
        else:
            continue
        found |= {name for name in names if STARTS.fullmatch(name)}
    return found


@pytest.mark.spec("project.programs")
def test_every_program_is_started_in_one_place(root: Path) -> None:
    house = root / "src/reverie"
    found = {
        str(path.relative_to(house)): starts
        for path in sorted(house.rglob("*.py"))
        if (starts := program_starts(path.read_text()))
    }
    assert set(found) == set(STARTERS), found


@pytest.mark.parametrize(
    ("source", "starts"),
    [
        ("import subprocess as s", True),
        ("from subprocess import run", True),
        ("def f():\n    import subprocess", True),
        ("os.execvp(a, b)", True),
        ("from os import execv", True),
        ("await anyio.open_process(a)", True),
        ("from anyio import run_process", True),
        ("await asyncio.create_subprocess_exec(a)", True),
        ("loop.create_subprocess_shell(a)", True),
        ("os.system(a)", True),
        ("import multiprocessing", True),
        ("programs.run(a, b, c, seconds=1)", False),
        ("os.environ", False),
    ],
)
def test_a_start_elsewhere_is_found(source: str, starts: bool) -> None:
    assert bool(program_starts(source)) is starts


@pytest.mark.spec("18.web")
def test_no_python_of_ours_imports_from_the_working_folder(root: Path) -> None:
    loose = {
        f"{path.relative_to(root)}:{line}"
        for path in sorted((root / "src").rglob("*.py"))
        for line in loose_starts(path.read_text())
    }
    assert not loose, "start Python with -P: `python -m` imports from the working folder"


@pytest.mark.parametrize(
    ("source", "loose"),
    [
        ('[sys.executable, "-m", "x"]', True),
        ('(sys.executable, "-B", "-m", "x")', True),
        ('run(sys.executable, "-m", "x")', True),
        ('["nice", sys.executable, "-m", "x"]', True),
        ('[python, "-m", "x"]', True),
        ('line += ["-Bm", "x"]', True),
        ('[sys.executable, "-c", "import x"]', True),
        ("[sys.executable, script]", True),
        ('[sys.executable, "-m", "x", "-P"]', True),
        ('[sys.executable, "-P", "-m", "x"]', False),
        ('(sys.executable, "-I", "-S", script)', False),
        ('[sys.executable, "-Bm", "-P"]', True),
        ('["-I", "-m", "x"]', False),
        ('words.index("-m")', False),
        ("quote(sys.executable)", False),
    ],
)
def test_a_start_from_the_working_folder_is_found(source: str, loose: bool) -> None:
    assert bool(loose_starts(source)) is loose
