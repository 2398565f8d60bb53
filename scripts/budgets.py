"""Measures the tree against `budgets.toml`: what somebody must read, load and know.

Every number there is a ceiling, or a ceiling and the goal it moves to. The check fails where
a measurement is above its ceiling; `--lower` brings ceilings down to what was measured, and
nothing raises them but a person, who says why in the file.

    python -m scripts.budgets            compare
    python -m scripts.budgets --lower    lower the ceilings that the tree has fallen below
    python -m scripts.budgets --list     print every measurement, and the names behind the counts
    python -m scripts.budgets --tree     look for what must not be in the tree, and for that alone

No file that git tracks or would track names a package registry's host or a path of the machine it
was written on, and no lock an address.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "budgets.toml"
SOURCE = ROOT / "src/reverie"
DATA = (".tsv", ".toml", ".json", ".jsonl", ".txt", ".csv")
FIELD_WORDS = {"testing", "embedded", "embedding", "embeddings"}
"""Modules whose name only looks like a gerund or participle."""
PARTICIPLE = re.compile(
    "[a-z]{2,}(?<!e)ed|begun|bound|bought|broken|brought|built|chosen|dealt|done|drawn|fallen|felt|"
    "forgotten|found|given|gone|got|grown|heard|held|hidden|kept|known|laid|led|lent|lost|made|"
    "meant|met|paid|risen|said|seen|sent|shown|spent|spoken|stood|stuck|sworn|taken|thought|"
    "thrown|told|understood|won|worn|written"
)
"""One past participle; those that are an imperative too (cut, put, read, run, set) do not count."""
REGISTRIES = re.compile(
    r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|yarnpkg\.com|deb\.debian\.org|"
    r"security\.debian\.org|archive\.ubuntu\.com|static\.crates\.io|index\.crates\.io"
)
# Names that stand for anyone in examples and tests.
ANYONE = "alice|ann|bob|dev|me|someone|user|you"
HOMES = re.compile(
    rf"(?<![\w.~}}-])/(?:home|Users)/(?!(?:{ANYONE})\b)\w[\w.-]*/|(?<![\w.~-])/roo[t]/"
)
WORKPLACE = re.compile(r"(?<![\w.~-])/work/(?:main|shared)\b")
ADDRESS = re.compile(r"\w+://|--(?:extra-)?index-url|--find-links|--trusted-host")
Row: TypeAlias = "float | list[float]"
FIRST_USE = {
    "fit": "from reverie import fit; fit([{'role': 'user', 'content': 'x'}], model='gpt-5')",
    "add_search": "import reverie; m = reverie.Memory('.', home='home', settings={'embedding_model'"
    ": 'off'}); m.add('The shop sells zebras'); m.search('zebra')",
    "session": "import anyio, reverie; model = reverie.testing.ScriptedModel(['x'])\n"
    "async def main():\n"
    "    async with reverie.Session.open('.', model=model, home='home') as session:\n"
    "        await session.add('x'); await session.prepare()\n"
    "anyio.run(main)",
}


@cache
def trees(folder: Path) -> dict[Path, ast.Module]:
    """Parse every Python file below a folder."""
    return {p: ast.parse(p.read_text(encoding="utf-8")) for p in sorted(folder.rglob("*.py"))}


def lines(folder: Path, *endings: str) -> int:
    """Count the lines of a folder's files with these endings."""
    files = [p for p in folder.rglob("*") if p.suffix in endings and p.is_file()]
    return sum(len(p.read_text(encoding="utf-8").splitlines()) for p in files)


def statements(tree: ast.Module) -> int:
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree))


def functions() -> Iterator[str]:
    for tree in trees(SOURCE).values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name


def participle(name: str) -> bool:
    """Say whether a whole name, without underscores around it, is one past participle."""
    return PARTICIPLE.fullmatch(name.strip("_")) is not None


def participle_modules() -> list[str]:
    places = {p.relative_to(SOURCE).with_suffix("") for p in trees(SOURCE)}
    named = {p.parent if p.name == "__init__" else p for p in places}
    wrong = (p for p in named if p.name.endswith("ing") or participle(p.name))
    return sorted(str(p) for p in wrong if p.name not in FIELD_WORDS)


def classes_twice() -> list[str]:
    found = Counter(
        node.name
        for tree in trees(SOURCE).values()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, count in found.items() if count > 1)


def inside_a_room(tree: ast.Module) -> bool:
    """Say whether a file imports a module inside a room, and not the room by its name."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{one.name}" for one in node.names]
    return any(map(_is_inside, names))


def _is_inside(name: str) -> bool:
    """Say whether a dotted name is, or lies in, a module of a room; each app is a room."""
    package, *parts = name.split(".")
    depth = 2 if parts[:1] == ["apps"] else 1
    at = SOURCE.joinpath(*parts[: depth + 1])
    return (
        package == "reverie"
        and len(parts) > depth
        and (at.is_dir() or at.with_suffix(".py").is_file())
    )


def source() -> dict[str, float]:
    own = trees(SOURCE)
    named = list(functions())
    return {
        "files": len(own),
        "lines": lines(SOURCE, ".py"),
        "data_rows": lines(SOURCE, *DATA),
        "statements": sum(map(statements, own.values())),
        "longest_file": max(len(p.read_text(encoding="utf-8").splitlines()) for p in own),
        "class_names_twice": len(classes_twice()),
        "participle_modules": len(participle_modules()),
        "participle_functions": round(sum(map(participle, named)) / len(named), 3),
    }


def rooms() -> dict[str, list[float]]:
    """Give each room's lines, statements and files; modules at the top are the room `top`."""
    found: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0])
    for path, tree in trees(SOURCE).items():
        parts = path.relative_to(SOURCE).parts
        row = found[parts[0] if len(parts) > 1 else "top"]
        row[0] += len(path.read_text(encoding="utf-8").splitlines())
        row[1] += statements(tree)
        row[2] += 1
    return dict(found)


def first_use() -> dict[str, float]:
    """Count the modules of ours that a fresh process has loaded after a first use."""
    found: dict[str, float] = {}
    for name, code in FIRST_USE.items():
        text = f"import sys\n{code}\nprint(*(m for m in sys.modules if m.startswith('reverie')))"
        with tempfile.TemporaryDirectory() as folder:
            run = [sys.executable, "-P", "-c", text]
            done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=folder)
        found[name] = len(done.stdout.splitlines()[-1].split())
    return found


def walks() -> dict[str, float]:
    told = subprocess.check_output([sys.executable, "-m", "scripts.walks"], cwd=ROOT, text=True)
    return {name: int(count) for name, count in map(str.split, told.splitlines())}


def public() -> dict[str, float]:
    import reverie
    from reverie import testing
    from reverie.settings import SETTINGS

    own = [n for n, v in vars(testing).items() if getattr(v, "__module__", "") == testing.__name__]
    return {
        "names": len(reverie.__all__),
        "testing_names": len([n for n in own if not n.startswith("_")]),
        "settings": len(SETTINGS),
    }


def tests() -> dict[str, float]:
    own = trees(ROOT / "tests")
    cases = [t for p, t in own.items() if p.name.startswith("test_")]
    return {
        "lines": lines(ROOT / "tests", ".py"),
        "inside_a_room": round(sum(map(inside_a_room, cases)) / len(cases), 3),
    }


def around() -> dict[str, float]:
    bench = list((ROOT / "bench").glob("*.py"))  # not what a run leaves below bench/out
    return {
        "bench_files": len(bench),
        "bench_lines": sum(len(p.read_text(encoding="utf-8").splitlines()) for p in bench),
        "scripts_files": len(trees(ROOT / "scripts")),
        "scripts_lines": lines(ROOT / "scripts", ".py"),
        "manifest_lines": len((ROOT / "tests/manifest.toml").read_text().splitlines()),
        "docs_words": words(),
    }


def words() -> int:
    """Count the words of the pages that people write, without code."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    kept = [p for p in pages if not {"reference", "_build"} & set(p.parts)]
    texts = (p.read_text(encoding="utf-8") for p in kept)
    return sum(len(re.sub(r"```.*?```|<!--.*?-->", "", t, flags=re.DOTALL).split()) for t in texts)


def measured() -> dict[str, Mapping[str, Row]]:
    return {
        "source": source(),
        "rooms": rooms(),
        "walks": walks(),
        "first_use": first_use(),
        "public": public(),
        "tests": tests(),
        "around": around(),
    }


def ceilings() -> dict[str, dict[str, Row]]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def pairs(table: str, known: Row, found: Row) -> Iterator[tuple[float, float]]:
    """Pair each measurement with its ceiling; a room has three, any other row one and a goal."""
    first = known if isinstance(known, list) else [known]
    second = found if isinstance(found, list) else [found]
    yield from zip(first if table == "rooms" else first[:1], second, strict=True)


def problems() -> Iterator[str]:
    """Yield a line for each measurement above its ceiling, and each row without its other half."""
    known = ceilings()
    for table, rows in measured().items():
        for name in sorted({*rows, *known.get(table, {})}):
            if name not in rows or name not in known.get(table, {}):
                yield f"{table}.{name}: not in {'budgets.toml' if name in rows else 'the tree'}"
                continue
            for most, found in pairs(table, known[table][name], rows[name]):
                if found > most:
                    yield f"{table}.{name}: {found}, at most {most}"


def lower() -> None:
    """Write each ceiling that the tree has fallen below; comments and goals stay."""
    rows = measured()
    table, out = "", list[str]()
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if head := re.match(r"\[(\w+)\]", line):
            table = head[1]
        row = re.fullmatch(r"(\w+) = (\[.*?\]|[\d.]+)(.*)", line)
        found = rows.get(table, {}).get(row[1]) if row else None
        if row is not None and found is not None:
            known = tomllib.loads(line)[row[1]]
            least = [min(pair) for pair in pairs(table, known, found)]
            goal = known[1:] if isinstance(known, list) and table != "rooms" else []
            value = [*least, *goal] if isinstance(known, list) else least[0]
            out.append(f"{row[1]} = {value}{row[3]}")
        else:
            out.append(line)
    FILE.write_text("\n".join(out) + "\n", encoding="utf-8")


# What must not be in the tree


def tracked_files(root: Path) -> list[Path]:
    """What git tracks, and what it would if asked."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=root,
        check=True,
        capture_output=True,
    ).stdout.decode()
    return sorted(path for name in listed.split("\0") if name and (path := root / name).is_file())


def content_rules(path: Path, root: Path) -> list[tuple[str, re.Pattern[str]]]:
    """The rules that hold for this file, each with its name."""
    held = [
        ("host of a package registry", REGISTRIES),
        ("path of somebody's home", HOMES),
        ("path of one machine", WORKPLACE),
    ]
    if len(root.parts) > 2:
        held.append(("path of this clone", re.compile(re.escape(str(root)) + r"\b")))
    if "locks" in path.relative_to(root).parts[:-1]:
        held.append(("address in a lock", ADDRESS))
    return held


def forbidden(root: Path) -> Iterator[str]:
    """One line for each thing found, with file and line."""
    for path in tracked_files(root):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        held = content_rules(path, root)
        for number, line in enumerate(text.splitlines(), 1):
            for name, pattern in held:
                if found := pattern.search(line):
                    yield f"{path.relative_to(root)}:{number}: {name}: {found[0]}"


def main() -> None:
    if "--lower" in sys.argv:
        lower()
    if "--list" in sys.argv:
        for table, rows in measured().items():
            print(f"[{table}]", *(f"{name} = {value}" for name, value in rows.items()), sep="\n")
        print(*participle_modules(), *classes_twice())
        return
    if "--tree" in sys.argv:
        wrong, good = list(forbidden(ROOT)), "tree: nothing that should not be there"
    else:
        wrong, good = list(problems()), "budgets: every measurement is within its ceiling"
    print("\n".join(wrong) or good)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
