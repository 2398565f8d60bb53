"""What we are made of: every locked package, its licence, and what wants it; a page and an SBOM.

    python -m scripts.release supply             whether docs/supply.md fits the locks
    python -m scripts.release supply --write     write its table anew
    python -m scripts.release supply --sbom F    a CycloneDX document of all that can be installed
    python -m scripts.release supply --audit     ask for known weaknesses (needs a network)

Read from `locks/all.txt` and from the packages' own words where they are installed (`.venv`). The
audit installs pip-audit into an environment of its own; it exits with 0 where nothing is known, 1
where something is, and 3 where the data could not be reached, so that nothing was proven.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.release import LOCKS, ROOT

PAGE = ROOT / "docs" / "supply.md"
LOCK = LOCKS / "all.txt"
BEGIN, END = "<!-- made by scripts.release: begin -->\n", "<!-- made by scripts.release: end -->\n"
UNPROVEN = 3
CORE = "core"
_PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<when>[^\\]+))?"
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_FREE = re.compile(r"License :: (?:OSI Approved :: )?(.+)")


@dataclass(frozen=True, slots=True)
class Locked:
    """A package of the lock: its version, the hashes of its files, and where it is needed."""

    name: str
    version: str
    hashes: tuple[str, ...]
    when: str = ""


def locked(lock: Path = LOCK) -> dict[str, Locked]:
    """The packages of a lock, by name."""
    found: dict[str, Locked] = {}
    for block in re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8")):
        if pin := _PIN.match(block):
            name = canonicalize_name(pin["name"])
            when = (pin["when"] or "").strip()
            found[name] = Locked(name, pin["version"], tuple(_HASH.findall(block)), when)
    return found


def wanted() -> dict[str, list[str]]:
    """What the project asks for: of the core, and of each extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {CORE: project["dependencies"], **project["optional-dependencies"]}


def needs(name: str, extras: frozenset[str] = frozenset()) -> Iterator[Requirement]:
    """What an installed package asks for here."""
    for text in metadata.requires(name) or ():
        found = Requirement(text)
        chosen = extras or {""}
        if found.marker is None or any(found.marker.evaluate({"extra": one}) for one in chosen):
            yield found


def closure(texts: list[str], known: Mapping[str, Locked]) -> list[str]:
    """Every locked package behind some requirements, in the order of their names."""
    todo, seen = [Requirement(text) for text in texts], set[tuple[str, frozenset[str]]]()
    while todo:
        one = todo.pop()
        key = (canonicalize_name(one.name), frozenset(one.extras))
        if key in seen or key[0] not in known:
            continue
        seen.add(key)
        try:
            todo += needs(*key)
        except metadata.PackageNotFoundError:
            continue  # for another system
    return sorted({name for name, _ in seen})


def licence(name: str) -> str:
    """A package's licence in its own words, short."""
    try:
        found: Any = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return "not installed here"
    kinds = [kind[1] for one in found.get_all("Classifier") or () if (kind := _FREE.match(one))]
    text = found.get("License-Expression") or " or ".join(kinds) or found.get("License") or ""
    return " ".join(text.split())[:60] or "not said"


def rows() -> Iterator[str]:
    """The table: each package once, with the parts that bring it."""
    known = locked()
    brought: dict[str, list[str]] = {}
    for part, texts in wanted().items():
        for name in closure(texts, known):
            brought.setdefault(name, []).append(part)
    for name in sorted(brought):
        parts = brought[name]
        by = CORE if CORE in parts else ", ".join(parts)
        told = licence(name).replace("|", "\\|")
        yield f"| {name} | {known[name].version} | {told} | {by} |\n"


def page_text(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    head = "| package | version | licence | comes with |\n|---|---|---|---|\n"
    return f"{before}{BEGIN}\n{head}{''.join(rows())}\n{END}{rest.partition(END)[2]}"


def problems(page: str) -> list[str]:
    """Where the page does not fit the locks; nothing need be installed for that."""
    known = locked()
    told = dict(re.findall(r"^\| ([\w.-]+) \| ([\w.!+-]+) \| ", page, re.MULTILINE))
    told.pop("package", None)
    asked = {canonicalize_name(Requirement(t).name) for texts in wanted().values() for t in texts}
    return [
        *(f"docs/supply.md lacks {name}" for name in sorted(asked - told.keys())),
        *(
            f"docs/supply.md has {name} {version}, which the lock has not"
            for name, version in told.items()
            if name not in known or known[name].version != version
        ),
    ]


# The SBOM


def sbom() -> dict[str, Any]:
    """All that can be installed, as CycloneDX 1.6: no address, no time, the same each time."""
    known = locked()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    asked = {part: closure(texts, known) for part, texts in wanted().items()}
    names = sorted({name for found in asked.values() for name in found})
    direct = {canonicalize_name(Requirement(t).name) for texts in wanted().values() for t in texts}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": "reverie",
                "name": "reverie",
                "version": version,
                "licenses": [{"license": {"id": "MIT"}}],
            }
        },
        "components": [_component(known[name], asked) for name in names],
        "dependencies": [
            {"ref": "reverie", "dependsOn": [_purl(known[n]) for n in sorted(direct & set(names))]},
            *({"ref": _purl(known[name]), "dependsOn": _below(name, known)} for name in names),
        ],
    }


def _purl(one: Locked) -> str:
    return f"pkg:pypi/{one.name}@{one.version}"


def _component(one: Locked, asked: Mapping[str, list[str]]) -> dict[str, Any]:
    parts = [part for part, names in asked.items() if one.name in names]
    return {
        "type": "library",
        "bom-ref": _purl(one),
        "name": one.name,
        "version": one.version,
        "purl": _purl(one),
        "scope": "required" if CORE in parts else "optional",
        "licenses": [{"license": {"name": licence(one.name)}}],
        "hashes": [{"alg": "SHA-256", "content": text} for text in one.hashes],
        "properties": [{"name": "reverie:extra", "value": part} for part in parts],
    }


def _below(name: str, known: Mapping[str, Locked]) -> list[str]:
    try:
        found = {canonicalize_name(one.name) for one in needs(name)}
    except metadata.PackageNotFoundError:
        return []
    return [_purl(known[one]) for one in sorted(found) if one in known]


# Known weaknesses


def audit() -> int:
    """Ask pip-audit about every lock; its exit status as the docstring says."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        made = subprocess.run([python, "-m", "pip", "install", "--quiet", "pip-audit"], check=False)
        if made.returncode:
            print("pip-audit cannot be installed here: nothing was proven", file=sys.stderr)
            return UNPROVEN
        command = [python, "-m", "pip_audit", "--disable-pip", "--no-deps", "--format", "json"]
        command += ["--progress-spinner", "off", "--timeout", "15", "-r", str(LOCK)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return told(ran.stdout, ran.stderr)


def told(out: str, err: str) -> int:
    """What came of an audit, in a line for each weakness; the exit status."""
    try:
        packages = json.loads(out)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = (err.strip().splitlines() or ["it said nothing"])[-1][:300]
        print(f"the data of known weaknesses was not reached: nothing was proven ({last})")
        return UNPROVEN
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    found = [(one, weak) for one in packages for weak in one.get("vulns", ())]
    for one, weak in found:
        fixed = ", ".join(weak.get("fix_versions", ())) or "nothing yet"
        print(f"{one['name']} {one['version']}: {weak['id']}, fixed in {fixed}")
    print(f"{len(packages) - len(skipped)} packages looked up, {len(found)} weaknesses known")
    if skipped:
        print(f"nothing was proven about {', '.join(skipped)}")
    return 1 if found else UNPROVEN if skipped else 0


def main(asked: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the page's table anew")
    parser.add_argument("--sbom", type=Path, metavar="FILE", help="write a CycloneDX document")
    parser.add_argument("--audit", action="store_true", help="ask for known weaknesses")
    given = parser.parse_args(asked)
    if given.sbom:
        given.sbom.parent.mkdir(parents=True, exist_ok=True)
        given.sbom.write_text(json.dumps(sbom(), indent=1) + "\n", encoding="utf-8")
        print(f"{given.sbom}: {len(sbom()['components'])} components")
    if given.audit:
        return audit()
    page = PAGE.read_text(encoding="utf-8")
    if given.write:
        PAGE.write_text(page := page_text(page), encoding="utf-8")
    found = problems(page)
    print(
        "\n".join([*found, "run: python -m scripts.release supply --write"])
        if found
        else "supply: told"
    )
    return 1 if found else 0
