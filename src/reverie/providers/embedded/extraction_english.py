"""What English sentences are worth keeping: corrections, standing instructions and the rest.

A correction is told from a bug report by what it is about: the agent's own steps and what it
writes for people (tests, commits, branches, comments, answers), not the program. A standing
instruction needs a word that reaches beyond this change. In doubt, nothing.
"""

from __future__ import annotations

from reverie.providers.embedded.extraction_found import Rule, pattern

# Words that lead into a sentence and say nothing.
LEAD = pattern(
    r"(?:(?:ok(?:ay)?|yes|yeah|yep|yup|no|nope|nah|hmm+|also|and|but"
    r"|so|well|please|oh|ah|right|sure|great"
    r"|thanks|thank you|btw|by the way|alright|all right|cool|nice"
    r"|perfect|actually|anyway|like|just"
    r"|one (?:more|last|other) thing|remember|ps|p\.s|fyi|h(?:ey|i"
    r"|ello)(?: \w+)?|again|lastly|finally"
    r"|first|(?-i:[A-Z][a-z]+(?=[,!])))\b[\s,:!.–—-]*)*"
)

# What an agent works with, as opposed to what the program does.
WORK = (
    r"(?:(?:unit |integration |e2e |regression )?tests?|test (?:suite"
    r"|cases?)|specs?|coverage|lint(?:er|ing)?"
    r"|format(?:ter|ting)?|type[- ]?checks?|ci|builds?|commits?(?:"
    r" messages?)?|commit history|branch(?:es)?"
    r"(?: names?)?|prs?|pull requests?|changelog|release notes|docs?"
    r"|docstrings?|documentation|readme"
    r"|comments?|code|diffs?|refactor(?:s|ings?)?|change(?:s|set)?"
    r"|plans?|answers?|repl(?:y|ies)|responses?"
    r"|summar(?:y|ies)|explanations?|questions?|dependenc(?:y|ies)|librar(?:y|ies)|mocks?|fixtures?"
    r"|emojis?|feedback|reviews?|rebase|squash|links?|line numbers?|adrs?|design docs?)"
)
# Steps only an agent takes.
STEP = (
    r"(?:run|re-?run|ask|check|verify|validate|confirm|commit|push"
    r"|pull|rebase|squash|merge|lint|format|test"
    r"|review|read|explain|answer|reply|respond|mock|guess|assume|propose"
    r"|suggest|summari[sz]e|tell me|wait"
    r"|install|stash|amend|force[- ]push|touch|sign off|double[- ]check|look up|plan|stop)"
)
# Steps that a program might take as well: they need something of the work beside them.
MAKE = (
    r"(?:use|write|add|create|make|keep|put|include|show|give|start"
    r"|skip|edit|change|modify|delete|remove"
    r"|update|open|name|document|comment|prefer|avoid|do|leave|follow"
    r"|mention|split|break|stick|work"
    r"|cover|fix|move|refactor|print|log|rename|introduce|pin|import|link)"
)
ACT = rf"(?:{STEP}|{MAKE})"
DONE = (
    r"(?:run|ran|ask(?:ed)?|check(?:ed)?|verif(?:y|ied)|commit(?:ted)?"
    r"|push(?:ed)?|test(?:ed)?|review(?:ed)?"
    r"|read|writ(?:e|ten)|wrote|add(?:ed)?|change[d]?|update[d]?|rebase[d]?"
    r"|format(?:ted)?|lint(?:ed)?"
    r"|follow(?:ed)?|look(?:ed)? at|touch(?:ed)?)"
)
# What the program is or shows; a sentence with one of these is about the program.
PRODUCT = pattern(
    r"\u00b7|\b\w+\(\)|(?-i:\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w*)|\b\w+_\w+|(?<!\w)--?[a-z][\w-]+"
    r"|\b[\w-]+/[\w./-]+\.\w{1,5}\b|\b(?:users?|buttons?|pages?|screens?"
    r"|dialogs?|menus?|columns?|fields?|rows?"
    r"|endpoints?|hooks?|handlers?|flags?|params?|parameters?|structs?"
    r"|subprocess|threads?|queries|tables?"
    r"|json|yaml|metadata|payloads?|timestamps?|tokens?|checkpoints?"
    r"|sessions?|the (?:output|state|ui|api|cli|app|server|client|function"
    r"|method|class|command))\b"
)
_GENERAL = (
    r"(?:every|each|any|all|whenever|always|never|in general|generally"
    r"|by default|as a rule|every time"
    r"|each time|unless|without (?:asking|being asked|checking|my)"
    r"|before (?:you |every |each |any )?\w+ing"
    r"|before (?:every|each|any|you|a|the) \w+|after (?:every|each"
    r"|any) \w+|next time|in (?:the )?future"
    r"|from now on|going forward)"
)
_TODAY = pattern(
    r"\b(?:for now|for this (?:one|pr|branch|task|change)|this time|just this once|right now)\b"
)


def _negated(parts: dict[str, str]) -> str:
    what = parts["what"].strip(" ,.!")
    return f"Do not {what}." if len(what.split()) > 1 else ""


def _avoided(parts: dict[str, str]) -> str:
    what = parts["what"].strip(" ,.!")
    return f"Avoid {what}." if len(what.split()) > 1 else ""


def _preferred(parts: dict[str, str]) -> str:
    better, worse = parts["better"].strip(" ,.!"), parts["worse"].strip(" ,.!")
    return f"Prefer {better} to {worse}." if better and worse else ""


def _wanted(parts: dict[str, str]) -> str:
    what = parts["what"].replace(" any ", " ").strip(" ,.!")
    return f"{what[:1].upper()}{what[1:]}." if what else ""


STANDING = (
    Rule(
        "standing_instruction",
        pattern(
            r"^(?:from (?:now|here) on|going forward|in (?:the )?future"
            r"|for (?:the )?future|as a (?:general )?rule|in general|next"
            r" time|by default)\b,?.{8,}"
        ),
        unless=pattern(r"\b(?:we (?:could|might|may|can)|maybe|perhaps|would be)\b"),
    ),
    Rule(
        "standing_instruction",
        pattern(rf"^{ACT}\b.{{3,}}\b(?:from now on|going forward|in (?:the )?future|next time)$"),
        unless=_TODAY,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:you (?:should|must|need to|have to) |i (?:want|expect)"
            rf" you to )?(?:always|never|don't ever|do not ever) {STEP}\b"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:you (?:should|must|need to|have to) |i (?:want|expect)"
            rf" you to )?(?:always|never|don't ever|do not ever) {MAKE}\b.*\b{WORK}\b"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:each|every|any|all) (?:new |single )?{WORK}\b.*\b(?:should"
            rf"|must|needs? to|ha(?:s|ve) to|gets?|comes? with)\b"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"\b(?:each|every|any|all)(?: of the| the)? (?:new )?(?:tests?"
            r"|commits?|prs?|pull requests?|branches|docs?|comments?|reviews?)\b.*\b"
            r"(?:should|must|needs? to|ha(?:s|ve) to)\b"
        ),
        unless=pattern(r"\b(?:can|could|do|does|did) (?:you|we)\b"),
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:when(?:ever)?|before|after|every time|each time|any"
            rf" ?time) (?:you (?!want|like|need|think|can|get|have|feel"
            rf"|see)|{STEP}ing |(?:opening|creating|writing|making|changing"
            rf"|committing|pushing|adding|fixing) ).*?,? (?:please |always"
            rf" |never |first )?(?:you (?:should|must) |don't |do not "
            rf"|make sure |{ACT})\b"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^{STEP}\b.*\b(?:before|after) (?:every|each|any|you) (?:\w+"
            rf" )?(?:{WORK}|{ACT})\b"
        ),
        unless=_TODAY,
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"\b(?P<rule>make sure (?:to|that you|you) (?:always |never"
            rf" |first )?{STEP}\b.*\b(?:before|after) (?:continuing|{ACT}"
            rf"(?:t?ing|ning)?|every|each|any|you)\b.*)"
        ),
    ),
    Rule(
        "standing_instruction",
        pattern(
            rf"^(?:don't|do not|never) {ACT}\b.*\b(?:unless|without (?:asking"
            rf"|my|me|being asked|permission|approval|checking)|until i"
            rf"|before i|before asking)\b"
        ),
        unless=_TODAY,
    ),
    Rule(
        "standing_instruction",
        pattern(rf"^(?:you )?(?:don't|do not|never) (?:need|have) to {STEP}\b.*\b{_GENERAL}\b"),
    ),
    Rule(
        "standing_instruction",
        pattern(
            r"\b(?:needs?|ha(?:s|ve)|must) (?:to )?be (?:fully|completely"
            r"|entirely|all|100 ?%|always) (?:clean|green|passing|tested"
            r"|documented|typed)\b"
        ),
    ),
)

CORRECTIONS = (
    Rule(
        "correction",
        pattern(
            rf"\b(?:we|you) (?:did ?n[o']t|did not|forgot to|never) (?P<what>{DONE}\b"
            rf"(?: (?:or|and|nor) {DONE})?.{{0,40}}\b{WORK}\b.{{0,60}})$"
        ),
        asks=True,
        wording=_wanted,
        unless=pattern(r"^(?:why|how|if|when|what|where)\b|\b(?:yet|right|so far)$"),
    ),
    Rule(
        "correction",
        pattern(
            rf"^you (?:forgot|missed|skipped)(?: to (?:run|add|write|update))?"
            rf" (?:the |any )?{WORK}\b"
        ),
        asks=True,
    ),
    Rule(
        "correction",
        pattern(
            r"^why do you (?:always |still |keep (?:on )?)?(?P<what>(?!think"
            r"|feel|love|like|say|believe|want|need|suggest|recommend|prefer"
            r"|ask|know)\w+ .{4,}?)(?: again)?[ .]*$"
        ),
        asks=True,
        wording=lambda parts: (
            _avoided(parts) if parts["what"].split()[0].endswith("ing") else _negated(parts)
        ),
    ),
    Rule(
        "correction",
        pattern(
            r"^why are you (?:always |still |again |just )?(?P<what>(?!thinking"
            r"|saying|suggesting|asking)\w+ing .{4,}?)[ .]*$"
        ),
        asks=True,
        wording=_avoided,
        unless=PRODUCT,
    ),
    Rule(
        "correction",
        pattern(
            r"^why (?:are you )?(?P<worse>\w+ing .{2,}?),? (?:and not|instead"
            r" of|rather than|when you could)(?: just| simply)? (?P<better>\w+ing"
            r" .{2,}?)[ ?.]*$"
        ),
        asks=True,
        wording=_preferred,
    ),
    Rule(
        "correction",
        pattern(
            rf"^why did you (?P<what>(?:{ACT}) .{{2,}}?),? (?:without "
            rf"(?:asking|checking|telling|testing|reading).*|again|even"
            rf" though i .*|when i (?:said|told|asked).*)$"
        ),
        asks=True,
        wording=_negated,
    ),
    Rule(
        "correction",
        pattern(r"^(?:please )?stop (?P<what>\w+ing .{3,})$"),
        wording=_avoided,
        unless=PRODUCT,
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:you(?:'re| are) (?:always|still|constantly)|you keep"
            r"(?: on)?) (?P<what>(?:add|chang|delet|remov|forgett|skipp"
            r"|ignor|guess|assum|us|writ|break|mak|putt|invent|rewrit|reformatt"
            r"|touch|edit|renam|creat|commit|push|ask|repeat|read|runn)ing"
            r" .{3,})$"
        ),
        wording=_avoided,
    ),
    Rule(
        "correction",
        pattern(
            r"^i (?:never|did ?n[o']t|did not) (?:(?:ask(?:ed)?|want(?:ed)?)"
            r" you to|ask(?:ed)? (?:you )?for|t(?:ell|old) you to) .{4,}"
        ),
    ),
    Rule(
        "correction",
        pattern(rf"^i (?:already )?(?:told|asked) you (?:\w+ )?(?:not )?to {ACT}\b.{{3,}}"),
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:you|we) should(?: have|'ve|n't have) (?:asked|checked"
            r"|read|run|verified|tested|written|added|used|kept|told|confirmed"
            r"|looked|waited)\b.{3,}"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:don't|do not|never|you (?:should ?n[o']t|should not|must"
            r" not|can't)) (?:just )?(?:guess|assume|make (?:things|stuff"
            r"|it) up|invent|speculate)\b"
        ),
    ),
    Rule(
        "correction",
        pattern(
            r"\b(?:get|use|need|want|give (?:it|me)|find|pick|write|make"
            r"|choose) (?:it )?(?:a |an )?(?:better|proper|meaningful|shorter"
            r"|more descriptive|descriptive|clearer|cleaner) (?:branch"
            r" names?|commit messages?|pr (?:titles?|descriptions?)|titles?"
            r"|commit titles?|variable names?)\b"
        ),
        asks=True,
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:\w+ ){0,2}\w+s (?:in (?:code|tests|production|prod|general)"
            r" )?are (?:(?:not|never) (?:great|good|ok|okay|nice|ideal"
            r"|acceptable|allowed)|bad|evil|ugly|terrible|a (?:code )?smell"
            r"|discouraged|forbidden)\b"
        ),
        asks=True,
        unless=pattern(
            r"^(?:these|those|the|this|that|they|its|his|her|our|your|tests"
            r"|names) |\bwhy\b"
        ),
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:your |the |these |those |this |that )?(?:answers?|repl"
            r"(?:y|ies)|responses?|explanations?|summar(?:y|ies)|commit"
            r" messages?|pr descriptions?|comments)(?: (?:is|are))? (?:is"
            r" |are )?(?:way |much |far |a bit |still )?too (?:long|verbose"
            r"|wordy|short|vague|detailed|chatty)\b"
        ),
    ),
    Rule(
        "correction",
        pattern(
            r"^(?:that(?:'s| is| was)|there are|way|you (?:add|write|put)"
            r"|this has) ?(?:way |far )?too many (?:comments|emojis|mocks"
            r"|words|abstractions|questions)\b"
        ),
    ),
)

# A text of the agent's that is to be written anew, and what its next form must not have.
REDONE = pattern(
    r"\b(?:rewrite|redo|reword|rephrase|rework) (?:the |this |that |your )?"
    r"(?P<what>adr|docs?|readme|summary|description|commit message|pr description|comments?|plan"
    r"|answer|proposal|design doc)\b"
)
UNWANTED = pattern(
    r"^(?:don't|do not|never) (?:give|add|put|include|write|use|mention|start|list)\b"
    r"|^(?:it )?needs? no\b|^no (?:more )?\w+s\b"
)
