"""What English sentences say against the agent's way of working.

A correction is told from a bug report by its subject: the agent ("you", or an order to it) and
a step of its work, with a negation, a complaint about what it did, a habit, a prohibition or a
reminder of what was said before. What the program does wrong is no correction, nor is a choice
for this one change; where only the agent's last words can tell, they are asked. In doubt,
nothing.
"""

from __future__ import annotations

from reverie.providers.embedded.extraction_found import Rule, pattern
from reverie.providers.embedded.extraction_work import (
    ACT,
    ACT_ING,
    ACT_PAST,
    ARE,
    DONT,
    FLAVOUR,
    HAVE,
    NOT,
    OATH,
    PRODUCT,
    STEP,
    STEP_PAST,
    SURE,
    SURE_PAST,
    TASTE,
    THINGS,
    VICES,
    WORK,
    YOU,
    finished,
)

_UNASKED = (
    r"(?:without (?:asking|checking|telling|testing|reading|running|looking|verifying|my|being"
    r" asked)|even though (?:i|we)|although (?:i|we)|(?:when|while) (?:i|we) (?:said|told|asked"
    r"|only"
    r"|just|clearly|explicitly)|i (?:only|just) (?:asked|wanted|said|needed)|nobody asked|no ?one"
    r" asked|every (?:single )?time|all the time|for no reason|everywhere|on every|yet again)"
)
_LOOK = (
    r"(?:the )?(?:actual |existing |real )?(?:code|source|docs?|documentation|logs?|error|file|diff"
    r"|schema|codebase|implementation)"
)


def _negated(parts: dict[str, str]) -> str:
    what = parts["what"].strip(" ,.!")
    return f"Do not {what}." if len(what.split()) > 1 else ""


def _avoided(parts: dict[str, str]) -> str:
    what = parts["what"].strip(" ,.!")
    return f"Avoid {what}." if what else ""


def _turned(parts: dict[str, str]) -> str:
    return _avoided(parts) if parts["what"].split()[0].endswith("ing") else _negated(parts)


def _preferred(parts: dict[str, str]) -> str:
    better, worse = parts["better"].strip(" ,.!"), parts["worse"].strip(" ,.!")
    return f"Prefer {better} to {worse}." if better and worse else ""


def _wanted(parts: dict[str, str]) -> str:
    what = parts["what"].replace(" any ", " ").strip(" ,.!")
    return f"{what[:1].upper()}{what[1:]}." if what else ""


# Something that should have been done was not.
LACKS = (
    Rule(
        "correction",
        pattern(
            rf"^(?:hm+ )?(?:we|{YOU}) {FLAVOUR}(?:did{NOT}|forgot to|never|failed to) (?P<what>"
            rf"(?:{ACT}|{ACT_PAST})\b(?: (?:or|and|nor) (?:{ACT}|{ACT_PAST}))?.{{0,40}}\b{WORK}\b"
            rf".{{0,60}})$"
        ),
        asks=True,
        wording=_wanted,
        unless=pattern(
            rf"^(?:if|when|what|where)\b|\b(?:yet|right|so far)$|\bthat'?s why\b|{THINGS}"
        ),
    ),
    Rule(
        "correction",
        pattern(
            rf"^{HAVE} {FLAVOUR}(?:did{NOT}|have{NOT}|n'?t|never|forgot to|failed to|missed)"
            rf" {FLAVOUR}(?:{SURE}|{SURE_PAST}|run|ran|running|answer(?:ed)?|build|built"
            rf"|compiled?|tr(?:y|ied) |wait(?:ed)?|finish(?:ed)?"
            rf"|check(?:ed)?(?: {_LOOK}| first| before\b.*|$)|updated? (?:the )?{WORK})\b"
        ),
        asks=True,
        complains=True,
        unless=pattern(rf"\b(?:yet|right|so far)$|^{YOU} never (?:{STEP})\b(?!ted)|{THINGS}"),
    ),
    Rule(
        "correction",
        pattern(
            rf"^{YOU} (?:forgot|missed|skipped|left out|always forget|never (?:{STEP}))"
            rf"(?: to (?:run|add|write|update))? (?:the |any |your |about the )?(?:\w+ )?{WORK}\b"
        ),
        asks=True,
        complains=True,
        unless=pattern(THINGS),
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:(?:did{NOT}|have{NOT}|did|have) {YOU} (?:even |bother to |actually |really )"
            rf"|do {YOU} (?:ever |even ))"
            rf"(?:run|ran|test(?:ed)?|read|check(?:ed)?|try|tried|look(?:ed)?|verif(?:y|ied)"
            rf"|compile)\b"
        ),
        asks=True,
        complains=True,
    ),
    Rule(
        "correction",
        pattern(
            rf"^why{OATH} (?:did{NOT}|have{NOT}|do{NOT}) {YOU} (?:even |just |first )?(?:"
            rf"(?:{STEP})\b|(?:{ACT})\b.*\b(?:existing|tests?|docs|instructions|conventions?))"
        ),
        asks=True,
        complains=True,
        unless=pattern(rf"\b(?:yet|if|when) |{THINGS}"),
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:and )?(?:(?:still|again),? no|no|where are (?:the|my|our)|why (?:are there )?no)"
            r" (?:new |unit )?(?:tests?|docs?|changelog(?: entry)?)\b.{0,30}$"
        ),
        asks=True,
        near=finished,
        complains=True,
        unless=pattern(r"\b(?:in|for) th(?:is|e) (?:folder|file|dir\w*|repo|project)\b|^no [^?]*,"),
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:we|{YOU})(?: should|'d)(?: have|'ve|{NOT} have|ve) (?:{ACT_PAST})\b"
            rf"|^should{NOT} (?:{YOU}|we) (?:have |also |first |always )+(?:{STEP}|{STEP_PAST})\b"
            rf"|^should{NOT} (?:{YOU}|we) (?:ask|test|run|verify|write tests|add tests|lint|commit"
            rf"|rebase|document)\b.{{3,}}|^{YOU} could(?: have|'?ve) (?:just )?(?:{STEP_PAST}"
            rf"|found|known|seen"
            rf"|tried)\b"
        ),
        asks=True,
        complains=True,
        unless=pattern(rf"\u00b7|\b\w+\(\)|{THINGS}"),
    ),
)

# Something was done that should not have been.
FAULTS = (
    Rule(
        "correction",
        pattern(rf"^(?:{ARE}|{HAVE}) {FLAVOUR}(?:{VICES})\b"),
        asks=True,
        complains=True,
        unless=pattern(
            rf"^{ARE} (?:not )?(?:assuming|guessing) (?:right|correctly)|^{YOU} assume\b"
        ),
    ),
    Rule(
        "correction",
        pattern(
            rf"^{YOU} (?:(?:keep|kept)(?: on)? (?P<what>(?!getting|seeing|having|in\b)\w+ing\b.*)"
            rf"|(?:always|constantly) (?:forget|leave|skip|ignore|do (?:this|that|it)|(?:{SURE})\b)"
            rf"|(?:do|did) (?:this|that|it) (?:every|each|all the) time\b).*$"
        ),
        asks=True,
        complains=True,
        unless=pattern(rf"^if|{THINGS}"),
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:{ARE}|{HAVE}) (?:just |went and |now )?(?:(?:again|always|still|constantly)"
            rf" (?:{ACT_PAST}|{ACT_ING})\b.*|(?:{ACT_PAST}|{ACT_ING})\b.*(?:\bagain"
            rf"|\b{_UNASKED}\b.*))$"
            rf"|^{ARE} doing it again\b"
        ),
        asks=True,
        complains=True,
        unless=pattern(rf"{THINGS}|\byou(?:'re| are) still working\b|^you (?:can|could)\b"),
    ),
    Rule(
        "correction",
        pattern(
            rf"^{HAVE} {FLAVOUR}(?:went ahead and|took the liberty|jumped (?:straight|right) "
            rf"(?:in|to)|got (?:distracted|carried away"
            rf"|side-?tracked)|force[- ]?pushed|committed"
            rf" (?:straight|directly|right) (?:to|on)|hard-?coded|commented out|(?:skipped"
            rf"|disabled|deleted"
            rf"|removed|changed|modified|weakened|edited|adjusted) (?:the |a |my |that )?(?:\w+"
            rf" )?(?:tests?"
            rf"|assertions?|checks?|lint\w*)\b.{{0,20}}\b(?:to|instead|so)\b|ignored (?:what|my|the"
            rf" (?:rule|instruction|part)|everything)|(?:deleted|reverted|undid|overwrote"
            rf"|discarded|threw"
            rf" away) my|left (?:\w+ )?(?:debug|print|dead|temp|junk|todo|(?:\w+ )?(?:broken"
            rf"|failing))\w*)"
        ),
        asks=True,
        complains=True,
        unless=pattern(THINGS),
    ),
    Rule(
        "correction",
        pattern(
            rf"^{ARE} (?:\w+ ){{0,5}}(?:in|on|at|from|using|running|editing|reading|changing)? ?"
            rf"(?:the )?"
            rf"wrong (?:branch|folder|directory|repo|repository|worktree|package)\b|^{ARE}"
            rf" {FLAVOUR}"
            rf"mixing\b|^that(?:'s|s| is) not how (?:we|i|you) (?:do|work|write|test|name|commit"
            rf"|use)\b"
            rf"|^(?:you (?:made|make) )?the same mistake\b|^we (?:do{NOT}|never) do (?:that|this"
            rf"|it) (?:here|like)\b"
            rf"|^{YOU} can(?:'?t|not) just (?:{ACT})\b|^{ARE} (?:over-?doing it|doing too much)\b"
            rf"|^that(?:'s|s| is| was) (?:made up\b|a guess$)"
            rf"|^why so (?:many (?:comments|files|changes|abstractions|mocks|helpers|words)"
            rf"|verbose|wordy|chatty)\b|^i do{NOT} believe you\b"
        ),
        complains=True,
    ),
)

# Asked why.
WHY = (
    Rule(
        "correction",
        pattern(
            rf"^why{OATH} (?:do|are|did|would) {YOU} (?:always |still |again |constantly |just "
            rf"|even )+(?P<what>"
            rf"(?!think|say|want|need|ask if)\w+ .{{3,}}?)(?: again)?[ .]*$"
        ),
        asks=True,
        wording=_turned,
    ),
    Rule(
        "correction",
        pattern(rf"^why{OATH} do {YOU} keep (?:on )?(?P<what>\w+ing\b.*)$"),
        asks=True,
        wording=_avoided,
    ),
    Rule(
        "correction",
        pattern(
            rf"^why{OATH} (?:do {YOU}|are {YOU}) (?P<what>(?!think|feel|lov|lik|say|believ|want"
            rf"|need|suggest"
            r"|recommend|prefer|know|mean|see|call|return|pass|stor|set|check|expect|hav|get)\w+"
            r" .{4,}?)"
            r"(?: again)?[ .]*$"
        ),
        asks=True,
        wording=_turned,
        unless=pattern(rf"{PRODUCT.pattern}|\b(?:here|both|twice|that|this)$|^why do {YOU} ask\b"),
    ),
    Rule(
        "correction",
        pattern(rf"^why{OATH} are {YOU} {FLAVOUR}(?P<what>{VICES}\b.*)$"),
        asks=True,
        complains=True,
        wording=_avoided,
    ),
    Rule(
        "correction",
        pattern(
            r"^why (?:are you )?(?P<worse>\w+ing .{2,}?),? (?:and not|instead of|rather than|when"
            r" you"
            r" could)(?: just| simply)? (?P<better>\w+ing .{2,}?)[ ?.]*$"
        ),
        asks=True,
        wording=_preferred,
    ),
    Rule(
        "correction",
        pattern(
            rf"^why{OATH} (?:did|would) {YOU} (?P<what>(?:(?:{ACT})\b.{{2,}}?,? (?:{_UNASKED}.*"
            rf"|again"
            rf"|(?:the |a )?(?:whole|entire|full) .+)|(?:skip|ignore|swallow|hide|comment out"
            rf"|hard-?code"
            rf"|disable|silence|suppress|delete|change|mock) (?:the |my |all |that |those |these "
            rf"|a )?"
            rf"(?:\w+ )?(?:tests?|exceptions?|errors?|checks?|lint\w*|warnings?|assertions?"
            rf"|rules?|types?)\b"
            rf".*|(?:commit|push|force[- ]?push|merge|revert my|undo my|touch)\b.*))$"
        ),
        asks=True,
        complains=True,
        wording=_negated,
        unless=pattern(r"\b(?:into|through)\b.*\b(?:function|method)\b"),
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:why )?(?:do|must|should) i (?:always |really |still )?(?:have to |need to )?"
            r"(?:tell|ask"
            r"|remind|repeat|say|explain)\b.*\b(?:you|twice|again|every|each|myself|everything"
            r"|always)\b"
            r"|^how (?:many times|often) (?:do|must|did|should|have) i\b.*"
            r"|^i should(?:n'?t| not) (?:need|have) to (?:ask|tell|remind|repeat|say)\b.*"
        ),
        asks=True,
        complains=True,
    ),
)

# Reminded of what was said.
TOLD = (
    Rule(
        "correction",
        pattern(
            rf"^i (?:already |clearly |just |explicitly )*said (?:(?:do{NOT}|never|not to|to not"
            rf"|to never) (?:{ACT})\b"
            rf"|no (?:\w+ )?(?:{WORK}|{TASTE}|\w+s)$|(?:that|this|so) (?:before|already|earlier)\b)"
            rf"|^(?:we (?:agreed|talked about this|discussed this)|as (?:agreed|discussed)),?(?:"
            rf" on| that| to)? (?:no|not|never|always"
            rf"|do{NOT})\b.{{4,}}|^(?:we talked about this|as (?:agreed|discussed)),"
            rf" tests\b.{{4,}}|^answer my question\b"
        ),
        unless=pattern(THINGS),
    ),
    Rule(
        "correction",
        pattern(
            rf"^i(?:'ve| have)? (?:already |explicitly |specifically |clearly |just )*(?:told"
            rf"|asked|reminded)"
            rf" (?:you|u) (?:\w+ )?(?:(?:not )?to (?:{ACT})\b|never\b|always\b|not\b|no\b|that "
            rf"(?:we|you)\b"
            rf"|(?:once|twice|(?:\w+ )?times|before|already)\b)"
        ),
        complains=True,
        unless=pattern(
            r"\bto (?:use|make|add|put|change|move|name) (?:the|a|it|this)\b.*\binstead$"
        ),
    ),
    Rule(
        "correction",
        pattern(
            r"^i (?:never|did(?:n'?t| not)) (?:ask(?:ed)? (?:you |u )?(?:to|for)|(?:want(?:ed)?|t"
            r"(?:ell|old)) (?:you|u)"
            r" to|say (?:you|to|anything))\b.{3,}"
        ),
        complains=True,
        unless=pattern(THINGS),
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:it was (?:just|only) a question|(?:i|that) (?:only |just )?asked (?:you )?a"
            r" question|i (?:only"
            r"|just) (?:asked|wanted|needed) (?:for |you to |an? (?:\w+ )?(?:plan|answer|fix"
            r"|change|question|review"
            r"|explanation|opinion|summary|rename|diff)\b).*|(?:that's|thats) not what i"
            r" asked\b.*|who (?:told|asked) you to\b.*|nobody asked (?:you|for)\b.*)"
        ),
        asks=True,
        complains=True,
        unless=pattern(THINGS),
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:as|like) (?:i|we) (?:already )?(?:said|mentioned|told you|discussed|asked)(?:"
            rf" before"
            rf"| earlier| already| many times)?[,:]? (?:please )?(?:{DONT}|always|no\b|keep"
            rf"|{STEP}\b).{{4,}}"
            rf"|\b(?:i (?:already )?said (?:that|this|it|so) (?:before|already|earlier|twice)"
            rf"|like i (?:asked"
            rf"|told you|said)(?: (?:before|earlier|already))?)$"
        ),
        unless=pattern(THINGS),
    ),
)

CORRECTIONS = (*LACKS, *WHY, *FAULTS, *TOLD)
