"""What English sentences forbid the agent, bound it to, or find not to taste.

Prohibitions of steps, what is to be kept to, too much of something, tastes in code and texts.
An order about this one change is none of these: it names a thing of the program, or says that it
is for now. In doubt, nothing.
"""

from __future__ import annotations

from reverie.providers.embedded.extraction_found import Rule, pattern
from reverie.providers.embedded.extraction_work import (
    ACT,
    CIRCUMSTANCE,
    DONT,
    FLAVOUR,
    GENERAL,
    NOT,
    STEP,
    SURE,
    TASTE,
    THINGS,
    TODAY,
    TOOL,
    VICE,
    VICES,
    WORK,
    YOU,
    told_of,
)


def _avoided(parts: dict[str, str]) -> str:
    what = parts["what"].strip(" ,.!")
    return f"Avoid {what}." if what else ""


# Forbidden or bounded.
FORBIDDEN = (
    Rule(
        "correction",
        pattern(
            r"^(?:(?:please|can you|could you|can we|will you) )*(?:stop|quit|cease) (?P<what>"
            r"(?!show|render|send|return|throw|retry|poll|cach|call"
            r"|stor|crash|fail|load|emit|the\b)\w+ing\b.*)$"
        ),
        asks=True,
        wording=_avoided,
        unless=pattern(rf"{THINGS}|{TODAY.pattern}"),
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:{DONT}|stop|quit|no more) (?:just )?(?:{VICES}\b|make \w+ up\b|(?:trust|rely"
            rf" on|bypass|circumvent)\b|be (?:so|too) \w+$|hide (?:errors?|problems)|"
            rf"apologi[sz]e|claim\b|say (?:it'?s|you'?re|that it|something is) |tell me (?:it'?s"
            rf"|what"
            rf" you|that)|agree with|sugar-?coat|swallow)"
        ),
        unless=TODAY,
    ),
    Rule(
        "correction",
        pattern(rf"\b(?:instead of|rather than|stop|without|not just) (?:just )?{VICE}(?:e|ing)\b"),
        unless=pattern(THINGS),
    ),
    Rule(
        "correction",
        pattern(rf"^(?:{DONT}|let's not) {FLAVOUR}(?:{ACT})\b.*\b{CIRCUMSTANCE}\b"),
        asks=True,
        unless=pattern(rf"{THINGS}|{TODAY.pattern}"),
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:do{NOT}) just (?:{ACT})\b.*|^(?:do{NOT}|never) (?:run|start|kill|restart) "
            rf"(?:the )?(?:whole"
            rf"|full|entire|dev|pkill|killall|rm\b)\b.*"
        ),
        unless=TODAY,
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:do{NOT}|please do{NOT}) (?P<verb>{SURE}|run|start|edit|delete|skip|ignore"
            rf"|disable) (?!it\b|this\b"
            rf"|that\b|them\b|so\b|too\b).{{3,}}$"
        ),
        near=told_of,
        unless=pattern(rf"{THINGS}|{TODAY.pattern}|\b(?:here|this|that)\b"),
    ),
    Rule(
        "correction",
        pattern(
            rf"^i (?:do{NOT}|never) (?:want|need) (?:you to|a (?:summary|recap)|to (?:see|read) "
            rf"(?:the|a) (?:whole"
            rf"|full|summary))\b.*|^{YOU} (?:do{NOT}) (?:need|have) to (?:{STEP})\b.*\b(?:me"
            rf"|{GENERAL}|after)\b.*"
        ),
        unless=TODAY,
    ),
    Rule(
        "correction",
        pattern(
            r"^\w+ing .{2,60}\b(?:is(?:n'?t| not)|is no|does(?:n'?t| not) count as) (?:an? "
            r"|the |really )?"
            r"(?:fix(?:ing)?|solution|acceptable|ok(?:ay)?|option|allowed|test(?:ing)?|answer"
            r"|proper)\b"
        ),
        complains=True,
        unless=pattern(THINGS),
    ),
)

# Too much, too little, not to taste.
TASTES = (
    Rule(
        "correction",
        pattern(
            rf"\b(?:(?:we|you|i) (?:should{NOT}|should never|should avoid|do{NOT} (?:want|do|use)"
            rf"|never use|want to avoid|would avoid|'d avoid)|let's (?:not|avoid)|i'd (?:rather"
            rf" )?(?:avoid|not)"
            rf"|(?:can|could) we avoid|not a fan of|i do{NOT} like|rather not|^(?:please )?(?:no"
            rf"(?! need)|avoid|enough"
            rf" with(?: the)?|do{NOT} (?:use|leave|add|write|put|introduce)|no more)) (?:(?!the\b"
            rf"|an?\b|this\b|that\b|any\b|for\b|to\b)\w+ ){{0,3}}?{TASTE}\b"
        ),
        asks=True,
        unless=pattern(rf"{THINGS}|{TODAY.pattern}"),
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:please )?(?:enough with|less|fewer|no more|too many|too much|way too many"
            rf"|that's too many|there"
            rf" are too many) (?:of )?(?:the |your |these )?(?:{WORK}|{TASTE}|talk(?:ing)?"
            rf"|yapping|words|prose|text"
            rf"|chatter|apologies)\b(?=\s*(?:$|[,.!]|please|pls|that|which|everywhere))|^no "
            rf"(?:yapping|chatter|small talk|waffle)\b"
            rf"|\b(?:unnecessary|useless|redundant|pointless|superfluous|noisy|so many) comments\b"
            rf"|\b(?:over-?engineer(?:ed|ing)|overkill|over-?complicat\w+|yagni)\b"
            rf"|\b(?:unrelated|out[- ]of[- ]scope) (?:changes?|edits?|refactor\w*|cleanups?"
            rf"|formatting|code|files|stuff|things|parts)\b"
        ),
        asks=True,
        unless=pattern(
            rf"^(?:is|are|do|does|did|can|could|would|should|what|where|when|which|who|how)\b"
            rf"|{THINGS}|{TODAY.pattern}"
        ),
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:way )?too (?:verbose|wordy|chatty|long-winded)$|^(?:your (?:\w+ )?|these "
            rf"|those |all )?(?:answers?|repl(?:y|ies)|responses?|explanations?"
            rf"|summar(?:y|ies)|commit messages?|pr descriptions?|comments|diffs?|tests)(?: you "
            rf"(?:write|wrote))?"
            rf"(?: (?:is|are))? (?:is |are )?(?:way |much |far |a bit |still |all )*(?:too "
            rf"(?:long|verbose|wordy"
            rf"|short|vague|detailed|chatty|big|large)|useless|pointless|worthless|meaningless"
            rf"|huge)\b"
            rf"|^th(?:e|is|at) (?:commit message|pr description|diff) (?:is|was) (?:way |much "
            rf"|far |a bit |still )*(?:too (?:long|verbose"
            rf"|wordy|short|vague|big|large)|useless|meaningless|huge)\b"
            rf"|^(?:those|these|your|that|this|a|the) tests?\b.*\b(?:(?:prove|test|check|verif"
            rf"|assert)\w* (?:nothing|only|the mocks)"
            rf"|(?:do|does){NOT} (?:really |actually )?(?:test|prove|check|verify|assert) "
            rf"(?:anything|a thing)|can{NOT}? fail)\b"
        ),
        complains=True,
        unless=pattern(r"\bfor (?:mobile|the \w+)\b"),
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:\w+ ){{0,2}}(?:{TASTE}|{WORK})(?: in (?:code|tests|production|prod|general))?"
            rf" are (?:(?:not|never)"
            rf" (?:great|good|ok|okay|nice|ideal|acceptable|allowed)|bad|evil|ugly|terrible|a "
            rf"(?:code )?smell"
            rf"|discouraged|forbidden)\b"
        ),
        asks=True,
        unless=pattern(
            r"^(?:these|those|the|this|that|they|its|his|her|our|your|tests|names) |\bwhy\b"
        ),
    ),
    Rule(
        "correction",
        pattern(
            r"\b(?:get|use|need|want|give (?:it|me)|find|pick|write|make|choose) (?:it )?(?:a |an"
            r" )?(?:better"
            r"|proper|meaningful|shorter|more descriptive|descriptive|clearer|cleaner) (?:branch"
            r" names?"
            r"|commit (?:messages?|titles?)|pr (?:titles?|descriptions?))\b"
        ),
        asks=True,
    ),
    Rule(
        "correction",
        pattern(
            r"\b(?:no|without|remove|drop|do(?:n'?t| not) (?:add|put|include)|(?:stop|quit)"
            r" adding|never add|skip)"
            r" .{0,30}(?:co-?author\w*|generated (?:with|by)|claude (?:footer|signature|credit"
            r"|attribution)"
            r"|ai attribution)"
        ),
        asks=True,
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:you (?:should|can|need to|have to) |we )?(?:use|run) (?:the"
            rf" )?`?{TOOL}\b.{{0,40}}?,? (?:instead of"
            rf"|not|rather than|over) .{{2,60}}$"
            r"|^(?:you (?:should|need to|have to|must) )?run \W\u00b7+\W,? (?:instead of|not"
            r"|rather than) .{2,40}$"
        ),
        unless=TODAY,
    ),
    Rule(
        "correction",
        pattern(
            rf"^{YOU} (?:can|could|should|need to|have to|must) (?:{ACT}|look it up) .{{0,60}}\b"
            rf"(?:yourself|on your own)\b"
        ),
        unless=TODAY,
    ),
)

# What is to be kept to.
SCOPE = (
    Rule(
        "correction",
        pattern(
            rf"^{DONT} (?:hard-?code|duplicate|copy-?paste|over-?(?:engineer|complicate|abstract"
            rf"|think)|hide|swallow|silence"
            rf"|suppress|mock|refactor|reformat|rewrite|rename|reorder)(?: (?!it\b|this\b|that\b"
            rf"|the\b|these\b"
            rf"|those\b|them\b|an?\b|yet\b)\w+){{0,4}}$|^(?:kiss|dry|yagni)(?: please| pls)?(?:$|,)"
            rf"|^i (?:keep having|always have|have) to (?:fix|clean|redo|undo|correct|revert"
            rf"|repeat|remind|tell)\b.*\b(?:you|your|every|each|always|again|afterwards)\b"
            rf"|^you have (?:tools?|access|an? \w+ tool)\b.*\b(?:use|read|check|look)\b"
        ),
        unless=pattern(rf"{THINGS}|{TODAY.pattern}"),
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:please )?(?:(?:discuss|plan|propose|design|ask) first\b|let's discuss before"
            rf" you\b|no code (?:until|before) (?:i|we|you)\b|i want(?:ed)?"
            rf" to (?:discuss|talk|see (?:a|the) (?:plan|proposal|design))\b.*\b(?:first|before "
            rf"(?:any|you))\b|stay (?:on topic|focused|in scope)\b|focus on"
            rf" (?:the|your) task\b|write less\b|(?:show|give) me (?:proof|evidence)\b|(?:way"
            rf" )?too many (?:changes|files|things) at once)"
            rf"|^{DONT} (?:use|say|write) (?:the )?(?:words?|phrases?|terms?)\b|^{DONT} .*\bin "
            rf"(?:code )?comments\b"
            rf"|^(?:please )?(?:keep|put|separate|split) (?:refactor\w*|formatting"
            rf"|clean-?ups?)\b.*\b(?:separate|own|from|apart)\b"
        ),
        unless=pattern(rf"{THINGS}|{TODAY.pattern}"),
    ),
    Rule(
        "correction",
        pattern(
            r"\b(?:fix|test|address|treat|explain|say|describe|solve|change|adapt|mend)(?:ed|ing"
            r"|s)? (?:the )?(?:root )?(?:causes?|code|problem"
            r"|behaviou?r|why|symptoms?),? (?:and )?(?:not|instead of|rather than) (?:the |just"
            r" )?(?:symptoms?|tests?|implementation|what|causes?)\b"
            r"|\binstead of (?:rolling|writing|inventing|creating|making|building|adding"
            r"|reinventing)\b.*\b(?:your own|new (?:helpers?|ones?"
            r"|functions?|code|files)|yourself)\b|\bbefore (?:you )?(?:writ|invent|roll|creat"
            r"|add)(?:e|ing)? (?:your own|a new|new) ?"
            r"|^(?:stick to|follow|respect|match|use|reuse) (?:the |our )?(?:existing|project'?s"
            r"|repo'?s|codebase'?s|house) (?:\w+ )?(?:style"
            r"|patterns|conventions|helpers|utilities|structure)\b"
        ),
        unless=pattern(rf"\b\w+\(\)|{TODAY.pattern}"),
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:please )?(?:write |make |give me |i want |use |only |do )?(?:small(?:er)?|short"
            r"(?:er)?|brief(?:er)?|concise"
            r"|direct|plain|atomic|meaningful|minimal) (?:answers|replies|responses|explanations"
            r"|summaries|commit messages|commits|prs|diffs"
            r"|steps|functions)\b"
            r"|^(?:do(?:n'?t| not)|never) (?:read|cat|open|grep|scan|search|print|dump)\b.*\b"
            r"(?:huge|large|big|whole|entire|full|generated"
            r"|node_modules|vendor\w*|lock ?files?|minified|build|dist)\b"
        ),
        unless=TODAY,
    ),
    Rule(
        "correction",
        pattern(
            rf"^i(?:'d| would) (?:really )?(?:prefer|rather|like|appreciate)(?: it)?(?: if)? "
            rf"(?:{YOU}|for you to)"
            rf" (?:(?:did|do|would|were){NOT}|not|always|never|first|asked|checked|stopped)\b.*"
        ),
        unless=pattern(rf"{THINGS}|{TODAY.pattern}"),
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:\w+ ){{0,5}}{YOU} (?:really |actually )?(?:need|have|ought) to (?:actually "
            rf"|really )?(?:{STEP})\b"
            rf".*\b(?:in full|properly|carefully|thoroughly|completely|more closely)\b"
        ),
        complains=True,
        unless=pattern(rf"{THINGS}|{TODAY.pattern}"),
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:please )?(?:(?:only |just |exactly )?do (?:only |just |exactly )?what i (?:ask"
            r"|say|said|tell|asked)"
            r"|stick to (?:the |what )(?:scope|task|plan|i)\b|leave (?:\w+ )?(?:unrelated|other"
            r"|my|everything else)\b"
            r".*\balone|hands off\b.*|keep (?:your |the |all |any )?(?:changes?|diffs?|edits?) "
            r"(?:\w+ )?(?:minimal|small"
            r"|focused|to a minimum)|(?:minimal|smaller?) (?:diffs?|steps|commits|changes)\b|one "
            r"(?:thing|step|commit"
            r"|change|file) (?:at a time|per \w+))\b"
        ),
        unless=TODAY,
    ),
    Rule(
        "correction",
        pattern(
            rf"^(?:please )?(?:when|if) i (?:only |just )?(?:ask|say|tell|want|report|paste"
            rf"|send)\b.*(?:,|\bjust|\bthen)"
            rf" ?(?:please )?(?:{DONT}|just|only|{ACT})\b.*"
        ),
        unless=TODAY,
    ),
    Rule(
        "correction",
        pattern(
            rf"^only (?:{ACT}) (?:the |those )?(?:\w+ ){{0,4}}?(?:what |that )?(?:you|i) (?:have "
            rf"|just )?(?:chang"
            rf"|touch|edit|ask|need|modif|affect|relat|wrote)\w*"
        ),
        unless=TODAY,
    ),
)

LIMITS = (*FORBIDDEN, *SCOPE, *TASTES)
