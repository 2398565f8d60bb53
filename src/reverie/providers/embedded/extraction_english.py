"""What English sentences say about how work is done from here on.

A standing instruction is an order to the agent about its own steps, with a word that reaches
beyond this change: how often, before or after what, under which circumstance, or that it is
how things are done in this house. What the program must always or never do is none. In doubt,
nothing.
"""

from __future__ import annotations

from reverie.providers.embedded.extraction_found import Rule, pattern
from reverie.providers.embedded.extraction_work import (
    ACT,
    ACT_ING,
    ACT_PAST,
    CIRCUMSTANCE,
    DONT,
    GENERAL,
    MAKE,
    PRODUCT,
    STEP,
    SURE,
    TASTE,
    THINGS,
    TODAY,
    WORK,
)

# Words that lead into a sentence and say nothing.
LEAD = pattern(
    r"(?:(?:ok(?:ay)?|yes|yeah|yep|yup|nope|nah|hmm+|no(?=\s*[,.!:–—-]|\s+(?:you|u|i|we|it|that"
    r"|this|do"
    r"|don'?t|stop|use|never|always|the|just|please)\b)|also|and|but|so|well|please|pls|plz|oh|ah"
    r"|right|sure|great|thanks|thank you|btw|by the way|alright|all right|cool|nice|wait|wtf|dude"
    r"|man|bro|jesus|ffs|ugh|argh|gah|seriously|come on|lol|um|uh|perfect|actually|anyway|like"
    r"|just|then|because|one (?:more|last|other) thing|remember|ps"
    r"|p\.s|fyi|h(?:ey|i|ello)(?: (?!you|we|i\b)\w+)?|again|lastly|finally|first|hm"
    r"|(?-i:[A-Z][a-z]+(?=[,!])))\b[\s,:!.–—-]*)*"
)
_ONCE = pattern(rf"{PRODUCT.pattern}|{TODAY.pattern}")
_THING = pattern(rf"{THINGS}|{TODAY.pattern}")
_MUST = r"(?:(?:you|we) (?:should|must|need to|have to|can|may) |i (?:want|expect|need) you to )"
_ORDERED = (
    rf"(?:please |always |never |first |then |also |just )*(?:you (?:should|must) |do(?:n'?t|"
    rf" not) |make sure |{ACT})"
)


STANDING = (
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:{SURE}|(?:{ACT})\b.*\b{WORK})\b.*\b(?:when(?:ever)?|every time|each time|any"
            rf" ?time|while) you"
            rf"(?:'re| are)? (?:{ACT}|{ACT_ING}|about)\b"
            rf"|^(?:{DONT} |always |never )?(?:{ACT})\b.*\b(?:code|tests|commits|comments|docs"
            rf"|texts?|messages) (?:that )?you"
            rf" write\b"
        ),
        unless=_THING,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:think|plan) (?:first|before)\b.*|^slow down\b.*|^(?:please )?(?:write|keep|use"
            r"|put|prefix|start|format|make|word)\b"
            r"(?:(?! the | this | that | my ).)*\b(?:commit messages|pr (?:titles|descriptions)"
            r"|branch names|docstrings|code comments)\b.*"
        ),
        unless=TODAY,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:from (?:now|here|this point) on|going forward)\b.{{8,}}|^(?:in (?:the )?future"
            rf"|for (?:the )?future"
            rf"|as a (?:general )?rule|in general|generally|as always|as usual|next time|by"
            rf" default)\b[,:]? (?:please"
            rf" |just |also |i'd like you to )*(?:you\b|we (?!had|were)|do(?:n'?t| not)\b|never\b"
            rf"|always\b|no\b|i (?:want"
            rf"|expect|need)\b|make sure|only|one\b|keep|{ACT}\b).{{4,}}"
        ),
        unless=pattern(
            r"\b(?:we (?:could|might|may|can)|maybe|perhaps|would be)\b|^in (?:the )?future "
            r"(?:release|version)"
        ),
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:{ACT})\b.{{3,}}\b(?:from (?:now|here) on(?: out)?|going forward|in (?:the"
            rf" )?future"
            rf"|next time)\b"
        ),
        unless=TODAY,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:{STEP}|(?:{MAKE})\b.*\b{WORK})\b.*(?:,? (?:always|every (?:single )?time|each"
            rf" time)$"
            rf"|, (?:ever|without exception)$|, always,)"
        ),
        unless=_THING,
    ),
    Rule("standing_instruction", pattern(rf"^{ACT} (?:\w+ ){{0,3}}?in a worktree\b.*\balways\b")),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:{_MUST})?(?:always|never|don'?t ever|do not ever|never ever) (?:{SURE}|run"
            rf"|(?:{STEP})\b.*\b(?:{WORK}|{CIRCUMSTANCE}|before (?:you\b|\w+ing\b))|"
            rf"(?:{MAKE})\b.*\b{WORK})\b"
        ),
        unless=pattern(
            rf"{_ONCE.pattern}|\bthe \w+ (?:branch|commit|files?|errors?|changes?|links?)\b"
        ),
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:each|every|any|all) .{0,40}?\b(?:needs?|gets?|comes? with|(?:should|must) "
            r"(?:have|come with|get|include)|ha(?:s|ve)"
            r" to have) (?:an? |its own |at least one )?(?:\w+ )?(?:tests?|changelog(?: entry)?"
            r"|docs?|reviews?|pr|ticket)\b"
        ),
        unless=_ONCE,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"\b(?:each|every|any|all)(?: of the| the)? (?:new )?(?:tests?\b.*\b(?:should|must"
            r"|needs? to|ha(?:s|ve) to)\b"
            r"|(?:commits?|prs?|pull requests?|branches|docs?|comments?|reviews?)\b.*\b(?:should"
            r"|must|needs? to|ha(?:s|ve)"
            r" to) (?:\w+ )?(?:build|compile|pass|stand|work|keep|stay|explain|come with|be "
            r"(?:\w+ )?(?:small|atomic|signed"
            r"|self-contained|reviewed|tested|working|green|in english|short|squashed|rebased"
            r"|documented|buildable"
            r"|reviewable)|(?:have|include|contain) (?:a |an |its |their )?(?:\w+ )?(?:tests?"
            r"|message|description|changelog)))\b"
        ),
        unless=pattern(
            r"\b(?:can|could|do|does|did) (?:you|we)\b"
            r"|\b(?:users?|service|server|webhook|pipeline|page|trigger\w*|bot|should (?:pass"
            r"|run))\b"
        ),
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:when(?:ever)?|before|after|every time|each time|any ?time|once|if) (?:you"
            rf"(?:'re|'ve| are| have)? "
            rf"(?:about to |going to |{GENERAL} )?(?:done|finished|unsure|not sure|stuck|(?!do\b"
            rf"|make (?:it|sure)"
            rf"|give\b|open the)(?:{ACT}|{ACT_PAST}|{ACT_ING}))|{ACT_ING})\b.*?,? "
            rf"{_ORDERED}\b"
        ),
        unless=_ONCE,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:before|after) (?:every|each|any) (?:\w+ )?{WORK},? {_ORDERED}\b"
            rf"|^(?:if|when) (?:in doubt|unsure|(?:you're|you are|youre) (?:not sure|unsure|in"
            rf" doubt|stuck))\b.{{4,}}"
            rf"|^(?:if|when(?:ever)?) (?:a|any|some|the) (?:tests?|build|ci|lint\w*|check|command"
            rf"|thing)s? (?:fails?"
            rf"|breaks?),? (?:please )?(?:stop|tell me|ask|do(?:n'?t| not) (?:{ACT})|report|fix"
            rf" the code)\b"
            rf"|^(?:if|when) (?:something|anything) (?:is unclear|fails|breaks|goes wrong|isn'?t"
            rf" clear),? "
            rf"(?:please )?(?:stop|tell me|ask)\b"
        ),
        unless=_THING,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:please |actually |really )*(?:{STEP})\b.*\b(?:before|after) (?:every|each|any"
            rf"|you(?:'re)?) (?:\w+ )?"
            rf"(?:{WORK}|{ACT}|are|done|finished|hand)\b(?! (?:the|this|that)\b)"
            rf"|^(?:please |actually |really )*(?:{STEP})\b.*\bbefore (?:committing|pushing"
            rf"|merging|opening|submitting"
            rf"|saying|telling|claiming|answering|changing|touching|editing|deleting|reporting"
            rf"|assuming|writing|handing|coding|starting|implementing)\b(?! (?:the|this|that)\b)"
            rf"|^(?:{STEP})\b.*\b(?:after|before|at the end of) (?:every|each) \w+"
            rf"|^(?:{STEP})\b.{{2,60}}\bfirst,? before (?:you|we|\w+ing)\b"
        ),
        unless=_THING,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"\b(?P<rule>make sure (?:to|that you|you) (?:always |never |first )?"
            rf"(?:{STEP})\b.*\b(?:before|after)"
            rf" (?:continuing|{ACT_ING}|every|each|any|you)\b.*|make sure (?:to|that you|you) "
            rf"(?:always|never)"
            rf" (?:{ACT})\b.*)"
        ),
        unless=_THING,
    ),
    Rule(
        "standing_instruction",
        pattern(rf"^(?:you )?(?:don'?t|do not|never) (?:need|have) to (?:{STEP})\b.*\b{GENERAL}\b"),
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"\b(?:needs?|ha(?:s|ve)|must) (?:to )?(?:be (?:fully|completely|entirely|all|100 ?%"
            r"|always)"
            r" (?:clean|green|passing|tested|documented|typed)|happen (?:before|after|on|with) "
            r"(?:each|every)"
            r" \w+)\b"
        ),
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^no (?:\w+ ){{0,2}}(?:{WORK}|{TASTE}|push(?:es|ing)?|merg(?:es|ing)"
            rf"|deploy\w*)\b.*\b(?:without (?:my|asking"
            rf"|me|a)|unless (?:i|asked))\b"
        ),
        unless=_THING,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:(?:new|house|general|one|my|our|the|another|simple) rule|rule of thumb)\b(?:"
            r" \w+){0,3}?[:,].{6,}"
            r"|^(?:that's|thats|this is) (?:the|our|a) rule\b"
        ),
    ),
)
