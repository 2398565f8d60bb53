"""What a release needs: the locks, the list of what it is made of, and a wheel that was tried.

    python -m scripts.release lock [--upgrade]          write locks/*.txt from pyproject.toml
    python -m scripts.release supply [--write] …        docs/supply.md, the SBOM, known weaknesses
    python -m scripts.release wheel [--python 3.12 …]   the wheel on each Python that is there

Locks: the largest set is resolved once; the smaller ones are cut from it, so a package has one
version in all of them. The files hold names, versions and hashes, and no address: whoever installs
decides where packages come from.

The wheel made from the sdist must hold the same files. Each Python gets an environment of its own
with what the lock names for the core and the light doors: the one that runs this gets copies of
what it has, the others are installed hash by hash. There everything runs with warnings as errors:
the import, the version, the demo, a memory in three lines, and every light door, which must say
that it listens, answer a request, and end at SIGTERM. A Python that is not there, or whose packages
cannot be had, is named as not proven; without 3.11 it fails.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
import venv
import zipfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# -- locks -----------------------------------------------------------------------------

LOCKS = ROOT / "locks"
EVERY = ("--all-extras",)
CUT = ("--constraint", "locks/proof.txt")
BUILD = ("--group", "build", *CUT)
TIERS: dict[str, tuple[str, ...]] = {
    "proof": ("--group", "proof", *EVERY),
    "dev": ("--group", "dev", *EVERY, *CUT),
    "run": BUILD,
    "docs": ("--group", "docs", *CUT),
    **{name: (*BUILD, "--extra", name) for name in ("anthropic", "openai", "semantic", "terminal")},
    "all": (*BUILD, *EVERY),
}
COMPILE = (
    *("pip", "compile", "pyproject.toml", "--universal", "--python-version=3.11", "--quiet"),
    *("--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header"),
    "--no-annotate",
)


def install_uv(folder: Path) -> Path:
    """Installs the resolver into a virtual environment of its own and says where it is."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True)
    return folder / "bin" / "uv"


def write_locks(uv: Path, *, upgrade: bool) -> None:
    """Resolves each tier in turn; pins that still fit are kept unless told to upgrade."""
    for tier, asked in TIERS.items():
        extra = ("--upgrade",) if upgrade and tier == "proof" else ()
        target = LOCKS / f"{tier}.txt"
        if tier != "proof":
            target.unlink(missing_ok=True)
        subprocess.run(
            [uv, *COMPILE, *asked, *extra, "--output-file", target], check=True, cwd=ROOT
        )
        text = target.read_text()
        if "://" in text:
            sys.exit(f"{target.name} holds an address; it must not")
        print(f"{target.name}: {sum(line[0].isalnum() for line in text.splitlines())} packages")


def lock(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Write locks/*.txt.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that fit")
    parser.add_argument("--uv", type=Path, help="a resolver that is already there")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        write_locks(given.uv or install_uv(Path(folder)), upgrade=given.upgrade)
    return 0


# -- the wheel -------------------------------------------------------------------------

VERSIONS = ("3.11", "3.12", "3.13")
SURE = VERSIONS[0]
DOORS = {
    "simulate": ["simulate", "--port", "0", "--json"],
    "proxy": ["proxy", "--port", "0", "--json", "--upstream", "http://127.0.0.1:9"],
    "web": ["web", "--port", "0", "--json"],
    "mcp": ["mcp", "--http", "--port", "0", "--json"],
    "team": ["team", "serve", "--port", "0", "--json"],
}
EXTRAS = ("core", "server", "proxy", "web", "mcp", "team")
SECONDS = 60
OWNER = Path(pwd.getpwuid(os.getuid()).pw_dir)
"""The home that settings of pip and other Pythons lie in, wherever HOME leads."""
THREE_LINES = """
import reverie
memory = reverie.Memory("project")
memory.add("Integration tests hit a real database")
assert memory.search("which database do the tests hit?"), "nothing was found"
print(reverie.__version__)
"""
_URL = re.compile(r"http://[^\s\"]+")


class Failed(Exception):
    """Something did not hold, in one sentence."""


class NotHere(Exception):
    """Something is missing, so that nothing was proven."""


def pythons(wanted_ones: list[str]) -> Iterator[tuple[str, Path]]:
    """The interpreters of these versions that can be found."""
    folders = [Path(one) for one in os.environ.get("PATH", "").split(os.pathsep)]
    folders += sorted(OWNER.glob(".pyenv/versions/*/bin"))
    for version in wanted_ones:
        here = Path(sys.executable) if version == "{}.{}".format(*sys.version_info) else None
        named = (folder / f"python{version}" for folder in folders)
        found = here or next((path for path in named if _is(path, version)), None)
        if found is not None:
            yield version, found


def _is(path: Path, version: str) -> bool:
    """Whether a program is that Python, and not a stand-in that says no."""
    if not path.is_file():
        return False
    ask = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return (
        subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip() == version
    )


def built(folder: Path) -> Path:
    """The wheel; and the one from the sdist has the same files."""
    build = [sys.executable, "-m", "hatchling", "build", "-d"]
    _run([*build, str(folder / "made"), "-t", "sdist", "-t", "wheel"], ROOT)
    (sdist,) = (folder / "made").glob("*.tar.gz")
    shutil.unpack_archive(sdist, folder / "sdist", filter="data")
    (source,) = (folder / "sdist").iterdir()
    _run([*build, str(folder / "again"), "-t", "wheel"], source)
    (wheel,), (again,) = (folder / "made").glob("*.whl"), (folder / "again").glob("*.whl")
    if _files(wheel) != _files(again):
        raise Failed(f"wheel and sdist differ: {sorted(_files(wheel) ^ _files(again))[:5]}")
    tables = {str(one.relative_to(ROOT / "src")) for one in (ROOT / "src").rglob("data/*.tsv")}
    if lost := tables - {name for name, _ in _files(wheel)}:
        raise Failed(f"tables that the wheel lacks: {sorted(lost)}")
    return wheel


def _files(wheel: Path) -> set[tuple[str, int]]:
    with zipfile.ZipFile(wheel) as packed:
        return {
            (one.filename, one.CRC) for one in packed.infolist() if "RECORD" not in one.filename
        }


def needed() -> set[str]:
    """What the core and the light doors need."""
    from scripts import supply  # its packages need not be there to write a lock

    known, wanted = supply.locked(), supply.wanted()
    return {name for extra in EXTRAS for name in supply.closure(wanted[extra], known)}


def installed(python: Path, wheel: Path, folder: Path) -> Path:
    """A clean environment with the wheel in it; its folder of programs."""
    _run([str(python), "-m", "venv", "--without-pip", str(folder)], folder.parent)
    there = folder / "bin"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    pip += ["--python", str(there / "python"), "install", "--quiet", "--no-deps"]
    if python == Path(sys.executable):
        (site,) = folder.glob("lib/python*/site-packages")
        _copy(site)
    else:
        _download(pip, folder)
    _run([*pip, "--no-index", str(wheel)], folder.parent)
    return there


def _copy(site: Path) -> None:
    """The packages of this environment, file by file."""
    for name in needed():
        found = metadata.distribution(name)
        for file in found.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(found.locate_file(file)), target)


def _download(pip: list[str], folder: Path) -> None:
    """The packages of the lock, by their hashes; pip is asked with its owner's own settings."""
    names = needed()
    blocks = re.split(r"\n(?=\S)", (LOCKS / "all.txt").read_text(encoding="utf-8"))
    kept = [b for b in blocks if re.split(r"[=\s;\[]", b, maxsplit=1)[0].lower() in names]
    path = folder / "requirements.txt"
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    command = [*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(path)]
    try:
        _run(command, folder, {**os.environ, "HOME": str(OWNER)})
    except Failed as error:
        raise NotHere(f"its packages cannot be had: {error}") from None


# What is tried


def tried(there: Path, place: Path, say: Callable[[str], None]) -> None:
    """Everything on one Python; Failed says what does not hold."""
    (place / "project").mkdir(parents=True)
    version = _ran(there, place, "-c", THREE_LINES).strip()
    say("a memory in three lines")
    told = _ran(there, place, "-m", "reverie.apps.cli", "--version").strip()
    if told != f"reverie {version}":
        raise Failed(f"--version says {told!r}")
    demo = json.loads(_ran(there, place, "-m", "reverie.apps.cli", "demo", "--json"))
    if not demo:
        raise Failed("the demo shows nothing")
    say(f"{told}, demo")
    for name, words in DOORS.items():
        _door(there, place, words)
        say(name)


def _ran(there: Path, place: Path, *words: str) -> str:
    return _run([str(there / "python"), "-W", "error", *words], place, _environ(place))


def _environ(place: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(place), "REVERIE_HOME": str(place / "home")}


def _door(there: Path, place: Path, words: list[str]) -> None:
    """Start a server, ask it something, and end it."""
    command = [str(there / "python"), "-W", "error", "-m", "reverie.apps.cli", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=place / "project", env=_environ(place), stdout=pipe, stderr=pipe, text=True
    ) as process:
        late = threading.Timer(SECONDS, process.kill)
        late.start()
        try:
            assert process.stdout is not None
            url = _URL.search(process.stdout.readline())
            status = _asked(url[0]) if url else 0
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate()
        finally:
            late.cancel()
            process.kill()
    if not url or not status:
        raise Failed(f"{' '.join(words)} did not listen: {err.strip()[-300:]}")
    if process.returncode:
        raise Failed(f"{' '.join(words)} ended with {process.returncode}: {err.strip()[-300:]}")


def _asked(url: str) -> int:
    """The status of an answer, whatever it is."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def _run(command: list[str], cwd: Path, environ: dict[str, str] | None = None) -> str:
    ran = subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    if ran.returncode:
        raise Failed(f"{' '.join(command)[:200]}: {(ran.stderr or ran.stdout).strip()[-600:]}")
    return ran.stdout


def wheel(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Build the wheel and try it.")
    parser.add_argument("--python", action="append", choices=VERSIONS, help="these alone")
    given = parser.parse_args(arguments)
    asked: list[str] = given.python or [*VERSIONS]
    there = dict(pythons(asked))
    failed = [SURE] if SURE in asked and SURE not in there else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            path = built(folder)
        except Failed as error:
            print(f"not built: {error}")
            return 1
        print(f"{path.name}: built, and the same from the sdist")
        for version, python in there.items():
            done: list[str] = []
            try:
                programs = installed(python, path, folder / f"venv-{version}")
                tried(programs, folder / f"place-{version}", done.append)
                print(f"Python {version}: holds ({'; '.join(done)})", flush=True)
            except Failed as error:
                failed.append(version)
                print(f"Python {version}: FAILS after {done}: {error}", flush=True)
            except NotHere as error:
                failed += [version] if version == SURE else []
                print(f"Python {version}: not proven here, {error}", flush=True)
    for version in asked:
        if version not in there:
            print(f"Python {version}: not proven here, it is not installed")
    return 1 if failed else 0


def main(asked: list[str]) -> int:
    if asked[:1] == ["lock"]:
        return lock(asked[1:])
    if asked[:1] == ["wheel"]:
        return wheel(asked[1:])
    if asked[:1] == ["supply"]:
        from scripts import supply

        return supply.main(asked[1:])
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
