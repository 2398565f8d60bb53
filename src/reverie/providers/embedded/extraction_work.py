"""The words in which people speak of an agent's work, as opposed to what a program does.

Verbs by how surely they are an agent's step, what the work leaves behind (tests, commits,
answers), the circumstances of a step, and the words that tie a sentence to this one change or
to the program being built. Pure tables; what they mean together is in the rules.
"""

from __future__ import annotations

import re

from reverie.providers.embedded.extraction_found import pattern

# Verbs by how surely they are an agent's step: only an agent takes it; a program might as well;
# it needs something of the work beside it. A low line is a hyphen, a space or nothing.
_SURE = """
guess assume speculate hallucinate claim pretend apologise apologize commit push force_push
amend rebase squash stash merge refactor rewrite reformat hard_code mock lint test verify
double_check reread re_read look ask tell explain summarise summarize review install touch
revert investigate research plan listen agree document over_engineer over_complicate reinvent
propose suggest rerun re_run benchmark read think cite reuse bypass rely_on trust sign_off
speak
"""
_STEPS = """
run check validate confirm format answer reply respond wait stop search skip ignore finish
paste undo try grep compile build pull
"""
_MAKES = """
use write add create make keep put include show give start edit change modify delete remove
update open name comment prefer do leave follow mention split break stick work cover fix move
print rename introduce pin import link implement disable generate regenerate restructure
duplicate copy kill drop bump wrap swallow hide clean mix say report restore silence suppress
"""
_DOUBLED = "commit reformat plan format stop skip grep prefer pin drop wrap"
_IRREGULAR = """
rewrite rewrote rewritten rewriting, reread reread reread rereading, re_read re_read re_read
re_reading, tell told told telling, agree agreed agreed agreeing, rerun reran rerun rerunning,
re_run re_ran re_run re_running, read read read reading, think thought thought thinking,
rely_on relied_on relied_on relying_on, sign_off signed_off signed_off signing_off, speak
spoke spoken speaking, run ran run running, undo undid undone undoing, build built built
building, write wrote written writing, make made made making, keep kept kept keeping, put put
put putting, show showed shown showing, give gave given giving, do did done doing, leave left
left leaving, split split split splitting, break broke broken breaking, stick stuck stuck
sticking, hide hid hidden hiding, say said said saying
"""
_FORMS: dict[str, list[str]] = {row.split()[0]: [*row.split()] for row in _IRREGULAR.split(",")}


def _forms(verb: str) -> list[str]:
    """Base, past, participle and -ing."""
    if verb in _FORMS:
        return _FORMS[verb]
    if verb in _DOUBLED.split():
        past, going = f"{verb}{verb[-1]}ed", f"{verb}{verb[-1]}ing"
    elif verb.endswith("e"):
        past, going = f"{verb}d", f"{verb[:-1]}ing"
    elif verb.endswith("y") and verb[-2] not in "aeiou":
        past, going = f"{verb[:-1]}ied", f"{verb}ing"
    else:
        past, going = f"{verb}ed", f"{verb}ing"
    return [verb, past, past, going]


def _table(text: str) -> list[list[str]]:
    return [[form.replace("_", "[- ]?") for form in _forms(verb)] for verb in text.split()]


def _any(rows: list[list[str]], *columns: int) -> str:
    words = dict.fromkeys(row[column] for row in rows for column in columns)
    return f"(?:{'|'.join(sorted(words, key=len, reverse=True))})"


_ALL = _table(_SURE) + _table(_STEPS) + _table(_MAKES)
SURE, SURE_PAST, SURE_ING = (_any(_table(_SURE), *n) for n in ((0,), (1, 2), (3,)))
STEP = _any(_table(_SURE) + _table(_STEPS), 0)
STEP_PAST = _any(_table(_SURE) + _table(_STEPS), 1, 2)
STEP_ING = _any(_table(_SURE) + _table(_STEPS), 3)
MAKE = _any(_table(_MAKES), 0)
ACT, ACT_PAST, ACT_ING = _any(_ALL, 0), _any(_ALL, 1, 2), _any(_ALL, 3)
_TOLD = [
    (pattern(row[0]), pattern(rf"\b(?:{'|'.join(row[1:])})\b|(?m:^)ran .*\b{row[0]}\b"))
    for row in _ALL
]

# Who is spoken to, and how a step is denied, coloured or blamed.
YOU = r"(?:you|u)"
ARE = rf"{YOU}(?:'?re| are| were)"
HAVE = rf"{YOU}(?:'?ve| have)?"
NOT = r"(?:n'?t| not)"
DONT = (
    rf"(?:(?:please )?do{NOT}|never|{YOU} (?:must|should|can|may)(?:{NOT}| never)|try not to"
    rf"|(?:can|could|would|will) (?:{YOU}|we) (?:please |maybe |just )*not)"
)
OATH = r"(?: the (?:hell|heck|fuck)| on earth)?"
FLAVOUR = (
    r"(?:(?:just|again|still|even|actually|really|also|simply|obviously|clearly|literally|already"
    r"|once again|always|constantly|ever|then|blindly|basically|probably|apparently|only|fucking"
    r"|bloody|goddamn|damn|randomly|suddenly) )*"
)
# Bad by its name, whoever it is said to.
VICE = (
    r"(?:guess|assum|speculat|hallucinat|fabricat|invent|pretend|cheat|overthink|over-?complicat"
    r"|over-?engineer|reinvent|rush|rambl|hand-?wav|bloat|truncat)"
)
VICES = (
    rf"(?:{VICE}(?:e|ed|d|ing|s)?|(?:mak(?:e|ing)|made) (?:\w+ )?(?:assumptions?|(?:things|stuff"
    r"|that|this|it|them|up \w+|\w+) up)|jump\w* to conclusions|cut\w* corners|repeat\w* yourself"
    r"|(?:go|going|went) (?:off|in circles|round in circles)|paper\w* over|gloss\w* over|weaken\w*"
    r"|try\w* random|(?:burn|wast)\w* (?:\S+ ){0,4}(?:tokens?|context|time|money)|treating (?:the"
    r" )?symptoms"
    r"|not (?:listening|reading|following|paying)|trying random)"
)

# What an agent's work leaves behind or works with.
WORK = (
    r"(?:(?:unit |integration |e2e |regression |failing )?tests?|test (?:suite|cases?)|specs?"
    r"|assertions?|coverage|lint(?:er|ing)?(?: rules?| warnings?)?|format(?:ter|ting)|type[- ]?"
    r"(?:checks?|hints?|annotations?)|types|ci|builds?|commits?(?: messages?)?|commit history"
    r"|branch(?:es)?(?: names?)?|prs?|pull requests?|changelog|release notes|docs?|docstrings?"
    r"|documentation|readmes?|markdown files?|comments?|code ?base|code|diffs?|refactor(?:s|ings?)?"
    r"|changes?|changeset|plans?|answers?|repl(?:y|ies)|responses?|summar(?:y|ies)|explanations?"
    r"|questions?|dependenc(?:y|ies)|librar(?:y|ies)|mocks?|stubs?|fixtures?|emojis?|feedback"
    r"|reviews?|rebase|squash|links?|line numbers?|adrs?|design docs?|todos?|placeholders?"
    r"|work-?arounds?|fallbacks?|shims?|boilerplate|abstractions?|helpers?|temp(?:orary)? files?"
    r"|generated (?:files?|code)|debug (?:prints?|logs?|code|output)|print(?:s| statements?)"
    r"|error messages?|root causes?|bug ?fix(?:es)?|sub-?agents?|work ?trees?|dev server|(?:whole"
    r"|full|entire) suite|migrations?|git (?:add|checkout|reset|push|commit|stash|clean)\b|prod"
    r"(?:uction)?|try[ /-]?(?:catch|except)|errors?|claims?|files|scope|warnings?|secrets|\.env"
    r"|--no-verify|--force|--hard|add -a)"
)
# Taste in code and texts, whatever these are about.
TASTE = (
    r"(?:mock(?:s|ing)?|panics?|globals?|global (?:state|variables?)|sleeps?|magic (?:numbers?"
    r"|strings?)|hard-?cod\w+|todos?|placeholders?|print statements?|debug (?:prints?|logs?)"
    r"|dupl\w+ code|dead code|commented[- ]out code|(?:new|extra) dependenc\w+|force[- ]push\w*"
    r"|abbreviations?|emojis?|em[- ]?dash(?:es)?|boilerplate|over-?engineer\w*|wildcard imports?"
    r"|nested ternar\w+|(?:unnecessary|obvious|inline|useless|redundant) comments?|comments that"
    r" \w+|bullet points|filler|jargon|work-?arounds|backwards?[- ]compat\w*|shims?|fallbacks?"
    r"|stubs?|marketing (?:speak|language)|fluff|hype|markdown files?)"
)
TOOL = (
    r"(?:mise|make|npm|pnpm|yarn|bun|npx|tsx|deno|pytest|unittest|vitest|jest|tox|nox|uv|pip"
    r"|poetry|conda|cargo|gradle|maven|gh|git|rg|ripgrep|grep|sed|awk|fd|find|docker|podman|eslint"
    r"|prettier|ruff|black|biome|golangci-lint|go (?:test|run|build|vet)|tabs|spaces|the \w+"
    r" tools?)"
)
# What the program is or shows; a sentence with one of these is about the program.
THINGS = (
    r"\b(?:users?|customers?|buttons?|pages?|screens?|dialogs?|modals?|menus?|columns?|fields?"
    r"|rows?|endpoints?|hooks?|handlers?|flags?|params?|parameters?|structs?|subprocess|threads?"
    r"|queries|tables?|json|yaml|metadata|payloads?|timestamps?|tokens?|checkpoints?|sessions?"
    r"|lists?|values?|state|status|runner|bot|installer|the (?:output|ui|cli|app|server|client"
    r"|function|method|class|command|agent|hook|parser|worker|plugin))\b"
)
NAMES = (
    r"\b\w+\(\)|(?-i:\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w*)|\b\w+_\w+|(?<!\w)--?[a-z][\w-]+"
    r"|\b[\w-]+/[\w./-]+\.\w{1,5}\b"
)
PRODUCT = pattern(rf"\u00b7|{NAMES}|{THINGS}|\bthe api\b")
# What ties a sentence to this one change.
TODAY = pattern(
    r"\b(?:yet|(?:for|right) now|now$|today|tomorrow|this time|just (?:this )?once|temporarily"
    r"|for (?:the moment|this|that|these|those)\b|in (?:this|that) (?!repo|project|code ?base"
    r"|house)"
    r"|let me (?:first|check|see|think|look)|at the moment|for the current)\b|\bt?here$|\bneeded$"
)
# When, how or why an agent does something: the speaker, or the agent's own next step.
CIRCUMSTANCE = (
    r"(?:without (?:asking|checking|telling|testing|reading|running|looking|verifying|being asked"
    r"|permission|approval|my|me)|unless (?:i|asked|told|we agreed)|until i|before i(?:'ve)?"
    r"|(?:when|if) i (?:only |just |didn'?t |haven'?t )*(?:ask|say|said|want|tell|told)\w*"
    r"|(?:when|if|until|unless) you(?:'re|'ve| are| have)? ?(?:haven'?t|didn'?t|don'?t|not|unsure"
    r"|done|finished|can|sure|know|tried|tested|verified|checked|ran|read)"
    r"|(?:that |you |stuff |things )(?:i|you) (?:haven'?t|didn'?t|did not|never|have not|already"
    r"|edit\w*|chang\w*|wrote)|just to (?:make|get|silence|shut|please)|to (?:make|get) (?:it|the"
    r" tests?|tests?|ci|the build) (?:pass|green|to pass)|(?:isn'?t|aren'?t|not) part of"
    r"|(?:nothing|not) to do with|behind\b|instead of (?:asking|guessing|reading|checking|fixing)"
    r"|ahead of me|on your own|by hand|manually)"
)
GENERAL = (
    r"(?:every|each|any|all|whenever|always|never|ever|in general|generally|by default|as a rule"
    r"|every time|each time|any ?time|all the time|in (?:the )?future|next time|from (?:now|here)"
    r" on|going forward|as always|as usual|everywhere|anything|everything)"
)


_OFFERED = pattern(
    r"\?\s*$|\b(?:shall|should|may|can) i\b|\bwant me to\b|\bi(?:'ll| will|'d| would)\b"
    r"|\b(?:ready|about|going) to\b|\blet me know if\b.{0,80}\?"
)
_FINISHED = pattern(
    r"\b(?:done|complete[d]?|finished|implemented|fixed|added|created|updated|works?|working|ready"
    r"|pass(?:es|ed|ing)?|green|all set|committed|pushed|refactored)\b"
)


def told_of(match: re.Match[str], before: str) -> bool:
    """Whether the agent's last words tell of the step that was named as taken, not as offered."""
    named = match["verb"]
    forms = next((told for base, told in _TOLD if base.fullmatch(named)), None)
    return forms is not None and bool(forms.search(before)) and not _OFFERED.search(before)


def finished(_: re.Match[str], before: str) -> bool:
    """Whether the agent's last words tell of finished work."""
    return bool(_FINISHED.search(before)) and not before.rstrip().endswith("?")
