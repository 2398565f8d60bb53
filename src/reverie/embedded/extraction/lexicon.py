"""The words in which people speak of an agent's work, each class of them with a sign.

Who is spoken of, in which mode, about what: tables alone. A word that stands in two of them has
the sign of the later one; a verb that is a thing of the work as well ("test", "commit") is told
apart by its place in the sentence.
"""

from __future__ import annotations

# Verbs of an agent's steps: surely one (c, past C, -ing j), one with something of the work beside
# it (v, V, J), one that is a fault by its name (R). A low line is a hyphen, a space or nothing.
STEPS = """
commit push force_push amend rebase squash stash merge refactor rewrite reformat hard_code mock lint
test verify double_check reread re_read look ask tell explain summarise summarize review install
touch revert investigate research plan listen agree document propose suggest rerun re_run benchmark
read cite reuse bypass rely_on trust sign_off speak discuss consult reproduce brainstorm analyse
analyze run check validate confirm format answer reply respond wait stop search skip ignore
paste undo try grep compile build pull proceed continue approve clarify
"""
MAKES = """
use write add create make keep put include show give start edit change modify delete remove update
open name comment prefer do leave follow mention split break stick work cover fix move print rename
introduce pin import link implement disable generate regenerate restructure duplicate copy kill drop
bump wrap swallow hide clean mix say report restore silence suppress go stay code execute deploy
overwrite replace design weaken burn finish decide invoke mark track choose
"""
FAULTS = """
guess assume speculate hallucinate fabricate invent pretend cheat overthink over_think
over_complicate over_engineer reinvent rush ramble hand_wave bloat truncate improvise apologise
apologize claim
"""
DOUBLED = "commit reformat plan format stop skip grep prefer pin drop wrap"
IRREGULAR = """
rewrite rewrote rewritten rewriting, reread reread reread rereading, re_read re_read re_read
re_reading, tell told told telling, agree agreed agreed agreeing, rerun reran rerun rerunning,
re_run re_ran re_run re_running, read read read reading, rely_on relied_on relied_on relying_on,
sign_off signed_off signed_off signing_off, speak spoke spoken speaking, run ran run running, undo
undid undone undoing, build built built building, write wrote written writing, make made made
making, keep kept kept keeping, put put put putting, show showed shown showing, give gave given
giving, do did done doing, leave left left leaving, split split split splitting, break broke broken
breaking, stick stuck stuck sticking, hide hid hidden hiding, say said said saying, go went gone
going, overwrite overwrote overwritten overwriting, overthink overthought overthought overthinking,
over_think over_thought over_thought over_thinking
"""

SIGNS: dict[str, str] = {
    # who
    "y": "you|u|ya",
    "P": "yourself",
    "r": "your|ur|yours",
    "i": "i|me|my|myself|mine|im|ive",
    "w": "we|us|our|ours",
    "L": "lets|let us",
    "H": "this|that|it|these|those|them|they|its|he|she|his|her",
    "_": "the",
    # helpers and how they are turned
    "a": "do|does|have|has|had|are|is|was|were|be|been|being|am|'re|'ve|'s|'ll|'m|'d",
    "B": "did",
    "K": "can|could|would|will|may|might|ca|wo",
    "d": "should|must|shall|need to|needs to|have to|has to|had to|supposed to|ought to|got to"
    "|allowed to|meant to|want you to|need you to|expect you to|like you to|rather you",
    "n": "not|n't",
    "x": "never|not ever|under no circumstances",
    "0": "no|zero",
    "!": "please|pls|plz|kindly",
    "M": "make sure|be sure|ensure|remember to|do not forget to|mindful|make certain|see to it"
    "|important that|important to",
    "o": "to",
    # what was wrong
    "q": "why|how come|how often|how many",
    "E": "even|bother|bothered|seriously",
    "k": "again|still|keep|keeps|kept|times|once more|once again|yet again|repeatedly"
    "|same mistake|already|for no reason",
    "F": "forgot|forget|forgetting|forgotten|skipped|skip|skipping|missed|failed to|fail to"
    "|failing to|ignored|ignoring|ignore|neglected|neglected to|left out|overlooked|refuse to"
    "|refused to|omitted",
    "A": "told|asked|said|mentioned|reminded|agreed|discussed|explained|specified|instructed"
    "|requested|repeated|warned|ask for|asked for|ask you to",
    "R": "make up|made up|making up|make stuff up|made stuff up|make things up|made that up"
    "|made it up|making things up|making stuff up|making them up|jump to|jumped to|jumping to"
    "|jump ahead|jumped ahead|jumping ahead|cut corners|cutting corners|in circles|paper over"
    "|papering over|gloss over|took the liberty|went ahead|get ahead|getting ahead"
    "|repeat yourself|repeating yourself|carried away|assumption|assumptions|lie|lied|lying"
    "|sidetracked|waste time|wasted time|wasting time|waste of time|waste tokens|wasting tokens"
    "|burning tokens|lazy|sloppy|careless|agree with everything|sugarcoat|overkill"
    "|to make it pass|to make them pass|to make the test pass|to make the tests pass"
    "|to make tests pass|to get it to pass|got ahead|jumped the gun|too hasty|overstepped",
    "m": "too much|too many|too long|too big|too large|too verbose|too wordy|too short|too vague"
    "|too detailed|too chatty|too complicated|too complex|too far|to much|to many|a lot of"
    "|lots of|tons of|beyond|more than|so many|so much|overly|blindly|verbose|wordy|chatty|whole"
    "|entire|everywhere|half|huge|long-winded",
    "W": "unnecessary|unnecessarily|useless|redundant|pointless|superfluous|unrelated"
    "|out of scope|random|randomly|excessive|needless|not necessary|no need|not needed",
    "s": "stop|quit|avoid|refrain from|no more|enough with|stay away from|cease",
    "S": "instead of|rather than|instead|rather|than",
    # how far it reaches
    "g": "always|every time|each time|every single time|all the time|any time|anytime|ever"
    "|at all times|without exception|for every|for each|with every|with each|on every|on each"
    "|constantly|consistently|fully|completely|entirely|strictly",
    "e": "each|every|whenever|per",
    "Y": "any|anything",
    "X": "any other|anything else|anything other|something else|the rest|the others|another",
    "1": "from now on|from here on|from this point on|going forward|new rule|house rule|one rule"
    "|golden rule|rule of thumb",
    "h": "moving forward|in future|in the future|for the future|next time|by default|as a rule"
    "|as a general rule|in general|as usual|as always|as you go|along the way|more often"
    "|more frequently|generally",
    "b": "before|after|prior to|until|till|while|upon|at the end of",
    "u": "unless|without|except",
    "f": "if|when|once|as soon as|in case|where|as",
    "t": "first|beforehand|up front|upfront",
    "l": "only|just|solely|nothing more|nothing else",
    "D": "yet|for now|right now|today|tomorrow|tonight|this time|just this once|temporarily|here"
    "|at the moment|for the moment|later|currently|for this|for that|this one|that one"
    "|each of these|all of these|each of those|any of these",
    "Z": "says|saying that|reads|states|titled|translate|system prompt|called|prompt",
    # about what: manner, tastes, texts for people, norms, the work, the program
    "+": "small|smaller|minimal|minimum|atomic|short|shorter|concise|brief|separate|simple"
    "|focused|tiny|incremental|meaningful|descriptive|conventional|readable|idiomatic|consistent"
    "|thorough|thoroughly|careful|carefully|properly|specific|precise|self-contained|green|clean"
    "|passing|tested|documented|typed|plain|english|chinese|german|french|spanish|japanese"
    "|bullet points|one at a time|one thing at a time|step by step|better|proper|strict|closely"
    "|real|actual|existing|failing",
    "z": "emoji|emojis|placeholder|placeholders|todo|todos|mocks|stubs|stub|workaround"
    "|workarounds|fallback|fallbacks|shim|shims|boilerplate|hack|hacks|dead code|magic numbers"
    "|globals|global state|panics|panic|sleeps|hardcoded values|debug prints|print statements"
    "|docstrings|abbreviations|em dashes|em dash|jargon|fluff|filler|abstractions"
    "|backwards compat|backward compatibility|backwards compatibility|wildcard imports"
    "|commented-out code|apologies|summaries|new files|extra files|markdown files|dependencies",
    "G": "commit message|commit messages|branch name|branch names|pr title|pr titles"
    "|pr description|pr descriptions|test names|variable names|changelog entry|changelog entries"
    "|release notes",
    "O": "acceptable|standards|standard|convention|conventions|guidelines|style guide|workflow"
    "|approval|permission|consent|confirmation|go-ahead|sign-off|spec|specs|specification"
    "|instructions|instruction|requirements|agreement|solution|a fix|a real fix|an option|scope"
    "|the task|okay with|code style|coding style|style of|way we",
    "=": "be more|be careful|be extra|be concise|be brief|be thorough|be specific|be precise"
    "|be honest|be direct|be critical|be skeptical|be terse|be very",
    "Q": "unsure|not sure|in doubt|unclear|stuck",
    "U": "stick to|keep to|stay within|adhere to|abide by|respect|comply with|follow|following"
    "|conform to|go by|stay in|stay on",
    "p": "test|tests|unit tests|test suite|test case|test cases|assertion|assertions|coverage"
    "|linter|linting|lint|formatter|formatting|type hints|type checks|type check|types|ci|build"
    "|builds|commit|commits|commit history|branch|branches|pr|prs|pull request|pull requests"
    "|changelog|doc|docs|docstring|documentation|readme|comment|comments|codebase|code base|code"
    "|source code|source|diff|diffs|refactor|refactors|refactoring|changes|change|fix|edit|step"
    "|changeset|plan|plans|answer|answers|reply|replies|response|responses|summary|explanation"
    "|explanations|question|questions|dependency|library|libraries|fixture|fixtures|feedback"
    "|review|reviews|line number|line numbers|lines|adr|abstraction|helper|helpers|temp files"
    "|generated files|error messages|root cause|bug fix|bugfix|subagent|subagents|worktree"
    "|worktrees|full suite|migrations|git|prod|production|claims|files|warning|warnings"
    "|violations|secrets|logs|stack trace|cause|symptom|symptoms|existing code|implementation"
    "|tdd|steps|tokens|git history|feature branch|main branch|staging|typos|names|tool|tools"
    "|task|tasks|mise|make|npm|pnpm|yarn|bun|pytest|vitest|jest|uv|pip|poetry|cargo|gradle|rg"
    "|ripgrep|docker|eslint|prettier|ruff|rubocop|mypy|playwright",
    "T": "source of truth|user|users|customer|customers|button|buttons|page|pages|screen|screens"
    "|dialog|modal|menu|column|columns|field|fields|row|rows|endpoint|endpoints|hook|hooks"
    "|handler|handlers|flag|flags|param|params|parameter|parameters|struct|subprocess|thread"
    "|query|queries|table|tables|json|yaml|metadata|payload|timestamp|token|checkpoint"
    "|checkpoints|session|sessions|list|value|values|state|status|runner|bot|installer|ui|cli"
    "|app|server|client|function|functions|method|class|command|agent|agents|parser|worker"
    "|plugin|component|components|api|database|db|schema|style|styles|css|color|colour|font"
    "|layout|image|images|icon|header|footer|sidebar|form|forms|input|inputs|text|label|labels"
    "|url|route|routes|feature|features|version|data|model|email|login|password|video|game"
    "|player|section|link|links|window|frontend|backend|service|services|container|containers"
    "|cache|config|settings|variable|variables|object|array|string|node|nodes|graph|chart"
    "|display|animation|card|tab|tabs|order|product|products|price|nil|null|undefined|loop|index"
    "|exception|response body|website|site|job|jobs|module",
}

# Words that say nothing here, and those that join clauses.
DROPPED = """
ok okay yes yeah yep yup nope nah hmm hm hmmm also well oh ah right sure great thanks thank btw
alright cool nice wait wtf dude man bro jesus ffs ugh argh gah lol um uh perfect actually anyway hey
hi hello finally lastly really very quite simply literally obviously clearly basically probably
apparently fucking bloody goddamn damn fuck hell heck maybe perhaps now own honestly exactly kind
bit little super earth come fyi a an some
"""
JOINING = "and but or so then because since nor"
# Words that count also with a letter wrong: long, frequent, and like no other word.
MISTYPED = """
always without unless instead before should commit commits committed committing comment comments
branch testing verify verified implement implemented implementing documentation dependency
dependencies unnecessary forgot permission approval question refactor refactored refactoring assume
assumed assuming guessing changes answer explain review pushing deleted deleting removed rewrite
rewrote summary changelog repeatedly
"""
# Written as one word, said as two.
GLUED = {
    "youre": "you 're",
    "youve": "you 've",
    "dont": "do not",
    "didnt": "did not",
    "shouldve": "should have",
    "gotta": "got to",
    "cannot": "can not",
    "thats": "that 's",
    "let's": "lets",
}
