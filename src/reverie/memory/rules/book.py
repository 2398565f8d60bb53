"""All rules of a project in one book: read from memory files, looked up by call.

    book = RuleBook.of([("feedback_push.md", data), …])
    for rule in book.look("Bash", {"command": "git push -f"}, cwd=cwd, root=root): …

Whoever sits where calls pass (a loop, a hook, a proxy) asks `look` which rules a call would break,
and `told` for the text that the model is shown. Pure; nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from reverie.memory.format.entry import TEAM, TopicFile
from reverie.memory.rules import reading
from reverie.memory.rules.calls import Place, parse
from reverie.memory.rules.match import ASK, BLOCK, OFF, REMIND, CompiledRule, index_of, matched
from reverie.memory.rules.sentence import compile_sentence

MAX_TEXT = 2_000
USER, TEAMS, UNVERIFIED = "user", "team", "unverified"


class RuleBook:
    """Compiled rules and their index."""

    def __init__(self, rules: Sequence[CompiledRule]) -> None:
        self.rules = tuple(rules)
        self.index = index_of(self.rules)

    @classmethod
    def of(cls, files: Iterable[tuple[str, bytes]], own: Callable[[str], bool] = bool) -> RuleBook:
        """The rules among memory files; `own` says which are the user's."""
        found = (compile_rule(TopicFile(key, data), own=own(key)) for key, data in files)
        return cls([rule for rule in found if rule is not None])

    def __len__(self) -> int:
        return len(self.rules)

    def look(
        self,
        tool: str,
        given: object,
        *,
        cwd: str,
        root: str = "",
        user: str = "",
        resolve: Callable[[str], str] | None = None,
    ) -> list[CompiledRule]:
        """The rules that a call would break."""
        if not self.rules:
            return []
        call = parse(tool, given, Place(cwd, root, user, resolve))
        return matched(call, self.index, self.rules.__getitem__)


def compile_rule(one: TopicFile, *, own: bool) -> CompiledRule | None:
    """A memory as a rule; None where it says nothing about calls."""
    front = one.front
    if one.type not in reading.RULED:
        return None
    head = reading.read(front)
    if head.never:
        return None
    found = head.rule if head.given else compile_sentence(sentence_of(one))
    if not found or (not head.given and reading.faults_of(found)):
        return None
    return {
        **found,
        "file": one.key,
        "name": one.name,
        "text": one.body.strip()[:MAX_TEXT] or one.description,
        "level": level_for(reading.level_of(front), own=own),
        "source": USER if own else TEAMS if one.key.startswith(f"{TEAM}/") else UNVERIFIED,
        "said": 1 + len(reading.said_on(front)),
        "read": "head" if head.given else "sentence",
    }


def sentence_of(one: TopicFile) -> str:
    """The words of a memory that are its rule: the description, or how its body begins."""
    return one.description or one.body.strip().partition("\n\n")[0]


def level_for(asked: str, *, own: bool) -> str:
    """What a rule may do: only the user's own may ask or block."""
    return asked if own or asked in (OFF, REMIND) else REMIND


# --- what the model is shown

_HELD = "Not run: a rule about this call was saved in an earlier session."
_BLOCKED = "Not run: a rule of the user's forbids this call."
_AGAIN = (
    "Do it in a way that keeps to the rule. If it does not fit here, make the same call again: "
    "it will run."
)
_NO = "Repeating the call will not help. Do it in a way that keeps to the rule, or ask the user."
_AFTER = "This call has run. A rule about it was saved in an earlier session; keep to it from here on."


def told(rules: Sequence[CompiledRule], *, ran: bool = False) -> str:
    """The text for the model: in place of a result, or (`ran`) beside the result of a call that
    could not be held."""
    blocked = not ran and any(rule.get("level") == BLOCK for rule in rules)
    first = _AFTER if ran else _BLOCKED if blocked else _HELD
    last = () if ran else (_NO,) if blocked else (_AGAIN,)
    return "\n\n".join((first, *map(quoted, rules), *last))


def quoted(rule: CompiledRule) -> str:
    """A rule as the user's own words; one of another's as what it is."""
    file, source = rule.get("file", ""), rule.get("source", USER)
    whose = {
        USER: "The user's rule",
        TEAMS: "A rule from the team's memory, not confirmed by the user",
    }.get(source, "A rule that nobody has confirmed")
    text = "\n".join(f"> {row}" for row in rule.get("text", "").split("\n"))
    return f"{whose} ({file}):\n{text}"


def held(rules: Iterable[CompiledRule]) -> list[CompiledRule]:
    """Of matched rules those that stop a call by themselves; `ask` is for the permission prompt."""
    return [rule for rule in rules if rule.get("level") in (REMIND, BLOCK, ASK)]
