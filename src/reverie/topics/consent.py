"""What a user states: not what they ask, report of others or reject; and what a yes agrees to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from reverie.light import pattern
from reverie.topics.trust import LONG_LINE, MOST_READ


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_YES_WORDS = _words(
    """yes yep yeah yup sure ok okay right correct exactly perfect great good fine agreed absolutely
    definitely ja jawohl genau gerne klar richtig stimmt einverstanden gut sí si claro vale correcto
    exacto perfecto oui"""
)
_BESIDE_A_YES = _words(
    """please always do it so that this thanks thank you go ahead keep that's bitte immer mach das
    danke siempre por favor hazlo así gracias"""
)
_YES_CHINESE = pattern(
    r"(?:对的?|好的?|好吧|是的?|没错|正是|可以|就这样|同意|行|嗯|当然|没问题|吧|了|啊|呀|谢谢|[\s，,。.！!])+"
)
_SENTENCES = pattern(r"(?<=[.!?。！？\n])")
_ASKED_OF = pattern(
    r"\W*(?:(?:and|also|ok|hey|so|but)\W+)?(?:please|(?:can|could|would|will) (?:you|we)|kannst du"
    r"|könntest du|puedes|podrías|能不能|可以|请)",
    re.IGNORECASE,
)
_DENSE = pattern("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_OTHER_SCRIPT = pattern("[\u0370-\u1dff]")
_TELLING = {
    "en": _words(
        """the a an is are of to and for it that this we you i on with be not use never always my
        our your don when from all if at by please"""
    ),
    "de": _words(
        """der die das den dem ein eine ist sind wird werden und nicht zu auf mit für von vor nach
        wir ich bitte im immer"""
    ),
    "es": _words("el la los las un una es son y no de en con para por que se del lo"),
    "fr": _words("le la les un une est sont et ne pas de en avec pour que je nous vous"),
    "it": _words("il lo gli un una è sono e non di che per con del della nel si"),
    "pt": _words("o os as um uma é são e não de em para com que do da no na"),
}
_WRAPPERS = ('"' * 2, "“”", "「」", "'" * 2)
_CLAUSES = pattern(
    r"(?<=[.!?;。！？；\n])(?![\"”」』»])|(?<=[.!?。！？][\"”」』»])|(?=,\s(?:but|aber|pero|mais)\b|，但)"
)
_OPENING, _CLOSING = "“「『«", "”」』»"
_REPORTED = pattern(
    r"(?:\b(?:(?:my|our|his|her|their|the|a|an|one)\s+(?:[\w-]+\s+){0,2}?"
    r"(?!guide|convention|rule|polic|standard|team|(?:I|you|we|of|last)\b)[\w-]+|he|she"
    r"|some(?:one|body)|(?-i:(?!Well|That|This|What|It|As|We|You|I\b)[A-Z][\w-]+))\s+(?:(?:also|always|still|just|once|has)\s+)?"
    r"(?:says|said|keeps\ssaying|thinks|thought|claims|claimed|suggests|suggested|insists|insisted"
    r"|recommends|recommended|writes|wrote|t(?:old|ells)\s(?:me|us)|argues|argued|advises|advised)\b"
    r"|\b(?:they|people|others|some\s\w+s)\s(?:say|think|claim|suggest|insist|recommend|write|argue)\b"
    r"|\baccording\sto\s(?:him|her|them|(?:my|the)\s\w+|(?-i:[A-Z]\w+))\b|\b(?:which|that)\ssays\b"
    r"|\b(?:the|his|her|their)\s(?:docs|readme|tutorials?|manual|logs?|linter)\s(?:says?|claims?)\b"
    r"|\bI\s(?:read|heard|was\stold)\b|\b(?:laut|angeblich|según)\s"
    r"|\b(?:mein|unser|der|die|das|ein|sein|ihr)\w{0,2}\s+(?:[\w-]+\s+)?[\w-]+\s+(?:sagte?|meinte?"
    r"|behauptet|findet|schreibt|schrieb|empfiehlt)\b|\b(?:er|jemand)\s+(?:sagte?|meinte?)\b"
    r"|\b(?:mi|nuestr[oa]|el|la|un|una)\s+(?:[\w-]+\s+)?[\w-]+\s+(?:dice|dijo|cree|piensa|sugiere"
    r"|afirma|recomienda|escribió)\b"
    r"|\b(?:mon|ma|notre|le|la|un|une)\s+(?:[\w-]+\s+)?[\w-]+\s+(?:dit|pense|suggère|affirme"
    r"|recommande|écrit|a\s(?:dit|écrit))\b)"
    r"|(?:我们?的?)?(?:同事|老板|经理|领导|朋友|客户|(?<!其)他们?|她们?|有人|别人|网上)[^，。,:：]{0,6}(?:说|认为|觉得|建议|主张|写)"
    r"|(?:同僚|上司|部長|先輩|後輩|友人|友達|彼女?|誰か)(?:は|が|に?よると|いわく)"
    r"|[\"”」』»],?\s*(?:says?|said|wrote|sagt|dice|dit|と(?:言|い|書))",
    re.IGNORECASE,
)
"""Somebody else speaks: a person and a verb of saying, in six languages. A guide, convention or
rule of one's own that "says" something is no other person."""
_REJECTED = pattern(
    r"\bI\s(?:(?:do\snot|don['’]?t)\sagree|disagree|doubt)\b|\b(?:that|this|it|which)(?:['’]s|\s(?:is"
    r"|was|sounds|seems))\s(?:\w+ly\s|just\s)?(?:wrong|nonsense|not\strue|bad\sadvice|outdated"
    r"|a\s(?:bad|terrible)\sidea)\b|\b(?:ignore|don['’]?t\slisten\sto)\s(?:that|him|her|them)\b"
    r"|\bstimmt\snicht\b|\bdas\sist\s(?:falsch|Quatsch|Unsinn)\b|\bc['’]est\sfaux\b"
    r"|\bno\ses\scierto\b|\bes\sfalso\b|胡说|别听|不要听|無視して"
    r"|\bI\s(?:think|believe|find)\s(?:that|this|it)"
    r"(?:['’]?s|\sis|\swas)?\s(?:wrong|false|nonsense|bad|a\s(?:bad|terrible)\sidea)\b"
    r"|\bsehe\sich\sanders\b|\bfinde\sich\s(?:falsch|schlecht)\b|\bhalte\sich\sfür\s(?:falsch|Unsinn)"
    r"|\bno\sestoy\sde\sacuerdo\b|\bpas\sd['’]accord\b|不同意|我(?:觉得|认为|看)(?:这|那)?(?:样|是)?"
    r"(?:不对|错)|間違[いっ][^。]{0,8}思|反対です|賛成でき",
    re.IGNORECASE,
)


def is_yes(text: str) -> bool:
    """Whether nearly the whole of a message is a yes."""
    said = text.strip().lower().replace("’", "'")
    if not said or len(said) > 60 or said.endswith(("?", "？")):
        return False
    if not said.isascii() and _DENSE.search(said):
        return _YES_CHINESE.fullmatch(said) is not None
    found = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", said)
    known = _YES_WORDS | _BESIDE_A_YES
    return bool(found) and found[0] in _YES_WORDS and all(word in known for word in found)


def asked_last(text: str) -> str:
    """The question that a text ends with, or ""."""
    last = _SENTENCES.split(text.rstrip()[-LONG_LINE:])
    found = [piece for piece in last if piece][-1:]
    return found[0].strip() if found and found[0].endswith(("?", "？")) else ""


def without_questions(text: str) -> str:
    """A text without the sentences that only ask: who asks whether something is so has not said
    it. What is asked of somebody ("could you always …?") stays."""
    return "".join(
        " " if piece.endswith(("?", "？")) and not _ASKED_OF.match(piece) else piece
        for piece in _SENTENCES.split(text[:MOST_READ])
    )


def unwrapped(text: str) -> str:
    """A text without the quotation marks that a client put around all of it."""
    bare = text.strip()
    for left, right in _WRAPPERS:
        inside = bare[1:-1]
        plain = inside.replace(f"\\{right}", "")
        if bare[:1] == left and bare[-1:] == right and left not in plain and right not in plain:
            return inside.replace(f"\\{right}", right)
    return text


def reports(text: str) -> bool:
    """Whether a text gives words of somebody else."""
    return _REPORTED.search(text) is not None


def rejects(text: str) -> bool:
    """Whether a text rejects what was said before it."""
    return _REJECTED.search(text) is not None


def without_reported(text: str) -> str:
    """A text without what it quotes or reports of others, and without what it rejects."""
    kept: list[str] = []
    for piece in _whole_quotes(_CLAUSES.split(text[:MOST_READ])):
        if _REJECTED.search(piece):
            del kept[-1:]
        elif found := _REPORTED.search(piece):
            kept.append("" if piece[found.start()] in f'"{_CLOSING}' else piece[: found.start()])
        elif not piece.lstrip().startswith(">"):
            kept.append(piece)
    return "".join(kept)


def _whole_quotes(pieces: Iterable[str]) -> Iterator[str]:
    """Clauses, those of one quotation together."""
    held = ""
    for piece in pieces:
        held += piece
        marks = sum(sign in _OPENING for sign in held) - sum(sign in _CLOSING for sign in held)
        if marks <= 0 and held.count('"') % 2 == 0:
            yield held
            held = ""
    if held:
        yield from _CLAUSES.split(held)  # a mark that nothing closes


def language_of(text: str) -> str:
    """A rough guess by script and the commonest words; "" where there is nothing to go by."""
    if not text.isascii() and len(_DENSE.findall(text)) * 3 > len(text.replace(" ", "")):
        return "dense"
    if not text.isascii() and len(_OTHER_SCRIPT.findall(text)) * 3 > len(text):
        return "other"
    said = re.findall(r"[^\W\d_]+", text.lower())
    counts = {name: sum(word in known for word in said) for name, known in _TELLING.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else ""
