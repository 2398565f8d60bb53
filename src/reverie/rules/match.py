"""Whether a call breaks a rule, looked at on the parsed call; and what the model is then shown.

A rule holds for a call where one thing that the call does has everything the rule names: the tool,
the command with and without certain words, a path, words that are written anew. No model, no
regular expression, no clock. A leaf: a hook loads it and its neighbours, and no other module.
"""

from __future__ import annotations

from reverie.rules.calls import OTHER, ROLES, SHELL, WRITE, CallAction, ParsedCall, in_full, role_of
from reverie.text import glob
from reverie.text.shell_commands import is_option, name_of

TYPE_CHECKING = False  # as `typing` has it, without importing it

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypedDict

if TYPE_CHECKING:

    class CompiledRule(TypedDict, total=False):
        """A rule as it is kept beside the memories, and as a hook reads it."""

        file: str
        name: str
        level: str
        text: str
        source: str  # whose it is: user, team, unverified
        said: int  # how often it was said
        read: str  # where its conditions come from: head, sentence
        tools: list[str]
        commands: list[list[str]]
        has: list[list[list[str]]]  # all of these, each by one of its choices
        lacks: list[list[list[str]]]  # one of these is missing
        unless: list[list[str]]  # commands that break nothing
        paths: list[str]
        spared: list[str]
        types: list[str]
        words: list[str]

    class FinalCalls(TypedDict, total=False):
        """Calls that cannot be taken back (`data/irrevocable.tsv`)."""

        commands: list[list[str]]
        tools: list[str]

else:
    CompiledRule = FinalCalls = dict

OFF, REMIND, ASK, BLOCK = LEVELS = ("off", "remind", "ask", "block")
EVERY = "*"
_KINDS = {"bash": SHELL, "edit": WRITE, "fetch": "web", "task": "agent", "any": EVERY}
"""Words by which people name a kind of tool, beside those of `ROLES`."""
_BY_NAME = frozenset({"read", "write", "edit", "multiedit", "notebookedit", "grep", "glob"})

_INFORMS = frozenset({"--version", "--help", "-V", "-h", "help", "version"})
_SEARCHES = frozenset("grep egrep fgrep zgrep rg ag ack man which whereis type whatis".split())  # noqa: SIM905
_PRINTS = frozenset(
    "echo printf test [ [[ cat less more head tail wc sort uniq cut tr diff cmp jq yq ugrep "  # noqa: SIM905
    "find fd fzf locate ls tree apropos info tldr say figlet alias read".split()
)
_GIT_TEXT = frozenset("log show grep blame diff shortlog reflog whatchanged".split())  # noqa: SIM905
"""Programs and what git does that take words as text: an option among them is nobody's."""


# --- one rule on one call


def breaks(rule: CompiledRule, call: ParsedCall) -> bool:
    """Whether the call does what the rule speaks of."""
    tools = rule.get("tools", ())
    if tools and not any(_is_for(tool, call) for tool in tools):
        return False
    writing = bool(tools) and all(kind_of(tool) == WRITE for tool in tools)
    return any(_holds(rule, act, call, writing) for act in call.acts)


def kind_of(tool: str) -> str:
    """The kind of tool that a rule means: `write` is every way to write; a name is that tool."""
    kind = tool if tool in ROLES else _KINDS.get(tool, "")
    return kind or (SHELL if tool == "Bash" else role_of(tool))


def _is_for(tool: str, call: ParsedCall) -> bool:
    """Whether a call is of this tool. What a shell line writes and reads counts as writing and
    reading, where a rule names the kind and not a tool."""
    own, wanted = call.tool.lower(), tool.lower()
    if wanted == own or ("*" in wanted and glob.star(wanted, own)):
        return True
    kind = kind_of(tool)
    if tool in ROLES or tool in _KINDS or kind == SHELL:
        return kind in (call.role, EVERY) or (call.role == SHELL and kind in (WRITE, "read"))
    return kind == call.role != OTHER and own not in _BY_NAME  # another client's name for it


def _holds(rule: CompiledRule, act: CallAction, call: ParsedCall, writing: bool) -> bool:
    if writing and call.role == SHELL and not act.written:
        return False
    on_command = rule.get("commands") or rule.get("has") or rule.get("lacks")
    if on_command and (not _runs(rule, act) or call.place.is_elsewhere(act.cwd)):
        return False
    named = rule.get("paths") or rule.get("spared") or rule.get("types")
    if named and not _touches(rule, act, call, writing):
        return False
    words = rule.get("words", ())
    if (
        words
        and not on_command
        and any(name_of(view[0]) in _SEARCHES for view in act.views if view)
    ):
        return False  # what is looked for is not written
    return not words or any(says(act.text, w) and not says(act.before, w) for w in words)


def _touches(rule: CompiledRule, act: CallAction, call: ParsedCall, writing: bool) -> bool:
    """Whether a path is meant; where only some are spared, also where a command runs counts."""
    root, user = call.place.root, call.place.user
    wanted, spared, types = rule.get("paths"), rule.get("spared", ()), rule.get("types")
    there = list(act.written if writing else act.paths)
    if not wanted and not types and call.role == SHELL and not writing:
        there = [act.cwd]
    for path in there:
        meant = not wanted or any(glob.fits(one, path, root, user) for one in wanted)
        typed = not types or path.rpartition(".")[2].lower() in types
        named = meant and typed and not any(glob.fits(one, path, root, user) for one in spared)
        anywhere = any(one[:1] in "/~" for one in wanted or ())
        if named and (anywhere or not call.place.is_elsewhere(path)):
            return True
    return False


def _runs(rule: CompiledRule, act: CallAction) -> bool:
    """Whether one way to read the command is one of those wanted, with and without its words."""
    commands = rule.get("commands", ())
    if any(is_command(one, view) for one in rule.get("unless", ()) for view in act.views if view):
        return False
    for view in act.views:
        if not view or (commands and not any(is_command(one, view) for one in commands)):
            continue
        if not commands and _is_text(view):
            continue
        words = view[1:] if commands else view
        asked = set(words) & _INFORMS
        if asked and asked.issuperset(view[1:]) and not asked & _words_in(rule):
            continue  # `pytest --version` runs no tests
        if not all(_any_of(words, one) for one in rule.get("has", ())):
            continue
        lacks = rule.get("lacks", ())
        if lacks and all(_any_of(words, one) for one in lacks):
            continue
        return True
    return False


def _is_text(view: Sequence[str]) -> bool:
    """Whether a command prints or searches what it is given, and does nothing by it."""
    name = name_of(view[0])
    git = name == "git" and any(is_command(["git", one], view) for one in _GIT_TEXT)
    return git or name in _SEARCHES or name in _PRINTS


def _words_in(rule: CompiledRule) -> set[str]:
    """Every word that a rule's command and its options have."""
    lines = [*rule.get("commands", ()), *(one for group in rule.get("has", ()) for one in group)]
    return {word for line in lines for word in line}


def is_irrevocable(call: ParsedCall, final: FinalCalls) -> bool:
    """Whether a call cannot be taken back: one that commits, publishes, deletes or sends."""
    views = [view for act in call.acts for view in act.views if view]
    return any(is_command(one, view) for one in final.get("commands", ()) for view in views) or (
        call.role == OTHER
        and any(glob.star(one, call.tool.lower()) for one in final.get("tools", ()))
    )


def is_command(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a command is the one wanted: its program, then its first words in this order;
    options of either may stand between, and those wanted must be there."""
    if not is_program(wanted[0], words[0]):
        return False
    program = name_of(words[0])
    wanted, words = in_full(program, wanted), in_full(program, words)
    options = [word for word in wanted[1:] if is_option(word)]
    if not all(has_option(words[1:], one) for one in options):
        return False
    at, valued = 1, False
    for word in wanted[1:]:
        if is_option(word):
            continue
        while at < len(words) and not glob.star(word, words[at]):
            if not is_option(words[at]) and not valued:
                return False
            valued = is_option(words[at]) and "=" not in words[at]
            at += 1
        if at >= len(words):
            return False
        at, valued = at + 1, False
    return True


def is_program(wanted: str, word: str) -> bool:
    """By its name; a wanted path must be how the word ends."""
    if "/" in wanted:
        names, there = glob.names_of(wanted), glob.names_of(word)
        return there[-len(names) :] == names
    return glob.star(wanted, name_of(word))


def _any_of(words: Sequence[str], choices: Iterable[Sequence[str]]) -> bool:
    return any(has_words(words, one) for one in choices)


def has_words(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether all these words are there; an option also with its value behind `=`, or glued on."""
    if len(wanted) == 2 and "".join(wanted) in words:
        return True
    return all(has_option(words, w) if is_option(w) else _has_word(words, w) for w in wanted)


def _has_word(words: Sequence[str], wanted: str) -> bool:
    if any(glob.star(wanted, one) for word in words for one in (word, word.removeprefix("+"))):
        return True
    if any(word.rpartition(":")[2].removeprefix("refs/heads/") == wanted for word in words):
        return True  # where `HEAD:main` goes
    if "/" not in wanted and any(glob.star(wanted, name_of(w)) for w in words if "/" in w):
        return any(sign in wanted for sign in "*.")  # a file's name, wherever it lies
    return any(word.partition("=")[2] == wanted for word in words)


def has_option(words: Sequence[str], wanted: str) -> bool:
    """Whether an option is given: alone, with its value, or, a letter, among others."""
    words = words[: words.index("--")] if "--" in words else words
    start = wanted + "="
    if any(word == wanted or word.startswith(start) or glob.star(wanted, word) for word in words):
        return True
    if wanted.startswith("--") or not wanted[1:].isalpha() or len(wanted) > 4:
        return False
    letters: set[str] = set()
    for word in words:
        if word.startswith("-") and not word.startswith("--") and len(word) <= 6:
            letters.update(word[1:])
    return letters.issuperset(wanted[1:])


def says(text: str, word: str) -> bool:
    """Whether a text has a word or phrase, whole. A phrase counts in any case, and so does a word
    in small letters; a name as code has it must stand as it is."""
    if not word or not text:
        return False
    if word.islower() or " " in word or "-" in word:
        text, word = text.lower(), word.lower()
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        before, after = text[at - 1 : at] if at else "", text[end : end + 1]
        if not (_joins(word[0]) and _joins(before)) and not (_joins(word[-1]) and _joins(after)):
            return True
        at = text.find(word, at + 1)
    return False


def _joins(sign: str) -> bool:
    return bool(sign) and (sign.isalnum() or sign == "_") and ord(sign) < 0x3000


# --- What the model is shown of a rule: the user's own words, whose they are, and what to do now.
#
# In place of the result of a call that was held, or beside the result of one that had left
# already. A leaf: hooks and proxies use it too.


USER, TEAMS, UNVERIFIED = "user", "team", "unverified"
_HELD = "Not run yet: this call goes against a rule from memory."
_BLOCKED = "Not run: a rule of the user's forbids this call."
WAITS = (
    "Not run: a call before it in this answer was held by a rule. Make it again where it is still "
    "wanted."
)
_AFTER = (
    "This call goes against a rule from memory, and was not held back. If it ran, put right what "
    "it did where that matters. Keep to the rule from here on."
)
_AGAIN = (
    "Do the work in a way that keeps to the rule. Only where it clearly does not fit here, make "
    "the same call again: it will run."
)
_NO = "Repeating the call will not help. Keep to the rule, or ask the user."
_ASKS = "A rule says to ask before this call."
_WHOSE = {
    USER: "The user's rule",
    TEAMS: "A rule from the team's memory, which the user has not confirmed",
    UNVERIFIED: "A rule that nobody has confirmed",
}


def rules_text(rules: Sequence[CompiledRule], *, ran: bool = False, asks: bool = False) -> str:
    """The text for the model; `ran` where the call could not be held, `asks` for the person who
    is asked."""
    forbids = any(rule.get("level") in (BLOCK, ASK) for rule in rules)
    quotes = [quote_rule(rule) for rule in rules]
    if asks:
        return "\n\n".join([_ASKS, *quotes])
    if ran:
        return "\n\n".join([_AFTER, *quotes])
    return "\n\n".join([_BLOCKED if forbids else _HELD, *quotes, _NO if forbids else _AGAIN])


def quote_rule(rule: CompiledRule) -> str:
    """A rule as the user's words; one of another's as what it is."""
    whose = _WHOSE.get(rule.get("source", USER), _WHOSE[UNVERIFIED])
    said = rule.get("said", 1)
    often = f", said {said} times" if said > 1 else ""
    text = "\n".join(f"> {row}" for row in rule.get("text", "").split("\n"))
    return f"{whose} ({rule.get('file', '')}{often}):\n{text}"
