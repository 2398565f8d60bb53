"""Names of files that may hold keys or passwords: rows, copies, spellings, exceptions."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from reverie.store.sensitive_paths import is_private, is_secret

pytestmark = pytest.mark.spec("7.secret-names")

ROWS = [
    row
    for row in files("reverie.store").joinpath("data/secret_names.txt").read_text().splitlines()
    if row and not row.startswith("#")
]
COPIES = (
    "{}~", "{}.bak", "{}.old", "{}.orig", "{}.save", "{}.gz", "{}.20260301", "{} (1)", "#{}#",
    ".#{}", ".{}.swp", "Copy of {}", "{} copy", "{}.bak~",
)  # fmt: skip
CLOSED = (
    "gha-creds-0a1b2c.json", "conf/rclone.conf", "wp-config.php", "wp-config.bak.php",
    "appsettings.Production.json", "local.settings.json", ".dev.vars", "sites/default/settings.php",
    "app/etc/env.php", ".config/gh/hosts.yml", "application_default_credentials.json",
    "prod-kubeconfig", "dist.p12", "example.pem", ".ssh/config", ".ssh/notes.md", ".Kube/config",
    ".zsh_history",
)  # fmt: skip
OPEN = (
    ".env.example", ".env.sample", ".env.template", ".env.dist", ".env.local.example", "sample.env",
    ".env.example~", "id_ed25519.pub", ".ssh/id_ed25519.pub", "deploy.key.pub",
    "docs/kubeconfig.md", "credentials.md", "wp-config-sample.php", "secrets.example.yaml",
    "prod.tfvars.example", ".github/release_history",
    "appsettings.json", "src/secrets", "src/secrets/scanner.py", "secrets.py", "settings.py",
    "environment.yml", "styles/shadow.css", "notes.old", "backup.sh", "history.txt", "key_test.go",
)  # fmt: skip


def _example(row: str) -> str:
    """A name that the row stands for."""
    for glob, plain in (("y*ml", "yaml"), ("[0-9]", "0"), ("[34]", "4"), ("[", ""), ("]", "")):
        row = row.replace(glob, plain)
    return row.replace("*", "x").replace("._-", "-").replace(".-", "-").replace("_-", "_")


@pytest.mark.parametrize("row", ROWS)
def test_every_row_closes_its_files(row: str) -> None:
    name = _example(row) + ("config" if row.endswith("/") else "")
    assert is_secret(Path("project") / name)
    assert is_secret(Path("project") / name.upper())


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("name", [".env", "wp-config.php", "id_rsa", "secrets.yaml", "rclone.conf"])
def test_a_copy_is_as_secret_as_its_original(name: str, copy: str) -> None:
    assert is_secret(Path("project") / copy.format(name))
    assert not is_secret(Path("project") / copy.format("notes.txt"))


@pytest.mark.parametrize(
    "name", [".ｅｎｖ", ".ＥＮＶ", "ＩＤ_ＲＳＡ", ".e\u200bnv", ".env.", "ｗｐ-config.php"]
)
def test_a_name_counts_as_it_looks(name: str) -> None:
    assert is_secret(Path("project") / name)


@pytest.mark.parametrize("name", CLOSED)
def test_closed(name: str) -> None:
    assert is_secret(Path("project") / name)
    assert is_private(Path("project") / name)


@pytest.mark.parametrize("name", OPEN)
def test_open(name: str) -> None:
    assert not is_secret(Path("project") / name)
