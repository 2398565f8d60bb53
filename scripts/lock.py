"""Writes the locks from pyproject.toml.

The largest set is resolved once; the smaller ones are cut from it, so a package
has one version in all of them. The files hold names, versions and hashes, and no address:
whoever installs decides where packages come from.

    python -m scripts.lock [--upgrade]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "locks"
EXTRAS = ("--all-extras",)
TIERS: dict[str, tuple[str, ...]] = {
    "proof": ("--group", "proof", *EXTRAS),
    "dev": ("--group", "dev", *EXTRAS, "--constraint", "locks/proof.txt"),
    "run": ("--group", "build", "--constraint", "locks/proof.txt"),
    "docs": ("--group", "docs", "--constraint", "locks/proof.txt"),
    "anthropic": ("--group", "build", "--extra", "anthropic", "--constraint", "locks/proof.txt"),
    "openai": ("--group", "build", "--extra", "openai", "--constraint", "locks/proof.txt"),
    "semantic": ("--group", "build", "--extra", "semantic", "--constraint", "locks/proof.txt"),
    "terminal": ("--group", "build", "--extra", "terminal", "--constraint", "locks/proof.txt"),
    "all": ("--group", "build", *EXTRAS, "--constraint", "locks/proof.txt"),
}
COMPILE = (
    "pip",
    "compile",
    "pyproject.toml",
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-header",
    "--no-annotate",
    "--quiet",
)


def uv_in(folder: Path) -> Path:
    """Installs the resolver into a virtual environment of its own and says where it is."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True)
    return folder / "bin" / "uv"


def write(uv: Path, *, upgrade: bool) -> None:
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


def main() -> None:
    parser = argparse.ArgumentParser(description="Write locks/*.txt.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that fit")
    parser.add_argument("--uv", type=Path, help="a resolver that is already there")
    given = parser.parse_args()
    LOCKS.mkdir(exist_ok=True)
    if given.uv:
        write(given.uv, upgrade=given.upgrade)
        return
    with tempfile.TemporaryDirectory() as folder:
        write(uv_in(Path(folder)), upgrade=given.upgrade)


if __name__ == "__main__":
    main()
