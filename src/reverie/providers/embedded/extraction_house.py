"""What English sentences say about how work is done in this house: habits, taste, scope.

The wider forms of corrections and standing instructions: what code and texts should not have,
how much is too much, which command is the right one, who is asked first. As in the narrower
ones, the sentence has to be about the agent's work, not about the program.
"""

from __future__ import annotations

from reverie.providers.embedded.extraction_english import ACT, PRODUCT, STEP, WORK
from reverie.providers.embedded.extraction_found import Rule, pattern

# What people do or do not want in code and texts, whatever these are about.
_TASTE = (
    r"(?:panics?|mock(?:s|ing)?|globals?|global (?:state|variables?)"
    r"|sleeps?|magic (?:numbers?|strings?)|hard-?cod\w+|todos?|print"
    r" statements?"
    r"|dupl\w+ code|dead code|commented[- ]out code|new dependenc\w+"
    r"|extra dependenc\w+|force[- ]push\w*|abbreviations?|emojis?|em[- ]dashes"
    r"|boilerplate|over-?engineer\w*|wildcard imports?|nested ternar\w+"
    r"|unnecessary comments?|obvious comments?|inline comments?|useless"
    r" comments?|comments that \w+|bullet points|filler|jargon)"
)
_TOOL = (
    r"(?:mise|make|npm|pnpm|yarn|bun|npx|tsx|pytest|tox|nox|uv|pip"
    r"|poetry|conda|cargo|gradle|maven|gh|git|rg|ripgrep|grep|sed|docker"
    r"|podman|eslint|prettier|ruff|black|biome|golangci-lint|go (?:test"
    r"|run|build|vet)|tabs|spaces)"
)
_YET = pattern(
    r"\b(?:yet|for now|this time|right now|just this once|for this (?:one"
    r"|pr|branch|task|change))\b"
)
_QUESTION = pattern(
    r"^(?:is|are|do|does|did|can|could|would|should|what|where|when|which"
    r"|who|how)\b"
)

HABITS = (
    Rule(
        "correction",
        pattern(
            rf"^you (?:can|could|should|need to|have to|must) {ACT} .{{2,60}}\b"
            rf"(?:yourself|on your own)\b"
        ),
        unless=_YET,
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:should ?n[o']t|should not) (?:we|you) (?:also |first |always"
            r" )?(?:ask|test|run|check|verify|write tests|add tests|read|lint"
            r"|format|commit|rebase|document)\b.{3,}"
        ),
        asks=True,
        unless=PRODUCT,
    ),
    Rule(
        "correction",
        pattern(
            rf"\b(?:(?:we|you|i) (?:should ?n[o']t|should not|should never"
            rf"|should avoid|don't want|do not want|don't do|don't use|never"
            rf" use|want to avoid|would avoid|'d avoid)|let's (?:not|avoid)"
            rf"|i'd (?:rather )?(?:avoid|not)|(?:can|could) we avoid|not a"
            rf" fan of|i don't like|rather not|^(?:no|avoid|never use|don't"
            rf" use|do not use|no more)) (?:\w+ ){{0,4}}?{_TASTE}\b"
        ),
        asks=True,
        unless=_YET,
    ),
    Rule(
        "correction",
        pattern(
            r"\b(?:unnecessary|useless|redundant|pointless|superfluous|noisy"
            r"|too many|so many) comments\b"
        ),
        unless=_QUESTION,
    ),
    Rule(
        "correction",
        pattern(
            r"\b(?:over-?engineered|over-?engineering|overkill|over-?complicat\w+"
            r"|yagni)\b"
        ),
        asks=True,
        unless=_QUESTION,
    ),
    Rule(
        "correction",
        pattern(
            r"\b(?:unrelated|out[- ]of[- ]scope) (?:changes?|edits?|refactor\w*"
            r"|cleanups?|formatting)\b"
        ),
        asks=True,
        unless=_QUESTION,
    ),
    Rule(
        "correction",
        pattern(
            r"^you(?:'re| are| were)? (?:\w+ ){0,5}(?:in|on|at|from|using|running"
            r"|editing|reading)? ?(?:the )?wrong (?:branch|folder|directory"
            r"|repo|repository|worktree|package)\b"
        ),
    ),
    Rule(
        "correction",
        pattern(
            r"\b(?:instead of|rather than|stop|without|not just) (?:just )?"
            r"(?:guessing|assuming|making (?:things|stuff|it) up|speculating)\b"
        ),
    ),
    Rule(
        "correction",
        pattern(
            r"\b(?:no|without|remove|drop|don't (?:add|put|include)|stop adding"
            r"|never add|skip) .{0,30}(?:co-?author\w*|generated (?:with|by)"
            r"|claude (?:footer|signature|credit|attribution)|ai attribution)"
        ),
        asks=True,
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:you (?:should|can|need to|have to) )?(?:use|run) (?:the"
            rf" )?{_TOOL}\b.{{0,40}}?,? (?:instead of|not|rather than|over)"
            rf" .{{2,40}}$"
        ),
        unless=_YET,
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:you (?:should|need to|have to|must) )?run \W\u00b7+\W,? "
            r"(?:instead of|not|rather than) .{2,40}$"
        ),
        unless=_YET,
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:as|like) (?:i|we) (?:already )?(?:said|mentioned|told you"
            rf"|discussed|asked)(?: before| earlier)?,? (?:please )?(?:don't"
            rf"|do not|always|never|{STEP}) .{{4,}}"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "correction", pattern(r"^i (?:don't|do not|never) (?:want|need) you to .{6,}"), unless=_YET
    ),
)

HOUSE = (
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:don't|do not) (?:ever )?{ACT} (?!it\b|this|that"
            rf"|the\b|these|those|them|me\b|a\b|an\b)(?:\w+ ){{0,3}}?{WORK}\b"
        ),
        unless=pattern(rf"{PRODUCT.pattern}|{_YET.pattern}"),
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:it's|it is|it is also|it's also) (?:very |really |super"
            rf" )?(?:important|crucial|critical|essential) (?:that|to) .*\b{WORK}\b"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(rf"^{STEP}\b.{{2,60}}\bfirst,? before (?:you|we|\w+ing)\b"),
        unless=_YET,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"\b(?:write|add|create|start with|do) (?:the |a |some"
            r" )?(?:failing )?tests? first\b|^tests? first\b|\b(?:use"
            r"|do|follow|prefer) tdd\b"
        ),
        unless=pattern(r"^(?:can|could|should) (?:you|we)\b"),
    ),
    Rule(
        "standing_instruction",
        pattern(rf"^{STEP}\b.*\b(?:after|before|at the end of) (?:every|each) \w+"),
        unless=_YET,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^{STEP}\b.{{3,60}}\bbefore (?:committing|pushing|merging|opening"
            rf"|submitting)\b"
        ),
        unless=_YET,
    ),
    Rule(
        "standing_instruction",
        pattern(r"\bask (?:me )?(?:first|before)\b"),
        unless=pattern(r"^(?:did|do|does|can|could|should|why|the)\b|\u00b7"),
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"\bi (?:always )?(?:want|like|prefer|need) to (?:review|see|check"
            r"|test|approve)\b.*\bbefore (?:you |we |it )?(?:commit|push|merg"
            r"|open|implement|start|go)\w*"
        ),
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^we (?:always|usually|normally|never|generally|typically) (?:run"
            r"|use|write|commit|test|squash|rebase|merge|name|document|format"
            r"|lint|review|ask|branch|prefix|sign)\b.{4,}"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:you|we)(?:'re| are) (?:not |never |always )?(?:supposed"
            rf"|allowed|meant) to {ACT}\b.{{3,}}"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^be (?:more |very |extra |always )?(?:careful|concise|thorough"
            r"|specific|precise|brief|critical|honest|direct|skeptical|terse)\b.*"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:keep|make) (?:your |the |all )?(?:answers|replies|responses"
            r"|explanations|summaries|commits|commit messages|diffs|changes"
            r"|prs|functions|comments) (?:short|small|minimal|brief|concise"
            r"|focused|simple|atomic|to the point)\b.*"
        ),
        unless=_YET,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:please )?(?:answer|reply|respond|speak|talk)(?: to me)? "
            r"(?:only |always )?in (?:english|german|french|spanish|italian"
            r"|portuguese|chinese|mandarin|japanese|korean|russian|plain (?:text"
            r"|english|language)|bullet points|markdown|one sentence|a few"
            r" sentences|short sentences)\b.*"
        ),
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:unit |integration |e2e |all |our |new )tests (?:should|must"
            r"|need to|have to|may not|should never)\b.{4,}"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:our )?(?:commit messages|branch names|pr (?:titles|descriptions)"
            r"|branches|prs|comments|docstrings|variable names|function names"
            r"|docs)\b.{0,30}\b(?:should|must|need to|have to|always|never)\b.{4,}"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:you|we) (?:should|must|need to|have to) (?:always )?(?:read"
            r"|check|look|ask|run|test|verify)\b.*\b(?:before (?:you|we|making"
            r"|changing|writing|editing|committing)|every time|each time)\b.*"
        ),
        unless=PRODUCT,
    ),
)
