"""Which files are nobody else's business, told by their names alone.

`is_secret` is the one answer for every door: what may hold keys or passwords, wherever it lies.
`is_private` adds the folders in which agents keep their own files, ours among them. Nothing here
touches the disk, so a file that hides its purpose behind another name is not seen.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from pathlib import Path

from reverie.store.paths import beneath

SECRET_FOLDERS = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".gcloud",
    ".kube",
    ".docker",
    ".password-store",
    ".terraform.d",
    "gcloud",
    "keyrings",
)
SECRET_FILES = (
    ".env",
    ".env.*",
    ".envrc",
    "*.env",
    "*.key",
    "*.pem",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.kdbx",
    "*.keystore",
    "*.keytab",
    "*.ovpn",
    "*.tfvars",
    "*.tfvars.json",
    "*.tfstate",
    "*.tfstate.backup",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    ".dockercfg",
    ".boto",
    ".s3cfg",
    "kubeconfig",
    "kubeconfig.*",
    "*.kubeconfig",
    "credentials",
    "credentials.*",
    ".credentials.json",
    "secret.json",
    "secret.y*ml",
    "secrets.json",
    "secrets.toml",
    "secrets.y*ml",
    "client_secret*.json",
    "service-account*.json",
    "service_account*.json",
    "serviceaccount*.json",
)
SECRETS = (*SECRET_FOLDERS, *SECRET_FILES)
AGENT_FOLDERS = frozenset(
    {
        ".reverie",
        ".claude",
        ".codex",
        ".gemini",
        ".cursor",
        ".continue",
        ".aider",
        ".windsurf",
        ".codeium",
        ".copilot",
        ".goose",
        ".opencode",
        ".qwen",
    }
)
GIT = ".git"
_GIT_FILES = frozenset({"config", "config.worktree", "credentials"})


def is_secret(path: Path) -> bool:
    """Whether a file's name says that it may hold keys or passwords."""
    names = _names(path)
    if any(name in SECRET_FOLDERS for name in names):
        return True
    last = names[-1] if names else ""
    if last.startswith("id_") and "." not in last:
        return True
    return is_git_setting(path) or any(fnmatch.fnmatchcase(last, one) for one in SECRET_FILES)


def is_git_setting(path: Path) -> bool:
    """Whether it is git's configuration, which holds addresses with passwords, or a hook."""
    names = _names(path)
    if GIT not in names:
        return False
    below = names[names.index(GIT) + 1 :]
    return "hooks" in below or (below[-1:] != [] and below[-1] in _GIT_FILES)


def is_gits(path: Path) -> bool:
    """Whether it belongs to git's own files."""
    return GIT in _names(path)


def is_private(path: Path, homes: Iterable[Path] = ()) -> bool:
    """Whether it may hold keys, or lies in a folder of an agent; `homes` are more of those."""
    if is_secret(path) or AGENT_FOLDERS.intersection(_names(path)):
        return True
    return any(beneath(home, path) for home in homes)


def _names(path: Path) -> list[str]:
    return [part.casefold() for part in path.parts]
