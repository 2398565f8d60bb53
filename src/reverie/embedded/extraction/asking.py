"""What English sentences ask to be remembered by name: "remember …", "keep in mind …".

Words that are often said of the step in hand count only where what follows reaches beyond it, or
tells of the speaker and their house.
"""

from __future__ import annotations

import re

from reverie.embedded.extraction.orders import CALLED, HERE, KIND_WORDS, ORDER, PROGRAM
from reverie.embedded.extraction.words import Sentence, pattern

_COURTESY = r"(?:(?:please|pls|plz|also|and|just|but|ok(?:ay)?|so),? )*"
_MIND = (
    r"remember|keep in mind|bear in mind|(?:make|take) (?:a )?(?:mental )?note|memori[sz]e"
    r"|(?:save|store|add|put|write|note|record) (?:this |that |it )?(?:down )?(?:in|into"
    r"|to) (?:your"
    r" |the )?(?:long-term )?(?:memory|notes)|note|do(?: no|n'?)t (?:ever )?forget|for the record"
    r"|for (?:future|your) reference|for later|for your information|for context"
    r"|(?:just )?so (?:that )?you know|be aware|(?:house |new )?rule(?=:)|(?:gentle "
    r"|quick )?reminder(?=:)"
    r"|(?:one|a|another) (?:thing|note|rule) for (?:the )?(?:future|later)"
)
ASKED = pattern(
    rf"^{_COURTESY}(?P<asks>(?:can|could|would|will) (?:you|u) )?{_COURTESY}(?P<mind>{_MIND})"
    r"(?P<join>,? (?:this|that(?! time)|of|for (?:later|next time|the future))?(?: ?[:,–—-])?"
    r"| ?[:,–—-])? ?(?P<what>.{6,})$"
)
AFTERWARDS = pattern(
    r"^(?P<what>.{8,}?)[,;.–—-] ?(?:and )?(?:please )?(?:remember (?:that|this|it)|add (?:that"
    r"|this|it) to (?:your )?(?:memory|notes)|keep (?:that|this|it) in mind|note (?:that|it) down"
    r"|save (?:that|this|it)(?: for later)?|do(?: no|n'?)t forget (?:that|this|it)?)$"
)
TELLS = pattern(
    r"\b(?:is|are|was|were|has|have|had|am|prefers?|likes?|hates?|uses?|wants?|should|must|will"
    r"|needs?|can|may|don'?t|doesn'?t|can'?t|won'?t|never|always|works?|lives?|starts?|ends?|owns?"
    r"|goes|go|comes?|ships?|happens?|takes?|writes?|says?|calls?|gets?|means?|runs?|costs?"
    r"|belongs?)\b|'(?:m|s|re|ve|ll)\b|https?://"
)
REMINDED = pattern(
    r"^(?:when|how|what|where|why|who|which|the time|if(?!.{4,80}, ?(?:you|we|please|always|never)"
    r"\b)|last|back|(?:my|your|our) (?:last|first"
    r"|previous|earlier|messages?|questions?|comments?|chat|talk|conversation|plan)"
    r"|(?:we|you|i|they|he|she)(?:'d| had| have|'ve)? (?:said|told|did|were|was|made|wrote|built"
    r"|used to|already|just|\w+ed))\b"
)
REACHES = pattern(
    r"\b(?:always|never|every(?:where|thing)?|each|whenever|in general|from now on"
    r"|in (?:the )?future|next time|before (?:you|commit|push|merg|each|any)\w*|when(?:ever)? you"
    r"|in this (?:project|repo(?:sitory)?|codebase)|instead of|rather than|for all|any time"
    r"|on your own|yourself|without asking)\b"
)
_ONCE = pattern(
    rf"{HERE.pattern}|\b(?:also|too|as well|again|afterwards|then|now|today|for now)\b|{CALLED}"
)


def asked(sentence: Sentence) -> str | None:
    """What a sentence asks to be kept."""
    behind = AFTERWARDS.search(sentence.masked)
    if behind and not sentence.asks:
        return sentence.text[: behind.end("what")]
    found = ASKED.search(sentence.masked)
    if found is None or (sentence.asks and not found["asks"]):
        return None
    start, what = found.start("what"), found["what"]
    if REMINDED.match(what) or KIND_WORDS.search(what):
        return None
    if what.startswith("to ") and found["mind"].lower() != "for the record":
        lasting = (found["asks"] or REACHES.search(what)) and not _ONCE.search(what)
        return sentence.text[start + 3 : found.end("what")] if lasting else None
    return sentence.text[start : found.end("what")] if _is_told(found) else None


def _is_told(found: re.Match[str]) -> bool:
    """Whether what is to be minded is told for good, and not of the step in hand."""
    what, mind, join = found["what"], found["mind"].lower(), (found["join"] or "").strip()
    strong = bool(join.strip(",")) or bool(found["asks"])
    aside = "," in join and not mind.startswith("for ") and not strong
    if not join and mind == "note":
        return False
    if aside and not (ORDER.search(what) or _DAY.search(what)):
        return False
    if REACHES.search(what) or _OURS.search(what):
        return True
    if not (strong or TELLS.search(what) or ORDER.search(what)):
        return False
    if mind == "note" and not re.search("future|later|:", join):
        return False
    if mind.endswith("mind") and not TELLS.search(what):
        return False
    return not _ONCE.search(what) and (strong or not PROGRAM.search(what))


_DAY = pattern(r"\b\d{4}-\d\d-\d\d\b|\b(?:by|on|until) (?:mon|tues|wednes|thurs|fri)day\b")
_OURS = pattern(
    r"^(?:i(?:'m|'ve)?|we(?:'re|'ve)?|our|my|you (?:may|can|are allowed|don'?t))\b"
    r"|\d{4}-\d\d-\d\d|https?://"
)
