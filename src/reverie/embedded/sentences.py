"""The user's own new words, sentence by sentence.

Words count only if a user said them since the cursor: never a tool result, an attachment, a
reminder, what the client wraps around a command, or what a person pasted (fenced, quoted,
set behind a heading, a diff, a log, what an introduction with a colon hands over). What is
left is cut into sentences; quoted words inside one are masked, so that no rule takes them for
the speaker's. A rule takes the words as they are and never adds a thought of its own. A bounded
beginning of each message is read. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reverie.embedded.history import LOOKED_AT
from reverie.text.markdown import spans
from reverie.text.safety import strip
from reverie.topics.consent import unwrapped
from reverie.topics.entry import Type
from reverie.transcript.messages import HEAD, SentBlock
from reverie.transcript.tasks import ExtractTask
from reverie.wire.request import Request

# Of 338 rules in 18 dialogues of MemoryCode MAX_PARAGRAPH 600 loses 8, 4,000 none. MAX_SENTENCE 200
# to 800, BRIEF_ITEMS 3 to 10 and BRIEF_LENGTH 1,000 to 4,000 change nothing there, nor in the 862
# turns of `python -m bench run asks`: they bound what is looked at.
MAX_PARAGRAPH = 1_200  # characters of a paragraph that a person types; longer ones are pasted
MAX_SENTENCE = 400
BRIEF_ITEMS = 5
BRIEF_LENGTH = 2_000
MASK = "\u00b7"
SLACK = 3  # characters of white space by which a message may shrink

_TAGGED = re.compile(r"<([A-Za-z][\w-]{0,40})\b[^<>]{0,200}>.*?</\1>", re.DOTALL)
_FRAME = re.compile(r"\s*<([A-Za-z][\w-]{0,40})>")
_CLIENT = re.compile(
    r"\s*(?:<[A-Za-z][\w-]{0,40}>|\[Request interrupted|\[Image\b|Operation stopped by"
    r"|This session is being continued|Caveat: )"
)
_FENCED = re.compile(r"(```|~~~|\"\"\"|''').*?(?:\1|\Z)", re.DOTALL)
_HEADING = re.compile(r"#{1,6}\s+\S")
# A line that no person types as a sentence: a quotation, a diff, a prompt, a log, a table, code.
_PASTED = re.compile(
    r"\s*(?:>|[+|│├└─═]|@@|diff --git|---|===|\$ |➜|#!|//|/\*|at \S+"
    r" ?\(|Traceback|\S*(?:Error|Exception):"
    r"|(?:WARN(?:ING)?|ERROR|INFO|DEBUG|FATAL|PASS|FAIL)\b[: ]|\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:"
    r"|\[\d|(?:low|medium|high|critical) severity\b|(?:import"
    r"|from(?! (?:now|here|today) on)|def|func|class|const|let|var|return|if)\b.*[{;:()]\s*$)",
    re.IGNORECASE,
)
_LINE_LIKE_CODE = re.compile(r"[{};]\s*$|^\s{4,}\S|:=|=>|\)\s*\{")
_INTRODUCED = re.compile(r"[:：]\s*$")
_ADDRESS = re.compile(r"([:：])[ \t]*\n\s*(?=https?://)")
KEEPING = re.compile(
    r"\b(?:remember|note|keep in mind|from now on|going forward|in (?:the )?future|rules?|always"
    r"|preferences?|merk|ab jetzt|recuerda|siempre|désormais|retiens)\b|记住|记下|以后|今后|从现在"
    r"|記住|記下|以後|今後|從現在|覚え|ルール",
    re.IGNORECASE,
)
# Somebody else's text to be worked on, and where a letter shows that it is one.
_MATERIAL = re.compile(
    r"(?:^|\n)\s*\^|(?:^|\n)(?:Subject|Betreff|Asunto|Objet|From|To|Cc): .*\n"
    r"|(?:^|\n)(?:hi|dear|hello) (?:all|team|everyone|both|(?:mr|mrs|ms|dr)\b)"
    r"|(?:^|\n)(?:(?:best|kind|warm) )?regards,?"
    r"|\b(?:translate|proof-?read|summari[sz]e|rephrase|reword|paraphrase|convert) (?:this|that|it"
    r"|the (?:following|above|text|mail|email|message|letter))\b|\bturn (?:this|that) into\b"
    r"|\breply to (?:this|that|the) (?:mail|e-?mail|message|letter)\b",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"(?:(?:so|and|but|ok|also|hey)\b,? ?)*(?:do|does|did|is|are|was|were|should|has|have|isn't"
    r"|aren't"
    r"|don't|shouldn't) (?:i|we|you|it|he|she|they|the|there|this|that|our|my|people|users?)\b"
    r"|(?:so |and |but )*(?:why|how|who|which|where|what)(?:'s)? (?!ever\b)(?:do|does|did|is|are"
    r"|was|were"
    r"|should|can|could|would|will|the|a|i|we|you)\b|whether\b|(?:please )?remind me (?:what|how"
    r"|where|which|when|who|why)\b|(?:benutzen|nutzen|sollen|müssen"
    r"|können|haben|verwenden) wir\b|(?:soll|muss|kann|darf)"
    r" ich\b|(?:warum|wieso|weshalb|wann|wie|wer|wo) \w+|(?:por qué|cuándo|cómo|quién|dónde) \w+"
    r"|(?:pourquoi|quand est-ce|comment|est-ce) \w+",
    re.IGNORECASE,
)
_MORE_QUOTES = re.compile(r"«[^«»\n]+»|»[^«»\n]+«|„[^„“”\n]+[“”]|‹[^‹›\n]+›|《[^《》\n]+》")
_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)、])\s+")
_END = re.compile(
    r"[。！？；\n]+|(?:(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)\.|[!?;])+[)\"'”’]*(?=\s|$)"
)


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What a user said in one message, and when; `whole` where nothing was left out of it."""

    id: str
    text: str
    at: float
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: as it was said, with quoted words masked, and whether it asks."""

    text: str
    masked: str
    asks: bool = False


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """One thing that was asked to be kept: what kind of cue asked, the words it is about, and the
    whole passage as it was said. Where a topic can have one rule alone, `topic` names it and `line`
    says the rule in a line."""

    kind: str
    type: Type
    rule: str
    turn: str = ""
    said: str = ""
    topic: str = ""
    line: str = ""
    when: str = ""  # when it was said and what its dates mean, to stand beside the words
    days: tuple[str, ...] = ()  # of which another day's same words would have others

    @property
    def text(self) -> str:
        return f"{self.rule} {self.said}".strip()


def pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


def turns(request: Request, task: ExtractTask) -> list[UserTurn]:
    """The new messages of the user, in their order."""
    new: list[SentBlock] = []
    for message in request.messages():
        for piece in message.pieces:
            if piece.source == task.since and task.since:
                new.clear()
            elif message.role == "user":
                new.append(piece)
    return typed_turns(new, dict(task.times))


def typed_turns(pieces: Iterable[SentBlock], times: Mapping[str, float]) -> list[UserTurn]:
    """What the user typed in these blocks, by message; `times` are of the user's messages."""
    found: dict[str, list[str]] = {}
    for piece in pieces:
        if piece.source in times and piece.source != HEAD and piece.block.type == "text":
            typed = _strip_frames(piece.block.get("text"))
            found.setdefault(piece.source, []).append(typed[:LOOKED_AT])
    return [user_turn(one, "\n".join(texts), times[one]) for one, texts in found.items()]


def user_turn(source: str, text: str, at: float) -> UserTurn:
    """A message as its writer's own words."""
    text = unwrapped(text)
    mine = own(text)
    return UserTurn(source, mine, at, len(mine) >= len(text.strip()) - SLACK)


def _strip_frames(text: str) -> str:
    """A text behind the frames that a client put in front of it, however long they are."""
    while (frame := _FRAME.match(text)) and (end := text.find(f"</{frame[1]}>", frame.end())) > 0:
        text = text[end + len(frame[1]) + 3 :]
    return text


def own(text: str) -> str:
    """A message without what its writer only passes on."""
    text = _TAGGED.sub("\n", strip(text[:LOOKED_AT]).replace("\r\n", "\n"))
    if _CLIENT.match(text):
        return ""
    text = _FENCED.sub("\n\n", _ADDRESS.sub(r"\1 ", text))
    if _MATERIAL.search(text):
        return ""
    out: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.splitlines()
        kept = [line for line in lines if not _is_pasted(line)]
        end = next((n for n, line in enumerate(kept, 1) if _hands_over(line)), None)
        if len(kept) * 2 < len(lines):  # a paste, and what was typed above it
            kept = lines[: next(n for n, line in enumerate(lines) if _is_pasted(line))]
        typed = "\n".join(kept[:end])
        if len(typed) <= MAX_PARAGRAPH:
            out.append(typed)
        if end is not None:
            break
    return "\n\n".join(out).strip()


def is_brief(text: str) -> bool:
    """Whether a message lays out a piece of work at length: what it orders is for that work."""
    items = sum(bool(_BULLET.match(line)) for line in text.splitlines())
    return items >= BRIEF_ITEMS or len(text) > BRIEF_LENGTH


def _hands_over(line: str) -> bool:
    """Whether what follows is material: a heading, or an introduction to something else."""
    if _HEADING.match(line):
        return True
    return bool(_INTRODUCED.search(line)) and not KEEPING.search(line)


def _is_pasted(line: str) -> bool:
    if _PASTED.match(line):
        return True
    return bool(_LINE_LIKE_CODE.search(line)) and not _BULLET.match(line)


def split_sentences(text: str) -> Iterator[Sentence]:
    """A text's sentences; one that is longer than a person makes them is left out."""
    masked = _mask_quotes(text)
    start = 0
    for end in [*_END.finditer(masked), None]:
        stop = end.start() if end else len(masked)
        mark = end.group() if end else ""
        first = start + _leading(masked[start:stop])
        start = end.end() if end else stop
        said = text[first:stop].strip()
        if said and len(said) <= MAX_SENTENCE:
            seen = masked[first:stop].strip()
            yield Sentence(said, seen, "?" in mark or "？" in mark or bool(_ASKING.match(seen)))


def _leading(text: str) -> int:
    """White space, a list mark and an opening bracket before a sentence."""
    bullet = _BULLET.match(text)
    at = bullet.end() if bullet else 0
    return at + len(text[at:]) - len(text[at:].lstrip(" \t\n(（[-–—…¿¡"))


def _mask_quotes(text: str) -> str:
    """The text with the inside of quotes blanked; every place stays where it is."""
    out, at = "", 0
    for low, high in spans(text):
        inside = "".join(c if c == "\n" else MASK for c in text[low + 1 : high - 1])
        out += text[at : low + 1] + inside + text[high - 1 : high]
        at = high
    out = _MORE_QUOTES.sub(
        lambda one: one[0][0] + MASK * (len(one[0]) - 2) + one[0][-1], out + text[at:]
    )
    return out.replace("’", "'").replace("‘", "'")
