"""What English sentences tell about the person, the project and outside systems.

Who the person is and likes, what was approved and why, by when something is due, who does what
and why, where things are kept. A mood, a plan for this change, praise and what others do are
none of these. In doubt, nothing.
"""

from __future__ import annotations

from reverie.providers.embedded.extraction_found import Rule, pattern
from reverie.providers.embedded.extraction_work import PRODUCT, WORK

_PASSING = pattern(
    r"\b(?:today|tonight|yesterday|this (?:morning|week|weekend|time"
    r"|one|approach|idea|way|option)|option"
    r"|right now|at the moment|for now|lately|recently|it|them|those|these|that|this|the idea"
    r"|how about|can you|could you|can we|could we|let's)\b"
)
_THING = (
    r"(?!it\b|this|that|these|those|them|him|her|you\b|your|how\b|what\b"
    r"|to\b|the\b|when\b|where\b|hearing|seeing"
    r"|being\b|my\b|spending|not\b|having\b|knowing|helping|every\b|all\b|our\b|option|both\b|\d)"
)
_VERY = (
    r"(?:(?:really|absolutely|totally|simply|just|truly|especially|particularly"
    r"|always|generally|usually|strongly|personally|much|so) )*"
)
_JOBS = (
    r"(?:\w+ ){0,3}?(?:engineer|developer|programmer|designer|manager"
    r"|teacher|professor|lecturer|student|nurse|doctor"
    r"|physician|lawyer|writer|author|journalist|architect|scientist"
    r"|researcher|analyst|consultant|founder|ceo|cto"
    r"|administrator|admin|sysadmin|sre|devops|tester|accountant|artist"
    r"|musician|chef|beginner|novice|expert"
    r"|newcomer|veteran|freelancer|contractor|maintainer|mechanic|therapist"
    r"|counselor|coach|veterinarian|pilot"
    r"|firefighter|photographer|editor|translator|librarian|biologist"
    r"|chemist|physicist|statistician|mathematician"
    r"|economist|salesperson|recruiter|intern|postdoc|phd)"
)

PREFERENCES = (
    Rule(
        "preference",
        pattern(
            r"^my (?:main |big |biggest |long-term |ultimate )?(?:goal"
            r"|dream|ambition|hobby|hobbies|passion) (?:is|are|has always"
            r" been) .{6,}"
        ),
        unless=pattern(r"\b(?:today|this (?:pr|branch|change|sprint|refactor\w*|function|test))\b"),
    ),
    Rule(
        "preference",
        pattern(
            r"^i (?:want|hope|plan|dream|intend) (?:to|of) (?:becom(?:e"
            r"|ing)|be(?:ing)? an?|start(?:ing)? my own|open(?:ing)? my"
            r" own|build(?:ing)? my own|learn(?:ing)? (?:to )?\w+|writ"
            r"(?:e|ing) a book) .*"
        ),
        unless=_PASSING,
    ),
    Rule(
        "preference",
        pattern(
            rf"^i(?:'ve| have)? {_VERY}(?:prefer(?! not to say)|favou?r"
            rf"|can't stand|cannot stand|hate|dislike|despise|loathe) {_THING}"
            rf"(?:\S+ ?){{1,}}"
        ),
        unless=_PASSING,
    ),
    Rule(
        "preference",
        pattern(rf"^(?:i|we)(?: also| do)? {_VERY}(?:love|adore|enjoy) {_THING}(?:\w+ing\b|\w+).*"),
        unless=_PASSING,
    ),
    Rule(
        "preference",
        pattern(
            r"^i(?:'ve| have) always (?:loved|had a (?:love|passion|thing"
            r"|soft spot) for|been (?:into|fond of|passionate about|drawn"
            r" to|fascinated by)|preferred|hated|wanted to)\b.*"
        ),
        unless=_PASSING,
    ),
    Rule(
        "preference",
        pattern(
            rf"^i(?:'m| am) {_VERY}(?:a (?:big|huge|massive|real) fan of"
            rf"|passionate about|drawn to|into|fond of|fascinated by|obsessed"
            rf" with|a sucker for) {_THING}.*"
        ),
        unless=_PASSING,
    ),
    Rule(
        "preference",
        pattern(r"^my (?:all-time )?favou?rite \w+(?: \w+){0,2} (?:is|are|has always been) .*"),
    ),
    Rule(
        "preference",
        pattern(
            rf"^i {_VERY}(?:like|enjoy|want|need|expect) (?:my |your )?"
            rf"(?:\w+ ){{0,3}}(?:answers|replies|explanations|summaries"
            rf"|commits|commit messages|diffs|code reviews|variable names"
            rf"|docstrings|function names|examples)\b.*"
        ),
        unless=pattern(r"\b(?:these|those|this|the|that)\b"),
    ),
    Rule(
        "preference",
        pattern(
            r"^(?:i(?:'m| am) (?:also |now |currently )?(?:doing|learning"
            r"|training for|studying)|i(?:'ve| have) (?:been (?:doing|practi[sc]ing"
            r"|playing|learning|training in|studying|trying out)|taken"
            r" up|started (?:learning|playing|practi[sc]ing))) (?!it\b"
            r"|this|that|these|some|a lot|my best|so\b|well|ok|okay|good"
            r"|great|fine|better|all|the |my |really|research|work|what).*"
        ),
        unless=pattern(
            r"\b(?:today|tonight|yesterday|this (?:morning|week|one)|right"
            r" now|issue|bug|fix|branch|fine|well)\b"
        ),
    ),
    Rule(
        "preference",
        pattern(
            r"^(?:i use|i work with|i'm using|i am using|i always use|i"
            r" usually use|i mostly use) (?:vim|neovim|emacs|vs ?code|jetbrains"
            r"|pycharm|fish|zsh|bash|tmux|nix|arch|linux|macos|windows"
            r"|a screen reader|dvorak|colemak)\b.*"
        ),
    ),
)

ROLES = (
    Rule(
        "role",
        pattern(
            r"^i(?:'m| am) an? (?!bit|little|lot|few|ton|huge|big|fan|firm"
            r"|strong|total|part|member of this)(?:\w+ ){1,3}(?:for|at"
            r"|on|in) (?:the|a|an|our|my) \w+.*"
        ),
        unless=pattern(
            r"\b(?:hurry|rush|mood|loss|meeting|call|middle|good place"
            r"|branch|file|repo|middle of)\b"
        ),
    ),
    Rule(
        "role",
        pattern(
            r"^i(?:'ve| have)? (?:also |just |recently |finally )*(?:joined"
            r"|been part of) (?:a|an) (?:[\w-]+ ){0,3}(?:group|club|team"
            r"|band|choir|gym|church|community|crew|brigade|studio|company"
            r"|startup|program)\b.*"
        ),
    ),
    Rule(
        "role",
        pattern(
            r"^i (?:started|began|took up) \w+ing (?:\w+ ){0,3}?(?:\d+"
            r"|one|two|three|four|five|six|seven|eight|nine|ten|a few|several)"
            r" years ago\b.*"
        ),
    ),
    Rule(
        "role",
        pattern(
            r"^i(?:'ve| have) had (?:my \w+|a \w+) for (?:over |about )?"
            r"(?:\d+|two|three|four|five|six|seven|eight|nine|ten|many)"
            r" years\b.*"
        ),
    ),
    Rule(
        "role",
        pattern(
            rf"^(?:i(?:'m| am)|i(?:'ve| have) been|i work(?:ed)? as|i'm"
            rf" working as) (?:now |currently |also |just |mostly )?(?:an?"
            rf"|the|by training an?|one of the) {_JOBS}\b.*"
        ),
        unless=pattern(r"\b(?:if i|not an?|as if|big fan)\b"),
    ),
    Rule(
        "role",
        pattern(
            r"^i(?:'m| am) (?:severely |very |quite |also )?(?:allergic"
            r" to|colou?r ?blind|dyslexic|deaf|blind|vegetarian|vegan|diabetic"
            r"|lactose intolerant|left-handed|new to \w+|retired|pregnant"
            r"|bilingual|based in|from (?-i:[A-Z])\w+|originally from)\b.*"
        ),
    ),
    Rule(
        "role",
        pattern(
            r"^i (?:work (?:as|at|for|in)|teach|study|live in|grew up in"
            r"|was born in|moved to|major(?:ed)? in|graduated (?:from|in)"
            r"|speak|run (?:a|my own)|own an?|lead (?:the|a)|manage (?:the"
            r"|a)|have (?:\d+|two|three|four|five|several|many) (?:kids"
            r"|children|dogs|cats|sons|daughters|siblings|brothers|sisters"
            r"|years))\b.{3,}"
        ),
        unless=pattern(r"\b(?:this|that|the (?:repo|branch|folder|file)|with you|tests?)\b"),
    ),
    Rule(
        "role",
        pattern(
            r"^(?:since \w+ \w+ \w+, )?i(?:'ve| have)? (?:just |recently"
            r" |finally )?(?:start(?:ed)?|beg[au]n) (?:teaching|working"
            r" (?:as|at|for)|volunteering|a new job|my (?:own|new) \w+"
            r"|studying|an? (?:business|company|shop|store|studio))\b.*"
        ),
    ),
    Rule(
        "role",
        pattern(
            r"^i (?:just |recently |finally )?(?:got (?:married|engaged"
            r"|divorced|promoted|hired|laid off|a (?:new )?(?:job|promotion"
            r"|dog|puppy|cat|kitten))|(?:quit|lost|left) my job|had (?:a"
            r"|my) (?:baby|son|daughter)|adopted (?:a|an|my) \w+|joined"
            r" the \w+|opened (?:my|a|an) (?:own )?\w+|passed away)\b.*"
        ),
        unless=pattern(r"\b(?:joined the (?:call|meeting|chat|branch|channel))\b"),
    ),
    Rule(
        "role",
        pattern(
            r"^(?:my (?:girlfriend|boyfriend|partner|fianc[eé]e?|wife|husband)"
            r" and i|we) (?:just |recently |finally )?(?:had (?:an? |our"
            r" )(?:[\w,]+ ){0,5}wedding|got (?:married|engaged)|are getting"
            r" married|bought (?:a|our) (?:house|home)|are expecting)\b.*"
        ),
    ),
    Rule(
        "role",
        pattern(
            r"^my (?:own |online |new |little |small |family )*(?:\w+ ){0,2}"
            r"(?:store|shop|business|company|studio|restaurant|bakery|startup)"
            r" (?:is (?:now |finally )?open|opened|is called|sells|makes)\b.*"
        ),
    ),
    Rule(
        "role",
        pattern(
            r"^i(?:'ve| have) been (?:\w+ing|an? \w+)(?: \S+){0,6} (?:for"
            r"|since) (?:over |about |almost |more than |the last )?(?:\d+"
            r"|ten|twenty|two|three|four|five|six|seven|eight|nine|many"
            r"|19\d\d|20\d\d) ?(?:years|decades|months)?\b.*"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "role",
        pattern(
            r"^(?:\S+ ){0,6}my (?:dance |basketball |football |soccer "
            r"|chess |debate |running )?(?:crew|team|band|troupe|choir)"
            r" (?:took home|won|came) (?:first|second|third|the|a|an|in)\b.*"
        ),
    ),
)

CONFIRMATIONS = (
    Rule(
        "confirmation",
        pattern(rf"^(?:please )?keep (?:doing (?:that|this|it)|\w+ing)\b.*\b{WORK}\b.*"),
        unless=PRODUCT,
    ),
    Rule(
        "confirmation",
        pattern(
            rf"^(?:i (?:really )?(?:like|love|appreciate)|love|good|nice"
            rf"|great) (?:how|that|the way) you .*\b(?:{WORK}|ask\w*|check\w*"
            rf"|explain\w*|verif\w+|kept|split|stopped)\b"
        ),
    ),
    Rule(
        "confirmation",
        pattern(
            r"^(?:good|great|right|excellent) (?:call|choice|decision|move"
            r"|thinking|idea) (?:on|to|in|with|about|not) .{6,}"
        ),
    ),
    Rule(
        "confirmation",
        pattern(
            r"^(?:thanks|thank you|good|great|nice) (?:job |work )?for"
            r" (?:asking|checking|splitting|keeping|testing|not|writing"
            r"|running|explaining|pointing) .{4,}"
        ),
        unless=PRODUCT,
    ),
    Rule(
        "confirmation",
        pattern(
            r"^(?:that|this)(?:'s| is| was) exactly (?:how|the way|what)"
            r" i (?:want|like|prefer|wanted|need|expect)\b.{6,}"
        ),
    ),
    Rule(
        "confirmation",
        pattern(
            r"^(?:the |a |one |your |this |that )?[\w ,-]{3,60}? (?:was"
            r"|is) (?:exactly )?(?:the right|a good|a great|the correct)"
            r" (?:call|choice|decision|move)\b.*"
        ),
    ),
    Rule(
        "confirmation",
        pattern(
            r"^(?:exactly|just) (?:like (?:this|that)|right),? (?:please"
            r" )?(?:keep|always|do it|next time|from now on)\b.*"
        ),
    ),
)
