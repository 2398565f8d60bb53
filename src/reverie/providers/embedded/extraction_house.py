"""What English sentences say about how work is done in this house.

Rules of the house that no word like "always" marks: what is and is not done here, who is asked
first, how answers are worded, what tests, commits and texts must be like. As everywhere, the
sentence has to be about the agent's work, not about the program.
"""

from __future__ import annotations

from reverie.providers.embedded.extraction_found import Rule, pattern
from reverie.providers.embedded.extraction_work import (
    ACT,
    PRODUCT,
    STEP,
    STEP_PAST,
    SURE,
    THINGS,
    TODAY,
    TOOL,
    WORK,
)

_ONCE = pattern(rf"{PRODUCT.pattern}|{TODAY.pattern}")
_THING = pattern(rf"{THINGS}|{TODAY.pattern}")

HOUSE = (
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:we (?:use|write|prefer)|prefer|i want) (?:(?!the |this |that |more |a )\w+[-"
            rf" ]){{0,3}}(?:tests|commits|prs|commit messages|type hints)$"
            rf"|^write (?:idiomatic|clean|simple|readable|boring|proper|typed)\b.{{0,20}}$|^(?:"
            rf"(?:can|could) you )?(?:{SURE}|report) (?:more|less) (?:often|frequently)\b"
            rf"|^(?:{ACT}) (?:the |your )?(?:docs|readme|changelog|tests|types|specs?)\b.*\b"
            rf"(?:whenever|every time|each time)\b"
            rf"|^(?:it would be (?:nice|great|good|better) if you|(?:could|can|would) you please)"
            rf" (?:always |also )?(?:{STEP}|{STEP_PAST})\b.*\bbefore (?:you(?:'re)?|handing"
            rf"|saying"
            rf"|telling|committing|pushing)\b(?! (?:the|this|that)\b)"
        ),
        asks=True,
        unless=_THING,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:please )?ask\b.*\b(?:if|when) (?:something|anything|you(?:'re| are)|in doubt"
            rf"|unclear)\b|^(?:please )?(?:say so|tell me|admit it|be honest)"
            rf" (?:if|when) you(?:'re| are| do)? ?(?:n'?t|not)? ?(?:know|sure|unsure|guessing)|^"
            rf"(?:please )?(?:only )?(?:{SURE}|run) (?:only )?(?:when|if|after"
            rf"|once) i (?:say|ask|tell|told|approve|confirm)\b|^(?:please )?"
            rf"(?:{ACT})\b.*\b{WORK}\b.*\b(?:with|for|to|in|on) (?:every|each|all) (?:\w+ )?"
            rf"(?:changes?|fix(?:es)?|features?|commits?|prs?|bug ?fix(?:es)?|steps?)\b"
        ),
        unless=_THING,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:you (?:should|must|have to|need to) |always |please )*(?:use {TOOL} for "
            rf"(?:running|all|every|any|tests?|linting|formatting|building)\b"
            rf"|(?:run|execute) (?:the |all )?(?:tests|linter|build|checks) (?:through|via|using)"
            rf" {TOOL}\b)"
            rf"|^you (?:must|have to|need to) (?:always |also )?(?:run|lint|format|test|verify) "
            rf"(?:the )?(?:tests|linter|formatter|type ?checks?(?:er)?)\b"
            rf"|^i(?:'d| would) expect (?:\w+ )?(?:tests|docs|a changelog)\b"
        ),
        unless=pattern(rf"{_THING.pattern}|\b(?:again|first)\b"),
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:don'?t|do not|you must not|you must never|you should never) (?:ever )?"
            rf"(?:{ACT}) (?!it\b|this|that"
            rf"|the\b|these|those|them|me\b|a\b|an\b)(?:[\w.]+ ){{0,3}}?{WORK}(?!\w)"
        ),
        unless=_ONCE,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:it's|its|it is)(?: also)? (?:very |really |super )?(?:important|crucial"
            rf"|critical|essential)"
            rf" (?:that you|to) (?:always |never )?(?:(?:{SURE}|{STEP})\b|.*\b{WORK}\b)"
        ),
        unless=_ONCE,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"\b(?:write|do|start with) (?:the )?tests (?:first|before)\b(?!,? then)|^tests?"
            r" first\b|\b(?:use|do|follow|prefer) tdd\b"
        ),
        unless=pattern(r"^(?:can|could|should) (?:you|we)\b"),
    ),
    Rule(
        "standing_instruction",
        pattern(r"\bask (?:me )?(?:first|before)\b"),
        unless=pattern(
            rf"^(?:did|do|does|can|could|should|why|the)\b|\u00b7|{THINGS}|\bit\b.*\bask\b"
        ),
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"\bi (?:always )?(?:want|like|prefer|need) to (?:review|see|check|test"
            r"|approve)\b.*\bbefore"
            r" (?:you |we |it )?(?:commit|push|merg|open|implement|start|go)\w*"
        ),
        unless=TODAY,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^we (?:(?:always|usually|normally|never|generally|typically) (?:run|use|write"
            rf"|commit|test|squash"
            rf"|rebase|merge|name|document|format|lint|review|ask|branch|prefix|sign)\b(?! to"
            rf" the\b).{{4,}}|(?:always )?(?:want|need|expect) (?:a )?tests? (?:for|with) "
            rf"(?:every|each|any|all|a)\b"
            rf"|(?:don'?t|do not) (?:{ACT}) (?!it\b|this|that|the\b|these|those|them|any\b)(?:\w+"
            rf" ){{0,2}}?{WORK}\b"
            rf"|(?:squash|rebase|sign|review|lint|test|document) (?:our|all|every|each)\b)"
        ),
        unless=_ONCE,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:you|we)(?:'re| are) (?:not |never |always )?(?:supposed|allowed|meant) to "
            rf"(?:{ACT})\b.{{3,}}"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^be (?:more |very |extra |always )?(?:careful|concise|thorough|specific|precise"
            r"|brief|critical"
            r"|honest|direct|skeptical|terse)\b.*"
        ),
        unless=_ONCE,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:keep|make) (?:your |the |all )?(?:answers|replies|responses|explanations"
            r"|summaries|commits"
            r"|commit messages|diffs|changes|prs|functions|comments) (?:short|small|minimal|brief"
            r"|concise|focused"
            r"|simple|atomic|to the point)\b.*"
        ),
        unless=TODAY,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:please )?(?:answer|reply|respond|speak|talk)(?: to me)? (?:only |always )?in "
            r"(?:english|german"
            r"|french|spanish|italian|portuguese|chinese|mandarin|japanese|korean|russian|plain "
            r"(?:text|english"
            r"|language)|bullet points|markdown|one sentence|a few sentences|short sentences)\b.*"
            r"|^(?:please )?use (?:british|american|us|uk) (?:spelling|english)\b.*"
            r"|^use [\w-]+ for everything\b.*"
        ),
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:unit |integration |e2e |all |our |new )tests (?:should|must|need to|have to|may"
            r" not)\b(?! pass).{4,}"
            r"|^tests (?:should|must) (?:not|never|only|always|test|cover|verify|assert|fail"
            r"|check)\b.{4,}"
            r"|^(?:code )?comments should (?:not |only |never )?(?:explain|describe|say|repeat"
            r"|state|restate|mention"
            r"|be (?:short|brief|minimal|rare|in english))\b"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:our )?(?:commit messages|branch names|test names|pr (?:titles|descriptions)"
            r"|branches|prs"
            r"|docstrings"
            r"|variable names|function names|code comments)\b.{0,30}\b(?:should|must|need to|have"
            r" to|always"
            r"|never)\b.{4,}"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:you|we) (?:should|must|need to|have to) (?:always )?(?:read|check|look|ask|run"
            r"|test|verify)\b.*\b"
            r"(?:before (?:you|we|making|changing|writing|editing|committing)|every time|each"
            r" time)\b.*"
        ),
        unless=PRODUCT,
    ),
)
