"""What English sentences tell about the person: who they are and what they like.

A mood, a plan for this change, praise and what others do are none of these. In doubt, nothing.
"""

from __future__ import annotations

from reverie.embedded.cues_orders import PROGRAM
from reverie.embedded.sentences import SentenceRule, pattern

_PASSING = pattern(
    r"\b(?:today|tonight|yesterday|this (?:morning|week|weekend|time|one|approach|idea|way|option)"
    r"|option|right now|at the moment|for now|lately|recently|it|them|those|these|that|this"
    r"|the idea|how about|can you|could you|can we|could we|let's)\b"
)
_THING = (
    r"(?!it\b|this|that|these|those|them|him|her|you\b|your|how\b|what\b|to\b|the\b|when\b|where\b"
    r"|hearing|seeing|being\b|my\b|spending|not\b|having\b|knowing|helping|every\b|all\b|our\b"
    r"|option|both\b|\d)"
)
_VERY = (
    r"(?:(?:really|absolutely|totally|simply|just|truly|especially|particularly|always|generally"
    r"|usually|strongly|personally|much|so) )*"
)
_JOBS = (
    r"(?:\w+ ){0,3}?(?:engineer|developer|programmer|designer|manager|teacher|professor|lecturer"
    r"|student|nurse|doctor|physician|lawyer|writer|author|journalist|architect|scientist"
    r"|researcher|analyst|consultant|founder|ceo|cto|administrator|admin|sysadmin|sre|devops"
    r"|tester|accountant|artist|musician|chef|beginner|novice|expert|newcomer|veteran|freelancer"
    r"|contractor|maintainer|mechanic|therapist|counselor|coach|veterinarian|pilot|firefighter"
    r"|photographer|editor|translator|librarian|biologist|chemist|physicist|statistician"
    r"|mathematician|economist|salesperson|recruiter|intern|postdoc|phd)"
)

PREFERENCES = (
    SentenceRule("preference", pattern(r"^call me (?-i:[A-Z])\w+$")),
    SentenceRule(
        "preference",
        pattern(
            r"^my (?:main |big |biggest |long-term |ultimate )?(?:goal|dream|ambition|hobby"
            r"|hobbies|passion) (?:is|are|has always been) .{6,}"
        ),
        unless=pattern(r"\b(?:today|this (?:pr|branch|change|sprint|refactor\w*|function|test))\b"),
    ),
    SentenceRule(
        "preference",
        pattern(
            r"^i (?:want|hope|plan|dream|intend) (?:to|of) (?:becom(?:e|ing)|be(?:ing)? an?"
            r"|start(?:ing)? my own|open(?:ing)? my own|build(?:ing)? my own"
            r"|learn(?:ing)? (?:to )?\w+|writ(?:e|ing) a book) .*"
        ),
        unless=_PASSING,
    ),
    SentenceRule(
        "preference",
        pattern(
            rf"^i(?:'ve| have)? {_VERY}(?:prefer(?! not to say)|favou?r|do(?:n'?t| not) like"
            rf"|can't stand|cannot stand|hate|dislike|despise|loathe) {_THING}(?:\S+ ?){{1,}}"
        ),
        unless=_PASSING,
    ),
    SentenceRule(
        "preference",
        pattern(rf"^(?:i|we)(?: also| do)? {_VERY}(?:love|adore|enjoy) {_THING}(?:\w+ing\b|\w+).*"),
        unless=_PASSING,
    ),
    SentenceRule(
        "preference",
        pattern(
            r"^i(?:'ve| have) always (?:loved|had a (?:love|passion|thing|soft spot) for"
            r"|been (?:into|fond of|passionate about|drawn to|fascinated by)|preferred|hated"
            r"|wanted to)\b.*"
        ),
        unless=_PASSING,
    ),
    SentenceRule(
        "preference",
        pattern(
            rf"^i(?:'m| am) {_VERY}(?:a (?:big|huge|massive|real) fan of|passionate about|drawn to"
            rf"|into|fond of|fascinated by|obsessed with|a sucker for) {_THING}.*"
        ),
        unless=_PASSING,
    ),
    SentenceRule(
        "preference",
        pattern(r"^my (?:all-time )?favou?rite \w+(?: \w+){0,2} (?:is|are|has always been) .*"),
    ),
    SentenceRule(
        "preference",
        pattern(
            rf"^i {_VERY}(?:like|enjoy|want|need|expect) (?:my |your )?(?:\w+ ){{0,3}}(?:answers"
            rf"|replies|explanations|summaries|commits|commit messages|diffs|code reviews"
            rf"|variable names|docstrings|function names|examples)\b.*"
        ),
        unless=pattern(r"\b(?:these|those|this|the|that)\b"),
    ),
    SentenceRule(
        "preference",
        pattern(
            r"^(?:i(?:'m| am) (?:also |now |currently )?(?:doing|learning|training for|studying)"
            r"|i(?:'ve| have) (?:been (?:doing|practi[sc]ing|playing|learning|training in|studying"
            r"|trying out)|taken up|started (?:learning|playing|practi[sc]ing))) (?!it\b|this|that"
            r"|these|some|a lot|my best|so\b|well|ok|okay|good|great|fine|better|all|the |my "
            r"|really|research|work|what).*"
        ),
        unless=pattern(
            r"\b(?:today|tonight|yesterday|this (?:morning|week|one)|right now|issue|bug|fix"
            r"|branch|fine|well)\b"
        ),
    ),
    SentenceRule(
        "preference",
        pattern(
            r"^(?:i use|i work with|i'm using|i am using|i always use|i usually use"
            r"|i mostly use) (?:vim|neovim|emacs|vs ?code|jetbrains|pycharm|fish|zsh|bash|tmux|nix"
            r"|arch|linux|macos|windows|a screen reader|dvorak|colemak)\b.*"
        ),
    ),
)

ROLES = (
    SentenceRule(
        "role",
        pattern(
            r"^my (?:time ?zone|name|background|native language|mother tongue|first language|job"
            r"|role|profession|working hours|company|day job) (?:is|are) .{2,}"
            r"|^i (?:mostly|mainly|usually|only) (?:write|code in|program in|work (?:in|with|on)"
            r"|do) "
            r"[\w+#.]+(?: and [\w+#.]+)*\b.*"
            r"|^i(?:'m| am) (?:usually |always |mostly |often )?on (?:windows|linux|mac ?os|a mac"
            r"|mac|arch"
            r"|ubuntu|debian|fedora|wsl|my phone|mobile|a phone)\b.*"
            r"|^i(?:'m| am) the only (?:\w+ )?(?:one|person|dev\w*|designer|engineer)\b.*"
            r"|^i work (?:nights|days|remotely|part[- ]time|full[- ]time|mornings|evenings|weekends"
            r"|alone)\b.*"
            r"|^my (?:english|german|french|spanish|chinese|japanese|math|python|git) is .{3,}"
            rf"|^as an? (?:{_JOBS}|newbie|layman|non-\w+),? i .{{4,}}|^i(?:'m"
            rf"| am) in (?-i:[A-Z])[a-z]+$"
            r"|^i (?:do|handle|own|maintain|look after|run) the (?:\w+ ){1,2}(?:here|at|for)\b.*"
            r"|^i(?:'ve| have) never (?:used|worked with|done|touched|written|programmed) \w+.*"
        ),
        unless=pattern(r"\b(?:this|that|now|today|function|class|variable|field)\b"),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^i(?:'m| am) an? (?!bit|little|lot|few|ton|huge|big|fan|firm|strong|total|part"
            r"|member of this)(?:\w+ ){1,3}(?:for|at|on|in) (?:the|a|an|our|my) \w+.*"
        ),
        unless=pattern(
            r"\b(?:hurry|rush|mood|loss|meeting|call|middle|good place|branch|file|repo"
            r"|middle of)\b"
        ),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^i(?:'ve| have)? (?:also |just |recently |finally )*(?:joined|been part of) (?:a"
            r"|an) (?:[\w-]+ ){0,3}(?:group|club|team|band|choir|gym|church|community|crew|brigade"
            r"|studio|company|startup|program)\b.*"
        ),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^i (?:started|began|took up) \w+ing (?:\w+ ){0,3}?(?:\d+|one|two|three|four|five|six"
            r"|seven|eight|nine|ten|a few|several) years ago\b.*"
        ),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^i(?:'ve| have) had (?:my \w+|a \w+) for (?:over |about )?(?:\d+|two|three|four|five"
            r"|six|seven|eight|nine|ten|many) years\b.*"
        ),
    ),
    SentenceRule(
        "role",
        pattern(
            rf"^(?:i(?:'m| am)|i(?:'ve| have) been|i work(?:ed)? as|i'm working as) (?:now "
            rf"|currently |also |just |mostly )?(?:an?|the|by training an?|one of the) {_JOBS}\b.*"
        ),
        unless=pattern(r"\b(?:if i|as if|big fan)\b|^i(?:'m| am) not\b"),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^i(?:'m| am) (?:severely |very |quite |also )?(?:allergic to|colou?r ?blind|dyslexic"
            r"|deaf|blind|vegetarian|vegan|diabetic|lactose intolerant|left-handed|new to \w+"
            r"|retired|pregnant|bilingual|based in|from (?-i:[A-Z])\w+|originally from)\b.*"
        ),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^(?:the (?:problem|thing) (?:is )?(?:that )?)?i(?:'m| am)? (?:(?:really |very "
            r"|quite |pretty |so |a bit |completely )*(?:bad (?:at|with)|new to|(?:not|in"
            r"|un) ?(?:that |very |really |so )?(?:good (?:at|with)|experienced (?:in|with)"
            r"|familiar with))|(?:do not|don'?t|haven'?t|have no|have little|have never)(?: really"
            r"| have| that| much| any)* (?:know (?:[\w+#.-]+ ){1,3}(?:at all|very well|that well)"
            r"|(?:experience|expertise|background|knowledge) (?:in|with|of)|used \w+ before))\b.*"
        ),
        unless=pattern(r"\b(?:if|this|these|why|whether)\b"),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^(?:the )?company i work (?:for|at) is .{2,}"
            r"|\bi(?:'m| am|m) (?:being |getting |currently |now )*(?:onboarded|tasked with"
            r"|in charge of|assigned to|responsible for)\b.{4,}"
        ),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^i (?:work (?:as|at|for|in)|teach|study|live in|grew up in|was born in|moved to"
            r"|major(?:ed)? in|graduated (?:from|in)|speak|run (?:a|my own)|own an?|lead (?:the|a)"
            r"|manage (?:the|a)|have (?:\d+|two|three|four|five|several|many) (?:kids|children"
            r"|dogs|cats|sons|daughters|siblings|brothers|sisters|years))\b.{3,}"
        ),
        unless=pattern(r"\b(?:this|that|the (?:repo|branch|folder|file)|with you|tests?)\b"),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^(?:since \w+ \w+ \w+, )?i(?:'ve| have)? (?:just |recently "
            r"|finally )?(?:start(?:ed)?|beg[au]n) (?:teaching|working (?:as|at|for)|volunteering"
            r"|a new job|my (?:own|new) \w+|studying|an? (?:business|company|shop|store"
            r"|studio))\b.*"
        ),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^i (?:just |recently |finally )?(?:got (?:married|engaged|divorced|promoted|hired"
            r"|laid off|a (?:new )?(?:job|promotion|dog|puppy|cat|kitten))|(?:quit|lost"
            r"|left) my job|had (?:a|my) (?:baby|son|daughter)|adopted (?:a|an|my) \w+"
            r"|joined the \w+|opened (?:my|a|an) (?:own )?\w+|passed away)\b.*"
        ),
        unless=pattern(r"\b(?:joined the (?:call|meeting|chat|branch|channel))\b"),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^(?:my (?:girlfriend|boyfriend|partner|fianc[eé]e?|wife|husband) and i|we) (?:just "
            r"|recently |finally )?(?:had (?:an? |our )(?:[\w,]+ ){0,5}wedding|got (?:married"
            r"|engaged)|are getting married|bought (?:a|our) (?:house|home)|are expecting)\b.*"
        ),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^my (?:own |online |new |little |small |family )*(?:\w+ ){0,2}(?:store|shop|business"
            r"|company|studio|restaurant|bakery|startup) (?:is (?:now |finally )?open|opened"
            r"|is called|sells|makes)\b.*"
        ),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^i(?:'ve| have) been (?:\w+ing|an? \w+)(?: \S+){0,6} (?:for|since) (?:over |about "
            r"|almost |more than |the last )?(?:\d+|ten|twenty|two|three|four|five|six|seven|eight"
            r"|nine|many|19\d\d|20\d\d) ?(?:years|decades|months)?\b.*"
        ),
        unless=PROGRAM,
    ),
    SentenceRule(
        "role",
        pattern(
            r"^(?:\S+ ){0,6}my (?:dance |basketball |football |soccer |chess |debate "
            r"|running )?(?:crew|team|band|troupe|choir) (?:took home|won|came) (?:first|second"
            r"|third|the|a|an|in)\b.*"
        ),
    ),
)
