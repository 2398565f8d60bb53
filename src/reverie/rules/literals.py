"""What a clause names to the letter.

What a clause names to the letter: commands, options, paths, names as code has them.

A bare word is a command where it is a known program; the words behind it belong to it while they
are options, known subcommands, or such as only a command has. What is quoted is taken as it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from reverie.light import dataclass, pattern
from reverie.rules.demands import (
    ARTICLES,
    DENSE_VERBS,
    FOLDERS,
    NOT,
    NOT_DENSE,
    NOT_PAIRS,
    QUOTED,
    TYPES,
    WITHIN,
)
from reverie.rules.shell_commands import commands, is_option


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMMAND, FLAG, PATH, CODE, SETTING, FOLDER, TYPE, FORBIDS, WORD = (
    "command", "flag", "path", "code", "setting", "folder", "type", "forbids", "word",
)  # fmt: skip
UNKNOWN = "…"
"""Stands for words of which only a part is known."""
NAMED = frozenset({COMMAND, FLAG, PATH, CODE, SETTING})
_RUNNERS = _set("npx bunx pnpx uvx sudo")
_ENDINGS = _set(
    "json yaml yml toml lock md mdx py ts tsx js jsx mjs rs go rb php cs java kt swift sql "
    "prisma proto sh cfg ini conf xml html css scss ipynb tf tfvars env gradle properties "
    "snap csv txt"
)
_DOMAINS = _set("com org net io dev app co de ai uk eu")
_NO_PATHS = _set("and/or read/write yes/no on/off client/server input/output he/she")
_CODE = pattern(
    r"\.[a-z_]\w{2,40}\(\)?|@[a-z]+(?:-[a-z]+)+|![a-z]{4,}|[A-Za-z_]\w{1,40}(?:\.[A-Za-z_]\w{1,40}){1,3}(?:\(\)?)?"
    r"|[a-z_]\w{2,40}\(\)?|[a-z]+(?:[A-Z][a-z0-9]+){2,}[A-Z]*|(?:TODO|FIXME|XXX)s?"
)
_MARKS = frozenset("(){}[];:=<>@!#$%&*")
_TRAILER = pattern(r"[A-Z][a-z]+-[A-Z][a-z]+-[A-Z][a-z]+")
_LITERAL = pattern(r"[a-z][\w.-]{1,60}:\d{2,5}|[A-Z][A-Z0-9_]{2,40}=[\w./-]{1,60}")


@dataclass(frozen=True, slots=True)
class RuleWord:
    """A word of a clause, or several that are one command, and what it is."""

    text: str
    kind: str = WORD
    words: tuple[str, ...] = ()  # of a command


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    quoted: bool = False


def pieces(clause: str, *, words: bool = False) -> list[RuleWord]:
    """The words of a clause with what they are; `words`: what is quoted is meant as words."""
    tokens = _tokens(clause)
    found: list[RuleWord] = []
    at = 0
    while at < len(tokens):
        line, used = _command(tokens, at)
        if line:
            found.append(RuleWord(" ".join(line), COMMAND, line))
            at += used
            continue
        pair = (
            tokens[at].text.lower(),
            tokens[at + 1].text.lower() if at + 1 < len(tokens) else "",
        )
        if pair in NOT_PAIRS:
            found.append(RuleWord(" ".join(pair), FORBIDS))
            at += 2
            continue
        before = next(
            (one.text.lower() for one in reversed(found) if one.text.lower() not in ARTICLES), ""
        )
        found.append(RuleWord(tokens[at].text, _kind(tokens[at], before, words=words)))
        at += 1
    return found


def _kind(token: _Token, before: str, *, words: bool) -> str:
    text = token.text
    if not token.quoted and (text.lower() in NOT or NOT_DENSE.search(text)):
        return FORBIDS
    inside = before in WITHIN or before.endswith("在")
    if inside and (text in FOLDERS or is_folder(text)):
        return FOLDER
    if inside and text.lower() in TYPES:
        return TYPE
    if is_option(text) and text.strip("-")[:1].isalpha():
        return FLAG
    if _LITERAL.fullmatch(text):
        return SETTING if "=" in text else CODE
    if is_path(text):
        return PATH
    if (token.quoted and words and text.isalpha()) or _is_code(token):
        return CODE
    return WORD


def _tokens(clause: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    for quoted in QUOTED.finditer(clause):
        found += _plain_tokens(clause[at : quoted.start()])
        found.append(_Token(next(filter(None, quoted.groups())), quoted=True))
        at = quoted.end()
    return found + _plain_tokens(clause[at:])


def _plain_tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    for word in text.split():
        if word[:2].lower() in ("n'", "n’"):
            found.append(_Token("n'"))
            word = word[2:]  # noqa: PLW2901 - what French joins
        for part in _by_script(word):
            bare = part.lstrip("([{\"'“„«‘").rstrip(".,;:!?\"'”»’]}")
            bare = bare.rstrip(")") if "(" not in bare else bare
            found += [_Token(bare)] if bare else []
    return found


def _by_script(word: str) -> list[str]:
    """A word where scripts with and without spaces meet, apart; known verbs of the latter go."""
    if word.isascii() or not any(ord(sign) >= 0x2E80 for sign in word):
        return [word]
    parts: list[str] = []
    for sign in word:
        if parts and (ord(sign) >= 0x2E80) == (ord(parts[-1][-1]) >= 0x2E80):
            parts[-1] += sign
        else:
            parts.append(sign)
    return [part if part.isascii() else _forbidding_word(part) for part in parts]


def _forbidding_word(part: str) -> str:
    """Of words in a script without spaces, the one that forbids, and what is left unknown."""
    left = DENSE_VERBS.sub("", NOT_DENSE.sub("", part))
    if left:
        return part if not NOT_DENSE.search(part) else UNKNOWN
    return part if NOT_DENSE.search(part) else ""


def is_folder(text: str) -> bool:
    return ("/" in text.strip("/") or text.endswith("/")) and is_path(text)


def is_path(text: str) -> bool:
    """Whether a word can only be a file or folder."""
    if not text.isascii() or " " in text or "://" in text or text in _NO_PATHS:
        return False
    if any(sign in text for sign in "()<>|$\\=#;@") or not text.strip("/.*~"):
        return False
    first, slash, _ = text.partition("/")
    if slash:
        return "." not in first or first.rpartition(".")[2] not in _DOMAINS
    if text.startswith(".") and text.count(".") == 1:
        return text == ".env" or len(text) > 4
    stem, dot, ending = text.rpartition(".")
    return bool(dot) and bool(stem.strip(".")) and ending.lower() in _ENDINGS


def _is_code(token: _Token) -> bool:
    text = token.text
    if _TRAILER.fullmatch(text):
        return True
    if token.quoted and 3 <= len(text) <= 60 and text.isascii() and not text[0].isdigit():
        return not text.isalpha() and (" " not in text or bool(_MARKS.intersection(text)))
    last = text.rstrip("()").rpartition(".")[2].lower()
    return bool(_CODE.fullmatch(text)) and last not in _ENDINGS | _DOMAINS


def _command(tokens: Sequence[_Token], at: int) -> tuple[tuple[str, ...], int]:
    """A command that begins at a token, and how many tokens it takes."""
    token = tokens[at]
    if token.quoted:
        words = _words(token.text)
        known = words[:1] and (words[0] in PROGRAMS or _is_script(words[0]))
        runs = known and (len(words) > 1 or token.text not in SPOKEN)
        return (_inner(words), 1) if runs else ((), 0)
    if token.text not in PROGRAMS:
        return (), 0
    words = [token.text]
    for one in tokens[at + 1 :]:
        text = one.text
        if one.quoted or not (is_option(text) or text in SUBCOMMANDS or _is_argument(text)):
            break
        words.append(text)
    if len(words) == 1 and token.text in SPOKEN:
        return (), 0
    return _inner(words), len(words)


def _is_script(word: str) -> bool:
    return word.startswith("./") or "/bin/" in word or word.endswith(".sh")


def _is_argument(word: str) -> bool:
    """A word that only a command has: a number, a task with a colon inside."""
    return word.isdigit() or (":" in word.strip(":") and "//" not in word)


def _words(text: str) -> list[str]:
    found = commands(text)
    return list(found[0].views[0]) if len(found) == 1 else []


def _inner(words: Sequence[str]) -> tuple[str, ...]:
    """The command without the program that only runs it."""
    named = [word for word in words[1:] if not is_option(word)]
    if words[0] in _RUNNERS and named:
        return tuple(words[words.index(named[0]) :])
    return tuple(words)


# --- Programs that people name in rules without quoting them, and words that follow them.
#
# Names that are plain words too ("make", "go", "cat") count only with a subcommand or an option,
# or where nothing else follows.


PROGRAMS = frozenset(
    """
    git gh glab svn hg npm npx pnpm yarn bun bunx deno node nodemon tsc tsx eslint prettier jest
    vitest mocha cypress playwright vite webpack rollup esbuild turbo nx lerna expo next vercel
    netlify wrangler firebase supabase heroku fly python python3 pip pip3 pipx uv uvx poetry
    pipenv conda mamba micromamba pytest tox nox ruff black isort flake8 mypy pyright alembic
    django-admin manage.py celery jupyter cargo rustc rustup clippy gofmt golint golangci-lint
    gradle gradlew ./gradlew mvn mvnw ./mvnw sbt bazel buck cmake ctest ninja meson gcc clang
    rails rake bundle gem rspec rubocop php artisan composer phpunit mix elixir iex dotnet nuget
    msbuild swift xcodebuild pod fastlane flutter dart docker docker-compose podman buildah
    kubectl k9s helm helmfile kustomize minikube terraform tofu terragrunt pulumi ansible
    ansible-playbook vagrant packer aws gcloud az doctl sam cdk serverless psql mysql sqlite3
    mongosh mongo redis-cli pg_dump createdb dropdb prisma drizzle-kit knex sequelize typeorm
    curl wget ssh scp rsync sftp rm rmdir mv cp chmod chown sudo su doas brew apt apt-get yum
    dnf pacman apk snap killall pkill kill systemctl service crontab nohup screen tmux sed awk
    grep rg fd xargs tar zip unzip dd mkfs mount umount shutdown reboot iptables openssl gpg buf
    protoc storybook lighthouse changeset semantic-release twine hatch flit maturin act make
    just task go cat find tee tail head
    """.split()  # noqa: SIM905
)
SPOKEN = frozenset(
    """
    make just task go cat find tee tail head next fly act service screen node sam snap black mix
    dart swift kill mount pod rake gem turbo flask python expo bundle buf tar hatch rails django
    bazel
    """.split()  # noqa: SIM905
)
"""Of these, the names that a sentence may mean otherwise."""
SUBCOMMANDS = frozenset(
    """
    push pull commit add reset rebase merge checkout switch restore clean stash tag branch
    cherry-pick revert fetch clone worktree filter-branch install uninstall ci run exec test
    build publish deploy update upgrade remove audit link start dev serve watch init create
    generate migrate apply destroy plan import state taint up down stop restart rm rmi prune
    system volume image compose logs delete edit scale drain rollout auth login logout config
    set get describe rollback lint fmt format check fix clippy bench doc new db:drop db:reset
    db:migrate db:wipe db:seed migrate:fresh migrate:reset flush shell loaddata makemigrations
    collectstatic reset drop open prebuild eject sync lock self-update require dump-autoload
    ecto.reset ecto.drop ecto.migrate database ef s3 iam ec2 repo pr issue release workflow
    secret purge autoremove force-push vet mod tool db artisan database
    """.split()  # noqa: SIM905
)
