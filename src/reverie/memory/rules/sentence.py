"""When a rule applies, read from its sentence: only where it names something literal.

"Never git push --force", "docker run only with --rm", "legacy/ is generated", "no console.log in
app/": a command, a path or a name as code has it, in a clause that forbids or demands. Who forbids
is told by a few words in several languages; what is forbidden must stand there to the letter. A
clause that depends on something else ("while on main", "except those that …") is left alone, and so
is all that only advises. In doubt, nothing: the rule is still in the memory for the model to read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reverie.light import dataclass, pattern
from reverie.memory.rules.calls import WRITE
from reverie.memory.rules.match import CompiledRule
from reverie.memory.rules.programs import PROGRAMS, SPOKEN, SUBCOMMANDS
from reverie.memory.rules.shell import commands, is_option

MAX_SENTENCE = 600
_RUNNERS = frozenset("npx bunx pnpx uvx sudo".split())

_SENTENCE = pattern(r"[.!?;](?=\s|$)|[。！？；\n]")
_CLAUSE = pattern(r"[,:](?=\s|$)|[：，、]|\s[-–—]\s|\s(?:but|sondern|sino|mais|но)\s")
_QUOTED = pattern(r"`([^`\n]{1,200})`|[\"“„]([^\"“”\n]{1,80})[\"”]|'([^'\n]{2,60})'(?!\w)")
_NOT = pattern(
    r"\b(?:never|don['’]?t|do not|does not|doesn['’]t|no|not|avoid|stop|mustn['’]?t|must not"
    r"|forbidden|prohibited|banned|off[- ]limits|hands off"
    r"|nie|niemals|kein\w?\w?|nicht|nichts|verboten|finger weg"
    r"|nunca|jam[aá]s|prohibido|n[aã]o|vietato|jamais|pas|interdit|ne)\b"
    r"|(?<!\w)(?:не|никогда|нельзя|запрещено)(?!\w)|不要|别|禁止|切勿|不准|不得|请勿|不许|永远不",
    re.IGNORECASE,
)
_KEPT = pattern(
    r"\b(?:is|are|stays?|remains?) (?:auto-?)?(?:generated|upstream|mine|read-only|frozen|vendored"
    r"|not (?:yours|ours)|not for you|dead|gone)\b|\b(?:is|are) (?:done|run|made|handled) (?:by|in)\b"
    r"|\bbelongs? to\b|\b(?:is|are) (?:only )?for humans\b|\bleave [^,;]{2,60} alone\b"
    r"|\bstays? out\b|\b(?:stay|keep) (?:out of|away from)\b|\bcomes? from\b",
    re.IGNORECASE,
)
_DEMAND = pattern(
    r"\b(?:always|only|immer|nur|siempre|s[oó]lo|solamente|toujours|seulement|uniquement|sempre)\b"
    r"|(?<!\w)(?:только|всегда)(?!\w)|必须|只能|一定要|始终|总是|务必",
    re.IGNORECASE,
)
_WITH = pattern(r"\b(?:with|mit|con|avec|com)\b|(?<!\w)с(?!\w)|带|加上?", re.IGNORECASE)
_WITHOUT = pattern(r"\b(?:without|ohne|sin|sans|sem|senza)\b|(?<!\w)без(?!\w)|不带|不加", re.IGNORECASE)
_INSTEAD = pattern(
    r"\b(?:instead of|rather than|in place of|statt|anstatt|anstelle von|en vez de|en lugar de"
    r"|au lieu de|invece di|em vez de)\b|(?<!\w)вместо(?!\w)|而不是",
    re.IGNORECASE,
)
_DEPENDS = pattern(
    r"\b(?:while|when|whenever|if|before|after|until|except|besides|apart from|other than|twice"
    r"|at the same time|more than|less than|wenn|während|bevor|nachdem|außer|bis|falls|cuando|antes"
    r"|después|mientras|excepto|salvo|quand|avant|après|sauf|pendant|outside|everywhere else)\b"
    r"|(?<!\w)(?:если|когда|пока|кроме|перед|после)(?!\w)|如果|除非|除了|之前|之后|的时候|以外",
    re.IGNORECASE,
)
_ALLOWED = pattern(
    r"\b(?:you (?:may|can|could)|feel free|(?:is|are) (?:fine|ok|okay|allowed)|don['’]?t care"
    r"|no need|no matter|kannst|darfst|puedes|tu peux)\b|可以",
    re.IGNORECASE,
)
_ASKING = pattern(
    r"\b(?:unless|without) (?:i|me|my|asking|you ask\w*|being asked|permission|ohne)\b[^,;]*",
    re.IGNORECASE,
)
_READING = pattern(
    r"\b(?:read|reading|look at|lesen|leer|lire|ler)\b|(?<!\w)чита\w+|读|查看", re.IGNORECASE
)
_BY_HAND = pattern(
    r"\b(?:by hand|manually|von hand|a mano|à la main)\b|(?<!\w)вручную(?!\w)|手动", re.IGNORECASE
)
_COMMIT = pattern(
    r"\b(?:commit|committe\w*|check in|einchecken|stage)\b|提交|(?<!\w)коммит\w*", re.IGNORECASE
)
_COMMITS = pattern(r"\bcommits?\b|\bcommit messages?\b|提交信息", re.IGNORECASE)
_PUSH_TO = pattern(
    r"\bpush\w*\s+(?:\w+\s+)?(?:to|on|onto|auf|nach|into|a|sur|vers)\s+(?:origin[ /])?"
    r"(main|master|develop|production|prod|trunk)(?![\w/-])",
    re.IGNORECASE,
)
_FORCED = pattern(r"\bforce[- ]?push\w*\b", re.IGNORECASE)
_AMEND = pattern(r"\bamend(?:ing)?\b", re.IGNORECASE)

_ENDINGS = (
    "json yaml yml toml lock md mdx py ts tsx js jsx mjs rs go rb php cs java kt swift sql prisma proto sh "
    "cfg ini conf xml html css scss ipynb tf tfvars env gradle properties snap csv txt"
)
_KNOWN_ENDINGS = frozenset(_ENDINGS.split())
_NOT_CODE = _KNOWN_ENDINGS | frozenset("com org net io dev app co de ai uk eu".split())
_CODE = pattern(
    r"@[a-z]+(?:-[a-z]+)+|![a-z]{4,}|[A-Za-z_]\w{1,40}(?:\.[A-Za-z_]\w{1,40}){1,3}(?:\(\)?)?"
    r"|[a-z_]\w{2,40}\(\)?|[a-z]+(?:[A-Z][a-z0-9]+){2,}[A-Z]*|TODO|FIXME|XXX"
)
_TRAILER = pattern(r"[A-Z][a-z]+-[A-Z][a-z]+-[A-Z][a-z]+")
_LITERAL = pattern(r"[a-z][\w.-]{1,60}:\d{2,5}|[A-Z][A-Z0-9_]{2,40}=[\w./-]{1,60}")
_WORDS = pattern(r"\b(?:words?|terms?|phrases?|say|spell)\b", re.IGNORECASE)
_IT = pattern(r"\b(?:it|them|this|that|these|those)\b", re.IGNORECASE)
_FETCH = pattern(r"\bweb ?fetch(?:es|ing)?\b", re.IGNORECASE)
_SEARCH = pattern(r"\bweb ?search(?:es)?\b", re.IGNORECASE)
_AGENTS = pattern(r"\bsub-?agents?\b", re.IGNORECASE)
_DOMAIN = pattern(r"(?:[a-z0-9-]{1,40}\.){1,4}(?:com|org|net|io|dev|ai|app|co)")
_POLITE = pattern(r"\W*(?:please|bitte|por favor|s'il vous plaît|пожалуйста|here)?\W*", re.IGNORECASE)
_SHORT = {"--force": "-f", "--recursive": "-r", "--interactive": "-i", "--delete": "-d"}
_ARTICLES = frozenset("the our any all your my der die das den el la los las le les".split())
_ANYWHERE = frozenset(
    "code codebase repo repository project this here place files sources source commits commit general "
    "new diesem este esta este ce".split()
)
_WITHIN = frozenset("in inside into under within unter im en dans em".split())
_FOLDERS = frozenset("src tests test lib app docs api pkg packages services".split())
_TYPES = {
    "css": ["css", "scss", "less"],
    "scss": ["scss"],
    "html": ["html"],
    "sql": ["sql"],
    "typescript": ["ts", "tsx"],
    "javascript": ["js", "jsx", "mjs"],
    "python": ["py"],
    "rust": ["rs"],
    "java": ["java"],
    "ruby": ["rb"],
    "php": ["php"],
    "swift": ["swift"],
    "markdown": ["md", "mdx"],
}
_PROSE = ["*.md", "*.mdx", "*.txt", "*.rst"]


@dataclass(frozen=True, slots=True)
class _Token:
    """A word of a clause, without the marks around it; `quoted` where it was set apart."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class _Named:
    """What a clause names to the letter."""

    commands: tuple[tuple[str, ...], ...] = ()
    flags: tuple[str, ...] = ()  # options that stand alone
    paths: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()  # what a variable of the environment is set to


def compile_sentence(text: str) -> CompiledRule | None:
    """What a rule's own words say of when it applies; None where that is not plain."""
    sentences = list(_cut(text[:MAX_SENTENCE], _SENTENCE))
    for sentence in sentences:
        if _ALLOWED.search(sentence) or _DEPENDS.search(_plain(sentence)):
            continue
        before = ""
        for clause in _cut(sentence, _CLAUSE):
            found = _of_clause(clause, before, sentence)
            if found is not None:
                return _spared(found, sentences)
            before = clause
    return None


def _spared(rule: CompiledRule, sentences: Sequence[str]) -> CompiledRule | None:
    """The rule without the files that another sentence allows; none where it allows anything
    else that the rule may mean."""
    allowed = [_named(one) for one in sentences if _ALLOWED.search(one)]
    if not allowed:
        return rule
    files = [path for one in allowed for path in one.paths]
    if not rule.get("paths") or not files:
        return None if any(one.commands for one in allowed) else rule
    return {**rule, "spared": [*rule.get("spared", []), *map(_pattern, files)]}


def _plain(sentence: str) -> str:
    """A sentence without what it quotes, and without "unless I say so"."""
    return _ASKING.sub(" ", _QUOTED.sub(" ", sentence))


def _cut(text: str, ends: re.Pattern[str]) -> Iterator[str]:
    """The parts of a text; what is quoted ends none."""
    held = [(one.start(), one.end()) for one in _QUOTED.finditer(text)]
    start = 0
    for end in ends.finditer(text):
        if any(first <= end.start() < last for first, last in held):
            continue
        if text[start : end.start()].strip():
            yield text[start : end.start()].strip()
        start = end.end()
    if text[start:].strip():
        yield text[start:].strip()


def _of_clause(clause: str, before: str, sentence: str) -> CompiledRule | None:
    plain = _plain(clause)
    if _INSTEAD.search(plain) and not _NOT.search(plain):
        _, after = _around(clause, _INSTEAD)
        return _forbidden(after, after)
    if _NOT.search(plain):
        if _WITHOUT.search(plain):
            return _lacking(clause, _WITHOUT)
        about = f"{before} {clause}" if _IT.search(plain) and before else clause
        return _forbidden(clause, sentence) or _forbidden(about, sentence) or _spoken(plain)
    if _KEPT.search(plain):
        return _forbidden(clause, sentence)
    if _WITHOUT.search(plain) and not _DEMAND.search(plain):
        return _having(clause)
    if _DEMAND.search(plain) and _WITH.search(plain):
        return _lacking(clause, _WITH)
    return None


# --- what is forbidden


def _forbidden(clause: str, sentence: str) -> CompiledRule | None:
    """Do not do this: a command, a file, words in a file."""
    plain, named = _plain(clause), _named(clause)
    if named.code and _COMMITS.search(plain) and not named.commands:
        return {"commands": [["git", "commit"]], "words": list(named.code)}
    if tools := _tools(plain):
        domains = [one.text for one in _tokens(clause) if _DOMAIN.fullmatch(one.text)]
        rule: CompiledRule = {"tools": tools}
        return {**rule, "words": domains} if domains else rule
    if _elsewhere(clause):
        return None
    if named.commands:
        return None if named.within else _running(named)
    if named.flags:
        return {"has": [[[flag] for flag in named.flags]]}
    if named.settings:
        return {"tools": ["shell"], "words": list(named.settings)}
    if named.code:
        return _written(named)
    return _touching(plain, named, sentence) if named.paths else None


def _elsewhere(clause: str) -> bool:
    """Whether a clause is about a place that a call does not tell: "in the library"."""
    tokens = _tokens(clause)
    for at, token in enumerate(tokens):
        before, text = _before(tokens, at), token.text.lower()
        if before not in _WITHIN or text in _ARTICLES:
            continue
        if text not in _ANYWHERE and not _is_folder(text) and text not in _FOLDERS | set(_TYPES):
            rest = " ".join(one.text for one in tokens[at : at + 4])
            return not any(_is_folder(word) for word in rest.split())
    return False


def _tools(plain: str) -> list[str]:
    """The tools of an agent that a clause names."""
    if _FETCH.search(plain):
        return ["fetch"]
    if _SEARCH.search(plain):
        return ["WebSearch"]
    return ["Task", "Agent"] if _AGENTS.search(plain) else []


def _running(named: _Named) -> CompiledRule:
    """A command, its options in either of their forms."""
    first = named.commands[0]
    options = [word for word in first if word in _SHORT]
    if len(named.commands) > 1 or not options:
        return {"commands": [list(one) for one in named.commands]}
    rest = [word for word in first if word not in _SHORT]
    return {"commands": [rest], "has": [[[one], [_SHORT[one]]] for one in options]}


def _touching(plain: str, named: _Named, sentence: str) -> CompiledRule:
    """A file, written or read as the clause says."""
    if _COMMIT.search(plain) and not _READING.search(plain):
        choices = [[one] for one in named.paths]
        return {"commands": [["git", "add"], ["git", "commit"]], "has": [choices]}
    rule: CompiledRule = {"paths": [_pattern(one) for one in named.paths]}
    if not _READING.search(_plain(sentence)):
        rule["tools"] = ["Edit", "Write"] if _BY_HAND.search(plain) else [WRITE]
    return rule


def _written(named: _Named) -> CompiledRule:
    """Words that must not be written, below a folder or in files of a type where one is named."""
    rule: CompiledRule = {"tools": [WRITE], "words": [_open(one) for one in named.code]}
    if within := [*named.within, *named.paths]:
        rule["paths"] = [_pattern(one if "." in one else f"{one.rstrip('/')}/") for one in within]
    if named.types:
        rule["types"] = list(named.types)
    elif not within:
        rule["spared"] = list(_PROSE)
    return rule


def _open(code: str) -> str:
    """A call is known by its opening parenthesis."""
    return code.removesuffix(")")


def _pattern(path: str) -> str:
    path = path.removeprefix("./")
    if path.endswith("/"):
        return path + "**" if "/" in path[:-1] else f"{path}**"
    if "/" not in path:
        return path if path.startswith("*") else f"**/{path}"
    return path


def _spoken(plain: str) -> CompiledRule | None:
    """Things that people do with git and call by no command."""
    if found := _PUSH_TO.search(plain):
        branch = found[1].lower()
        return {"commands": [["git", "push"]], "has": [[[branch], [f"*:{branch}"]]]}
    if _FORCED.search(plain):
        return {"commands": [["git", "push"]], "has": [[["--force"], ["-f"]]]}
    if _AMEND.search(plain) and _COMMITS.search(plain):
        return {"commands": [["git", "commit"]], "has": [[["--amend"]]]}
    return None


# --- what is demanded of a command


def _lacking(clause: str, mark: re.Pattern[str]) -> CompiledRule | None:
    """A command that needs an option: `docker run` only with `--rm`."""
    before, after = _around(clause, mark)
    done, flags = _named(before), _named(after).flags
    if len(done.commands) != 1 or not flags or done.flags:
        return None
    value = _value_behind(after, flags[0])
    needed = [[flags[0], value] if value else [flags[0]]]
    return {"commands": [list(done.commands[0])], "lacks": [needed]}


def _having(clause: str) -> CompiledRule | None:
    """A command that must do without an option: `eslint` without `--fix`."""
    before, after = _around(clause, _WITHOUT)
    done, flags = _named(before), _named(after).flags
    rest = after.partition(flags[0])[2] if flags else ""
    if len(done.commands) != 1 or len(flags) != 1 or not _POLITE.fullmatch(rest.strip("`\"'")):
        return None
    return {"commands": [list(done.commands[0])], "has": [[[flags[0]]]]}


def _around(clause: str, mark: re.Pattern[str]) -> tuple[str, str]:
    held = [(one.start(), one.end()) for one in _QUOTED.finditer(clause)]
    for found in mark.finditer(clause):
        if not any(first <= found.start() < last for first, last in held):
            return clause[: found.start()], clause[found.end() :]
    return clause, ""


def _value_behind(text: str, flag: str) -> str:
    """The one word behind an option that can only be its value."""
    words = [token.text for token in _tokens(text)]
    if flag not in words or "=" in flag:
        return ""
    behind = words[words.index(flag) + 1 :]
    return behind[0] if len(behind) == 1 and not behind[0].isalpha() else ""


# --- what is named


def _tokens(clause: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    for quoted in _QUOTED.finditer(clause):
        found += [_Token(bare) for word in clause[at : quoted.start()].split() if (bare := _bare(word))]
        found.append(_Token(next(filter(None, quoted.groups())), quoted=True))
        at = quoted.end()
    found += [_Token(bare) for word in clause[at:].split() if (bare := _bare(word))]
    return found


def _bare(word: str) -> str:
    """A word without marks before and behind it, and without letters of other scripts glued on."""
    ascii_ = "".join(sign if sign.isascii() else " " for sign in word).split()
    if not word.isascii() and ascii_ and any(ord(sign) >= 0x2E80 for sign in word):
        word = max(ascii_, key=len)
    word = word.lstrip("([{\"'“„«‘").rstrip(".,;:!?\"'”»’]}")
    return word.rstrip(")") if "(" not in word else word


def _named(clause: str) -> _Named:
    tokens = _tokens(clause)
    found: dict[str, list[str]] = {}
    lines: list[tuple[str, ...]] = []
    words = _WORDS.search(_plain(clause)) is not None
    at = 0
    while at < len(tokens):
        line, used = _command(tokens, at)
        if line:
            lines.append(line)
            at += used
            continue
        kind, texts = _kind(tokens[at], _before(tokens, at), words=words)
        found.setdefault(kind, []).extend(texts)
        at += 1
    kept = {kind: tuple(texts) for kind, texts in found.items() if kind}
    return _Named(tuple(lines), **kept)


def _before(tokens: Sequence[_Token], at: int) -> str:
    """The word before a token, articles passed over."""
    words = (one.text.lower() for one in reversed(tokens[:at]) if one.text.lower() not in _ARTICLES)
    return next(words, "")


def _kind(token: _Token, before: str, *, words: bool) -> tuple[str, list[str]]:
    """What a token names: under which name of `_Named`, in which form."""
    text = token.text
    if before in _WITHIN and (text in _FOLDERS or _is_folder(text)):
        return "within", [text if text.endswith("/") else f"{text}/"]
    if before in _WITHIN and text.lower() in _TYPES:
        return "types", _TYPES[text.lower()]
    if is_option(text) and text.strip("-")[:1].isalpha():
        return "flags", [text]
    if _LITERAL.fullmatch(text):
        return "settings" if "=" in text else "code", [text]
    if _is_path(text):
        return "paths", [text]
    if (token.quoted and words and text.isalpha()) or _is_code(token):
        return "code", [text]
    return "", []


def _is_folder(text: str) -> bool:
    return "/" in text.strip("/") or text.endswith("/")


def _is_path(text: str) -> bool:
    if "://" in text or text.count("/") > 12 or not text.isascii() or " " in text:
        return False
    if any(sign in text for sign in "()<>|$\\=#;"):
        return False
    name = text.rstrip("/").rpartition("/")[2]
    if "/" in text.rstrip("/"):
        first = text.partition("/")[0]
        dotted = "." in text or "*" in text or text.endswith("/") or "_" in text or "-" in text
        return text.count("/") > 1 or dotted or first in _FOLDERS or first.startswith(".") or _low(text)
    if text.endswith("/"):
        return len(text) > 2
    stem, dot, ending = name.rpartition(".")
    if not dot or not ending:
        return False
    if name.startswith(".") and name.count(".") == 1:
        return name == ".env" or len(name) > 4
    return ending.lower() in _KNOWN_ENDINGS and bool(stem.strip("*.")) or name.startswith("*.")


def _low(text: str) -> bool:
    """Two words in small letters with a slash: a path more often than "and/or"."""
    return text not in ("and/or", "read/write", "yes/no", "on/off", "client/server", "input/output")


def _is_code(token: _Token) -> bool:
    text = token.text
    if _TRAILER.fullmatch(text):
        return True
    if token.quoted and 3 <= len(text) <= 60 and text.isascii() and not text[0].isdigit():
        return not text.isalpha() and " " not in text
    return bool(_CODE.fullmatch(text)) and text.rstrip("()").rpartition(".")[2].lower() not in _NOT_CODE


def _command(tokens: Sequence[_Token], at: int) -> tuple[tuple[str, ...], int]:
    """A command that begins at a token, and how many tokens it takes."""
    token = tokens[at]
    if token.quoted:
        words = _words(token.text)
        is_one = len(words) > 1 or token.text in PROGRAMS - SPOKEN
        known = bool(words) and (words[0] in PROGRAMS or "/" in words[0] or len(words) > 1)
        runs = known and is_one and words[0].isascii() and _is_program(words[0])
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


def _is_program(word: str) -> bool:
    return word in PROGRAMS or (word[0].isalpha() and word.islower()) or word.startswith("./")


def _is_argument(word: str) -> bool:
    """A word that only a command has: a number, or with a colon inside."""
    return word.isdigit() or (":" in word.strip(":") and "//" not in word) or word == "777"


def _words(text: str) -> list[str]:
    found = commands(text)
    return list(found[0].views[0]) if len(found) == 1 else []


def _inner(words: Sequence[str]) -> tuple[str, ...]:
    """The command without the program that only runs it."""
    named = [w for w in words[1:] if not is_option(w)]
    if words[0] in _RUNNERS and named:
        return tuple(words[words.index(named[0]) :])
    return tuple(words)
