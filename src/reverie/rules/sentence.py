"""When a rule applies, read from its sentence: only where it names something literal.

"Never git push --force", "docker run only with --rm", "legacy/ is generated", "no console.log in
app/": a command, a path or a name as code has it, in a clause that forbids or demands. What is
forbidden must stand there to the letter, and every word between it and the word that forbids must
be known: "don't forget git push" forbids nothing. A clause that depends on something else ("while
on main", "to staging") is left alone, and so is all that only advises. In doubt, nothing: the rule
is still in the memory for the model to read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reverie.rules import demands
from reverie.rules.calls import WRITE
from reverie.rules.demands import FILLERS, TAIL
from reverie.rules.literals import (
    CODE,
    COMMAND,
    FLAG,
    FOLDER,
    FORBIDS,
    NAMED,
    PATH,
    SETTING,
    TYPE,
    RuleWord,
    pieces,
)
from reverie.rules.match import CompiledRule

MAX_SENTENCE = 600
_SHORT = {"--force": "-f", "--recursive": "-r", "--interactive": "-i", "--delete": "-d"}
_PROSE = ["*.md", "*.mdx", "*.txt", "*.rst"]
_BETWEEN = {
    COMMAND: demands.RUNNING,
    FLAG: demands.RUNNING | demands.WRITING,
    PATH: demands.TOUCHING,
    CODE: demands.WRITING,
    SETTING: demands.RUNNING | demands.WRITING,
}


def compile_sentence(text: str) -> CompiledRule | None:
    """What a rule's own words say of when it applies; None where that is not plain."""
    sentences = list(_cut(text[:MAX_SENTENCE], demands.SENTENCE_END))
    for sentence in sentences:
        plain = _plain(sentence)
        if demands.ALLOWED.search(sentence) or demands.DEPENDS.search(plain):
            continue
        before = ""
        for clause in _cut(sentence, demands.CLAUSE_END):
            found = _of_clause(clause, before, sentence)
            if found is not None:
                return _spare_allowed(found, sentences)
            before = clause
    return None


def _plain(sentence: str) -> str:
    """A sentence without what it quotes, and without "unless I say so"."""
    return demands.ASKING.sub(" ", demands.QUOTED.sub(" ", sentence))


def _cut(text: str, ends: re.Pattern[str]) -> Iterator[str]:
    """The parts of a text; what is quoted ends none."""
    held = [(one.start(), one.end()) for one in demands.QUOTED.finditer(text)]
    start = 0
    for end in ends.finditer(text):
        if any(first <= end.start() < last for first, last in held):
            continue
        if text[start : end.start()].strip():
            yield text[start : end.start()].strip()
        start = end.end()
    if text[start:].strip():
        yield text[start:].strip()


def _spare_allowed(rule: CompiledRule, sentences: Sequence[str]) -> CompiledRule | None:
    """The rule without the files that another sentence allows; none where something else is
    allowed that the rule may mean."""
    allowed = [piece for one in sentences if demands.ALLOWED.search(one) for piece in pieces(one)]
    files = [one.text for one in allowed if one.kind in (PATH, FOLDER)]
    if any(one.kind in (COMMAND, FLAG, CODE) for one in allowed):
        return None
    if not files:
        return rule
    return {**rule, "spared": [*rule.get("spared", []), *map(_pattern, files)]}


def _of_clause(clause: str, before: str, sentence: str) -> CompiledRule | None:
    clause = demands.OUT_OF.sub("never in", demands.ASKING.sub(" ", clause))
    plain = _plain(clause)
    words = demands.WORDS.search(plain) is not None
    found = pieces(demands.BY_HAND.sub(" ", clause), words=words)
    forbids = any(one.kind == FORBIDS for one in found)
    if demands.INSTEAD.search(plain) and not forbids:
        after = pieces(_around(clause, demands.INSTEAD)[1])
        return _rule(_objects(after, -1), after, clause, sentence)
    kept = demands.KEPT.search(clause)
    if kept:
        about = pieces(clause[: kept.start()])
        return _rule(_objects(about, len(about), behind=False), about, clause, sentence)
    if forbids and demands.WITHOUT.search(plain):
        return _lacking(clause, demands.WITHOUT)
    if forbids:
        return _forbidden(found, before, clause, sentence) or _git_rule(plain)
    if demands.LEFT.search(plain):
        about = pieces(demands.LEFT.sub(" ", clause))
        return _rule(_objects(about, -1), about, clause, sentence)
    if demands.WITHOUT.search(plain) and not demands.DEMAND.search(plain):
        return _having(clause)
    mark = next((one for one in (demands.WITH, demands.NEEDS) if one.search(plain)), None)
    return mark and (_lacking(clause, mark) or _lacking(clause, mark, turned=True))


# --- what is forbidden


def _forbidden(
    found: list[RuleWord], before: str, clause: str, sentence: str
) -> CompiledRule | None:
    at = next(n for n, one in enumerate(found) if one.kind == FORBIDS)
    subject = found[at - 1].text.lower() if at else ""
    if subject not in demands.SUBJECTS:
        ordered = sentence.split(None, 1)[0].lower() in demands.IMPERATIVES
        objects = _objects(found, at, ordered=ordered) or _folders(found, at)
        if objects:
            return _rule(objects, found, clause, sentence)
    if not _bans(found, at):
        return None if _tools(clause) == [] else _rule((), found, clause, sentence)
    objects = _objects(found, at, behind=False)
    if not objects and before and (demands.IT.search(clause) or _only_verbs(found, at)):
        topic = pieces(before)
        objects = _objects(topic, len(topic), behind=False)
        found = topic + found
    return _rule(objects, found, clause, sentence)


def _bans(found: Sequence[RuleWord], at: int) -> bool:
    """Whether the word that forbids says of what stands before it that it must not be: "is not
    allowed", "never", and not "is not installed"."""
    if found[at].text.lower() not in demands.TELLING:
        return True
    behind = found[at + 1].text.lower() if at + 1 < len(found) else ""
    return behind in demands.BANNED | demands.RUNNING | demands.TOUCHING


def _only_verbs(found: Sequence[RuleWord], at: int) -> bool:
    known = demands.RUNNING | demands.TOUCHING | FILLERS
    return all(one.text.lower() in known for one in found[at + 1 :])


def _folders(found: Sequence[RuleWord], at: int) -> list[RuleWord]:
    """Folders of which a clause says that nothing in them is touched."""
    rest = found[at + 1 :]
    texts = {one.text.lower() for one in rest if one.kind != FOLDER}
    known = demands.TOUCHING | demands.ANY | demands.WITHIN | FILLERS
    plain = texts & demands.ANY and texts & demands.TOUCHING and texts <= known
    return [RuleWord(one.text, PATH) for one in rest if one.kind == FOLDER] if plain else []


def _objects(
    found: Sequence[RuleWord], at: int, *, behind: bool = True, ordered: bool = False
) -> list[RuleWord]:
    """What is forbidden: the first things named behind the word that forbids, or before it; none
    where an unknown word stands between, or says more about it."""
    part = list(found[at + 1 :] if behind else found[:at])
    start = next((n for n, one in enumerate(part) if one.kind in NAMED), None)
    if start is None:
        return []
    if not all(_may_lead(one, part[start].kind) for one in part[:start]):
        return []
    if (
        behind
        and at >= 0
        and not ordered
        and not _is_ordered(found[at].text.lower(), part[:start], part[start:])
    ):
        return []
    objects: list[RuleWord] = []
    for one in part[start:]:
        if one.kind == part[start].kind:
            objects.append(one)
        elif one.text.lower() not in demands.JOINING:
            break
    tail = part[start + len(objects) :]
    tail = [one for one in tail if one.text.lower() not in demands.JOINING]
    tail = tail if behind else [*tail, *found[at + 1 :]]
    return objects if _says_no_more(tail) else []


def _is_ordered(forbids: str, lead: Sequence[RuleWord], rest: Sequence[RuleWord]) -> bool:
    """Whether something is to be done to what is named, and not only said of it: "not in
    settings.py" tells where something is."""
    if rest[0].kind in (COMMAND, FLAG, SETTING) or forbids in demands.HANDS_OFF:
        return True
    if demands.NOT_DENSE.search(forbids):
        return len(forbids) > 2  # its verb is part of it
    verbs = _BETWEEN[rest[0].kind] - demands.JOINING - demands.WITHIN
    texts = {one.text.lower() for one in lead}
    if rest[0].kind == PATH:
        texts |= {one.text.lower() for one in rest[1:3]}
    elif forbids != "not":
        return True
    return bool(texts & verbs)


def _may_lead(one: RuleWord, kind: str) -> bool:
    text = one.text.lower()
    if one.kind in (FOLDER, TYPE, FORBIDS):
        return True
    return text in FILLERS or text in _BETWEEN[kind] or text in demands.WITHIN


def _says_no_more(tail: Sequence[RuleWord]) -> bool:
    """Whether what follows leaves open nothing that a call would have to tell."""
    for at, one in enumerate(tail):
        text = one.text.lower()
        if one.kind in (FOLDER, TYPE, FORBIDS):
            continue
        if text in demands.WITHIN:
            rest = [piece.text.lower() for piece in tail[at + 1 : at + 4]]
            kinds = {piece.kind for piece in tail[at + 1 : at + 4]}
            known = demands.ANYWHERE | demands.FROM_HERE
            if not kinds & {FOLDER, TYPE, PATH} and not any(word in known for word in rest):
                return False
            continue
        if text in demands.LEADING:
            return False
        if at == 0 and text not in TAIL and one.kind not in NAMED:
            return False
    return True


def _rule(
    objects: Sequence[RuleWord], found: Sequence[RuleWord], clause: str, sentence: str
) -> CompiledRule | None:
    """A rule that forbids these."""
    plain = _plain(clause)
    if tools := _tools(plain):
        domains = [one.text for one in found if demands.DOMAIN.fullmatch(one.text)]
        rule: CompiledRule = {"tools": tools}
        return {**rule, "words": domains} if domains else rule
    if not objects:
        return None
    kind, texts = objects[0].kind, [one.text for one in objects]
    if kind == COMMAND:
        return None if any(one.kind == FOLDER for one in found) else _running(objects)
    if kind == FLAG:  # a letter means something else in every program
        long = all(len(text) > 3 for text in texts)
        return {"has": [[[text] for text in texts]]} if long else None
    if kind == SETTING:
        return {"tools": ["shell"], "words": texts}
    if kind == PATH:
        return _touching(texts, plain, sentence)
    if demands.COMMITS.search(plain):
        return {"commands": [["git", "commit"]], "words": texts}
    return _writing_rule(texts, found)


def _tools(plain: str) -> list[str]:
    """The tools of an agent that a clause names."""
    if demands.FETCH.search(plain):
        return ["fetch"]
    if demands.SEARCH.search(plain):
        return ["WebSearch"]
    if named := demands.AGENT_TOOL.search(plain):
        return [next(filter(None, named.groups()))]
    return ["Task", "Agent"] if demands.AGENTS.search(plain) else []


def _running(objects: Sequence[RuleWord]) -> CompiledRule:
    """Commands, an option of the only one in either of its forms."""
    first = objects[0].words
    options = [word for word in first if word in _SHORT]
    if len(objects) > 1 or not options:
        return {"commands": [list(one.words) for one in objects]}
    rest = [word for word in first if word not in _SHORT]
    return {"commands": [rest], "has": [[[one], [_SHORT[one]]] for one in options]}


def _touching(files: Sequence[str], plain: str, sentence: str) -> CompiledRule:
    """Files, written or read as the clause says."""
    if demands.COMMIT.search(plain) and not demands.READING.search(plain):
        choices = [[form] for one in files for form in _forms(one)]
        return {"commands": [["git", "add"], ["git", "commit"]], "has": [choices]}
    rule: CompiledRule = {"paths": [_pattern(one) for one in files]}
    if ".env" in files and " files" in plain:
        rule["paths"].append("**/.env.*")
        rule["spared"] = [f"**/.env.{one}" for one in ("example", "sample", "template")]
    if not demands.READING.search(_plain(sentence)):
        rule["tools"] = ["Edit", "Write"] if demands.BY_HAND.search(plain) else [WRITE]
    return rule


def _forms(path: str) -> list[str]:
    """A file or folder as it may stand among the words of a command."""
    bare = path.rstrip("/")
    return [bare] if bare == path else [bare, path, f"{bare}/*", f"*/{bare}/*"]


def _writing_rule(words: Sequence[str], found: Sequence[RuleWord]) -> CompiledRule:
    """Words that must not be written, below a folder or in files of a type where one is named."""
    rule: CompiledRule = {"tools": [WRITE], "words": [_as_written(one) for one in words]}
    folders = [one.text for one in found if one.kind in (FOLDER, PATH)]
    types = [
        ending for one in found if one.kind == TYPE for ending in demands.TYPES[one.text.lower()]
    ]
    if folders:
        rule["paths"] = [_pattern(one if "." in one else f"{one.rstrip('/')}/") for one in folders]
    if types:
        rule["types"] = types
    if not folders and not types:
        rule["spared"] = list(_PROSE)
    return rule


def _as_written(code: str) -> str:
    """A call by its opening parenthesis, and one of several marks by itself."""
    return (
        code.removesuffix("s") if code.isupper() or code[:-1].isupper() else code.removesuffix(")")
    )


def _pattern(path: str) -> str:
    path = path.removeprefix("./")
    if path.endswith("/"):
        return f"{path}**"
    return path if "/" in path or path.startswith("*") else f"**/{path}"


def _git_rule(plain: str) -> CompiledRule | None:
    """Things that people do with git and call by no command."""
    if demands.CO_AUTHOR.search(plain):
        return {"commands": [["git", "commit"]], "words": ["Co-Authored-By"]}
    if found := demands.PUSH_TO.search(plain):
        branch = found[1].lower()
        return {"commands": [["git", "push"]], "has": [[[branch], [f"*:{branch}"]]]}
    if demands.FORCED.search(plain):
        return {"commands": [["git", "push"]], "has": [[["--force"], ["-f"]]]}
    if found := demands.BARE_GIT.fullmatch(plain):
        return {"commands": [["git", found[1].lower()]]}
    if demands.AMEND.fullmatch(plain):
        return {"commands": [["git", "commit"]], "has": [[["--amend"]]]}
    return None


# --- what is demanded of a command


def _lacking(clause: str, mark: re.Pattern[str], *, turned: bool = False) -> CompiledRule | None:
    """A command that needs an option: `docker run` only with `--rm`; `turned`, the option first."""
    parts = _around(clause, mark)
    before, after = (pieces(part) for part in (reversed(parts) if turned else parts))
    done = [one for one in before if one.kind in NAMED]
    flags = [n for n, one in enumerate(after) if one.kind == FLAG]
    if [one.kind for one in done] != [COMMAND] or not flags or not _only(before):
        return None
    behind = [one.text for one in after[flags[0] + 1 :] if not demands.POLITE.fullmatch(one.text)]
    flag = after[flags[0]].text
    needed = [flag, behind[0]] if len(behind) == 1 and "=" not in flag else [flag]
    return {"commands": [list(done[0].words)], "lacks": [[needed]]}


def _only(before: Sequence[RuleWord]) -> bool:
    """Whether a clause says of its command nothing but that it is run."""
    known = FILLERS | demands.RUNNING | demands.NOT | TAIL
    return all(
        one.kind in (COMMAND, FORBIDS)
        or one.text.lower() in known
        or demands.DEMAND.search(one.text)
        for one in before
    )


def _having(clause: str) -> CompiledRule | None:
    """A command that must do without an option: `eslint` without `--fix`."""
    before, after = (pieces(part, words=True) for part in _around(clause, demands.WITHOUT))
    done = [one for one in before if one.kind in NAMED]
    if (
        not done
        and demands.COMMITS.search(clause)
        and (code := [o.text for o in after if o.kind == CODE])
    ):
        return {"commands": [["git", "commit"]], "words": code}
    flags = [one.text for one in after if one.kind == FLAG]
    rest = [one.text for one in after if one.kind != FLAG]
    if [one.kind for one in done] != [COMMAND] or len(flags) != 1 or not _only(before):
        return None
    if not all(demands.POLITE.fullmatch(text) for text in rest):
        return None
    return {"commands": [list(done[0].words)], "has": [[[flags[0]]]]}


def _around(clause: str, mark: re.Pattern[str]) -> tuple[str, str]:
    held = [(one.start(), one.end()) for one in demands.QUOTED.finditer(clause)]
    for found in mark.finditer(clause):
        if not any(first <= found.start() < last for first, last in held):
            return clause[: found.start()], clause[found.end() :]
    return clause, ""
