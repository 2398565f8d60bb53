"""What a user's answer agrees to: a yes, the question before it, the language of both."""

from __future__ import annotations

import re

from reverie.light import pattern
from reverie.topics.trust import LONG_LINE, MOST_READ

# What a user's answer agrees to


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
}


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


def language_of(text: str) -> str:
    """A rough guess by script and the commonest words; "" where there is nothing to go by."""
    if not text.isascii() and len(_DENSE.findall(text)) * 3 > len(text.replace(" ", "")):
        return "dense"
    said = re.findall(r"[^\W\d_]+", text.lower())
    counts = {name: sum(word in known for word in said) for name, known in _TELLING.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else ""
