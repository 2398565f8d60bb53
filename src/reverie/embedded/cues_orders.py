"""What English sentences order for good, and what they ask to be remembered by name.

An order lasts where its words say so ("from now on", "always … before you commit", "never push"),
where it is told as the way of the house ("we use X, not Y"), or where it is about all that the
agent writes ("comments in Spanish"). What must be so in the program is no order of this kind, nor
what is said of the file or the step in hand: the code will say it. In doubt, nothing.
"""

from __future__ import annotations

from reverie.embedded.sentences import SentenceRule, pattern

# Names that stand in code.
CALLED = (
    r"(?<!\w)\w{1,60}\(\)|(?<!\w)\w{0,40}_\w{1,40}|(?-i:\b[a-z]+[A-Z]\w*"
    r"|\b[A-Z][a-z]+[A-Z]\w*)(?<!GitHub)(?<!GitLab)"
    r"|(?<!\w)\w{1,60}\.(?:py|go|tsx?|jsx?|rs|java|cpp|md|json|toml|ya?ml|sh|sql|rb|vue|html|css)\b"
)
_PATH = r"(?:\.{0,2}/)?[\w.-]+/[\w./-]+"
_NAMES = rf"\u00b7+|@\S+|https?://\S+|(?<!\w)--?[a-z][\w-]*|{_PATH}|{CALLED}"
_THINGS = (
    r"(?:users?|customers?|buttons?|pages?|screens?|dialog|modal|menu|columns?|fields?|rows?"
    r"|endpoints?|hooks?|handlers?|flags?|params?|parameters?|query|queries|tables?|json|yaml"
    r"|metadata|payload|timestamp|token|checkpoints?|sessions?|list|values?|state|status|runner"
    r"|installer|ui|cli|app|server|client|functions?|method|class|command|agents?|parser|worker"
    r"|plugin|components?|api|database|db|schema|styles?|layout|images?|icon|forms?|inputs?|text"
    r"|labels?|url|routes?|features?|version|data|model|email|login|password|links?|window"
    r"|frontend|backend|services?|containers?|cache|config|settings|variables?|string|nodes?"
    r"|index|exception|website|jobs?|module)"
)
# A name in the code, quoted words, or what a program is or shows.
PROGRAM = pattern(rf"{_NAMES}|\b{_THINGS}\b")
_STEP = (
    r"(?:commit|push|force-push|amend|rebase|squash|merge|refactor|reformat|mock|lint|test|verify"
    r"|double-check|look|ask|tell|explain|summari[sz]e|review|install|touch|revert|investigate"
    r"|research|document|rerun|re-run|read|cite|run|check|validate|confirm|format|answer|reply"
    r"|respond|wait|search|skip|guess|assume|open|update|edit|deploy|reboot|restart|talk|speak)"
)
_MAKING = r"(?:write|use|follow|keep|mention|prefer|name|put|add|create|make|leave)"
# What is said of how somebody goes about their work, hardly ever of a program.
_CONDUCT = (
    r"(?:try|choose|pick|think|plan|propose|suggest|recommend|report|decide|take|launch|consider"
    r"|finish|begin|assume|claim|pretend|promise|back up|clean up|go (?:for|with))"
)
# What only whoever works on the code does to it.
_HANDS = (
    r"(?:commit|push|force-push|amend|rebase|squash|merge|touch|edit|modify|change|rewrite"
    r"|refactor|reformat|deploy|install|upgrade|revert|overwrite|work)"
)
ORDER = pattern(
    rf"^(?:please |pls )?(?:always|never|do(?: no|n'?)t|stop|avoid|only|{_STEP}|{_MAKING})\b"
)
_HERE = (
    r"\b(?:this|these|those|it(?!$)|(?<!call )them(?!$))\b(?! (?:project|repo(?:sitory)?|codebase"
    r"|team"
    r"|company|house|workspace|get|are|is|will|was|break))"
    r"|\bthat\b(?! (?:is|are|was|were|has|have|you|i|we|they|gets?|can|will|do|does|uses?|need"
    r"|needs"
    r"|touch\w*|change\w*|break\w*|the|our|your|all))"
    r"|\bthe (?:new|old|above|below|same|current|other|failing|last|first|second|following|next"
    r"|button|function|class|method|variable|loop|line)s?\b"
    r"|\b(?:here|above|below)\b"
)
HERE = pattern(_HERE)
# What a word in an order for good points at that will not be seen later.
_POINTING = (
    r"\b(?:this|these|those)\b(?! (?:project|repo(?:sitory)?|codebase|team|computer|machine|laptop"
    r"|host|workspace)\b)|^(?:\S+ ){1,7}that\b(?! (?!is\b|was\b|has\b)\w+(?:s|ed)\b| (?:are|can"
    r"|will|do|have|you|we|i|they)\b)"
)
_LANGUAGES = (
    r"(?:english|german|french|spanish|italian|portuguese|dutch|polish|russian|ukrainian|turkish"
    r"|arabic|hindi|japanese|korean|chinese|swedish|danish|norwegian|finnish|czech|greek|hebrew"
    r"|(?:british|american|simplified|traditional|plain|simple) \w+|markdown)"
)
_MANNER = rf"(?:{_LANGUAGES}|bullet points|full sentences|(?:one|short) sentences?|lower ?case)"
_WRITTEN = (
    r"(?:comments|commit messages?|commits|docs|documentation|doc ?strings|answers|replies"
    r"|responses|explanations|summaries|(?:pr|pull request|merge request) (?:descriptions?"
    r"|titles?|texts?)|release notes|changelogs?(?: entries)?|log messages|error messages"
    r"|branch(?:es| names)|test names|tests|code reviews?)"
)
_FROM_NOW = (
    r"(?:from (?:now|here|today) on(?:wards?)?|going forward|in (?:the )?future|new rule(?=:)"
    r"|next time(?=,| (?:you|please|ask|run|do|use|check|tell|write|show|test|read|we|i)\b))"
)
FOR_GOOD = pattern(_FROM_NOW)
# What a mentor says to a person, and what is true of everything.
KIND_WORDS = pattern(
    r"\b(?:door is|hesitate|feel free to (?:reach|contact|ask|come)|contact me|(?:here"
    r"|happy) to (?:help"
    r"|support)|reach out|proud|keep up|good luck|we're (?:all |here|a team|in this)|two-way street"
    r"|learning curve|support (?:you|each other)|mindset|iterative|journey|every (?:little bit"
    r"|challenge"
    r"|step)|team effort|your growth|grow(?:th)? (?:and|together)|opportunit\w+|your (?:task|role"
    r"|progress"
    r"|routine|efforts?|success|skills?|coding skills|development)|touch base|as you know|mentors?"
    r"|excellent work|good work|feel valued|showcase|celebrat\w+|together|stay home)\b"
    r"|\b(?:is|are|be) (?:\w+ ){0,2}(?:key|crucial|essential|important|vital|paramount|hallmark)\b"
)
# What is announced and not yet said.
TO_COME = pattern(
    r"\b(?:an?|the|some|several|two|certain|few|following) (?:\w+ )?(?:naming "
    r"|coding )?(?:conventions?"
    r"|variations?|updates?|instructions?|adjustments?|guidelines?|things|tweaks?|modifications?"
    r"|specifics)"
    r"(?:[.!]?$|[ ,]+(?:to|for|in|from|that|of|on|regarding|about)\b)|\bupdate your\b"
    r"|\bapply (?:this"
    r"|it)\b"
)
# The tools, marks and ways that people choose between.
_CHOICE = (
    r"(?:p?npm|yarn|bun|deno|uvx?|pipx?|poetry|conda|mamba|cargo|make|just|docker|podman|rg|ripgrep"
    r"|grep|fd|find|jest|vitest|mocha|pytest|unittest|ruff|black|flake8|pylint|eslint|prettier"
    r"|biome"
    r"|mypy|pyright|gh|git|curl|wget|tabs|spaces|(?:single|double) quotes|rebase|merge commits"
    r"|squash(?:ing)?|feature branches|pull requests|prs|type hints|semicolons|british \w+"
    r"|american \w+|metric \w+|utc|iso dates|utf-8|kebab[- ]case|snake[-_ ]case|camel[- ]?case"
    r"|conventional commits|the imperative(?: mood)?|present tense|lower ?case|plain \w+)"
)
_ALL = (
    r"(?:everywhere|throughout|by default|across the \w+|(?:in|for|on|with|to) (?:all|any|every"
    r"|each)"
    r"|all the time|whenever|every time|each time)"
)
_DOING = (
    r"(?:adding|writing|using|creating|making|changing|asking|apologi[sz]ing|committing|pushing"
    r"|explaining|summari[sz]ing|renaming|reformatting|rewriting|refactoring|guessing|assuming"
    r"|deleting|removing|inventing|repeating|commenting|telling|calling|saying|putting|leaving)"
)
_ACTS = rf"(?:{_STEP}|{_MAKING}|{_HANDS}|start|stop|include|show|give|send|say|remove|rename|do)"
_GIVEN = r"(?:(?:every|each|any) ?time|when(?:ever)?|before|after|if)"

# What a program shows.
_SCREEN = (
    r"(?:buttons?|pages?|screens?|dialogs?|modals?|menus?|columns?|fields?|rows?|cells?|icons?"
    r"|images?"
    r"|labels?|windows?|users?|inputs?|forms?|lists?|values?|null|parser|payload)"
)

STANDING = (
    SentenceRule(
        "standing_instruction",
        pattern(
            rf"^{_FROM_NOW}\b.{{6,}}|^(?!(?:this|it|these|that|they)\b).{{6,}}\b{_FROM_NOW}$"
            rf"|^(?:as of|starting) (?:now|today|monday|tomorrow|next week),? .{{6,}}"
        ),
        unless=pattern(
            rf"^(?!{_FROM_NOW},? (?:please |always |never |do(?: no|n'?)t |you (?:will|should"
            rf"|must) )*(?:{_STEP}|write|use|follow|keep|mention|prefer|put|add|record|log"
            rf"|save)\b).*?(?:{CALLED})|{KIND_WORDS.pattern}|\blet's\b|{_POINTING}"
            rf"|^{_FROM_NOW},? (?:(?:the|an?|its?)\b"
            rf"(?! (?:\w+ )?(?:{_WRITTEN}|prs?|deploy\w*|releases?|meetings?|reviews?))|line|column"
            rf"|(?:every|each|all) (?:users?|rows?|buttons?|pages?|screens?|cells?|items?|fields?"
            rf"|cards?"
            rf"|requests?|responses?|images?|icons?|calls?))\b"
        ),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            rf"^(?:you (?:should |must )?|let'?s )?(?:always|never(?: ever)?)(?: (?:need|have) to)?"
            rf" (?:please )?(?:\w+ly )?(?:{_STEP}|{_MAKING}|{_HANDS}|{_CONDUCT}"
            r"|generate|mask|prefix|label|tag|sign)\b.{4,}"
            rf"|^always \w+ly {_HANDS}$"
        ),
        unless=pattern(rf"{CALLED}|{_HERE}|\b{_SCREEN}\b"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            rf"^(?:do(?: no|n'?)t ever|never(?: ever)?|you (?:must|should) never"
            rf"|no) {_HANDS}(?:ing)?"
            rf"\b.{{4,}}|^(?:never|do(?: no|n'?)t) (?:{_HANDS}|delete|drop|remove"
            rf"|add)\b.{{0,60}}\b(?:unless i|without (?:asking|my|me|a )"
            rf"|before (?:i|asking))\b.*"
        ),
        unless=pattern(rf"{CALLED}|{_HERE}|\b(?:users?|rows?|records?|column|state|value)\b"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?:here |in this (?:project|repo) |at \w+ )?we (?:always |only |all |do )*(?:use|say"
            r"|write|call|spell|name|prefer|run|format|build|test|deploy|squash|rebase|indent|log"
            r"|work|merge|branch|target|ship|sign|track|keep|do|follow|call them) .{2,80}?[,;]?"
            r" ?\b(?:and |but )?(?:not|never|no|instead of|rather than|no longer)\b .{1,80}"
            r"|^we (?:never|don'?t|do not|always|only) (?:use|say|write|push|merge|commit|squash"
            r"|deploy|ship|rebase|tag|mock|review|sign|release)\b .{3,}"
        ),
        unless=pattern(rf"{CALLED}|{_HERE}|\b(?:because we|yet|sure|could|should|if|option)\b"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?:you(?:'re| are)? (?:may|can|could|free to|allowed to|don'?t (?:need|have) to"
            r"|needn'?t|have my (?:ok|okay|permission) to)|feel free to|go ahead and)\b.{4,}"
            r"\b(?:yourself|on your own|without asking|(?:no need|don'?t need|have) to (?:ask|wait)"
            r"|don'?t (?:ask|wait)|any ?time)\b|^you have my (?:ok|okay|permission) to .{6,}"
            r"|^(?:no need to|you don'?t (?:need|have) to"
            r"|don'?t) ask(?: me)?(?: again)?(?: for permission)? (?:before|when|to|for) .{6,}"
        ),
        unless=pattern(rf"{CALLED}|{_HERE}"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            rf"^(?:write|keep|put|do|make|use|i(?:'d| would)? (?:want|like|need)) (?:all |the "
            rf"|your |my "
            rf"|any |code |me |in )*{_WRITTEN} (?:\w+ )?(?:always |only )?(?:in {_MANNER}"
            rf"|(?:very )?"
            rf"(?:short|brief|concise|terse|simple|lower ?case|imperative|formal|polite)"
            rf"|to the point"
            rf"|(?:to|as|in) one (?:line|sentence)|under \d+ (?:words|lines|characters|chars)"
            rf"|without \w+)\b"
            rf"|^no (?:\w+ ){{1,3}}in (?:the |your |my |our )*{_WRITTEN}\b"
            rf"|^do(?: no|n'?)t (?:use|add|put|include|write) .{{2,40}}? (?:in|to|into|on) (?:the "
            rf"|your "
            rf"|my |our |any )*(?:{_WRITTEN}|names|\w+ names)\b"
            r"|^(?:use|say|write) (?:the (?:term|word|name"
            r"|spelling) )?['\"`]?\u00b7+['\"`]? (?:instead of"
            r"|not|rather than|and not) "
        ),
        unless=HERE,
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            rf"^(?:answer|reply|respond|talk|speak|write|explain|communicate)(?: to me| me| with me"
            rf"| things| everything| code)?(?: only| always)? in {_MANNER}"
            rf"(?=$|[^\w\s]| (?:please|only|always|and|not|but|for|from|unless|when|with|except|if"
            rf"|to me|because|since|so)\b)"
        ),
        unless=HERE,
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            rf"^(?:use|stick (?:to|with)|prefer) (?:only )?{_CHOICE}\b(?:$|[,;]? (?:not|instead of"
            rf"|rather than|over|for|in|when|and not|please|only|{_ALL})\b.*)"
            rf"|^(?:use|write|keep|put|add|include|run|prefer) .{{3,60}}\b{_ALL}\b.*"
        ),
        unless=pattern(rf"{CALLED}|{_HERE}|{_PATH}|\b{_THINGS}\b"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            rf"^(?:(?:all|my|your|our|the) )*{_WRITTEN} (?:are |should be |must be )?(?:always "
            rf"|only )?"
            rf"(?:in {_MANNER}|(?:max|at most|no longer than|under) \d+ \w+|(?:go|goes|belong"
            rf"|belongs)"
            rf" (?:next to|in|into|under|with) .{{3,}})"
            rf"|^no (?:\w+ ){{1,3}}in (?:the |your |my |our )*(?:names|code|diffs"
            rf"|variable names)\b.*"
            rf"|^keep (?:all |your |our |the )?(?:functions|methods|files|classes|lines|components"
            rf"|prs"
            rf"|commits|modules|tests|diffs|changes) (?:under|below|shorter than|small|short"
            rf"|at most|to one)\b.*"
            rf"|^one (?:thing|step|question|change|commit|file|topic) (?:at a time|per)\b.*"
            rf"|^(?:work|go|proceed|move) (?:on )?(?:in|by|with) (?:small|tiny|baby) steps\b.*"
            rf"|^for (?:all |your |my |our |the )*{_WRITTEN}\b.{{0,20}}?, ?(?:always "
            rf"|please )?{_MAKING}\b.{{3,}}"
        ),
        unless=pattern(rf"{_HERE}|\b(?:failing|red|green|broken|missing)\b"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?:leave .{3,40} alone|(?:stay|keep) (?:away from|out of) .{3,}|hands off .{3,})"
            r"|^(?:let me (?:do|handle|make) (?:the|all|any) .{3,}|leave (?:the "
            r"|all )?\w+ to me\b.*)"
            r"|^\w+ (?:is|are) (?:only )?done by me\b.*|^i (?:commit|push|deploy|merge|release|test"
            r"|publish)(?: \w+)? myself\b.*|^check (?:back )?with me before .{4,}"
            r"|^treat \w+ as \w+.*|^(?:tests?|docs?|specs?|plans?) first\b.*"
            r"|^no need to (?:write|add|run|update|create|ask|explain) .{3,}"
        ),
        unless=pattern(rf"{CALLED}|{_HERE}|\b(?:now|today|yet|again|while)\b"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?:when|if) (?:in doubt|unsure|you(?:'re| are) (?:unsure|not sure"
            r"|in doubt))\b,? ?\w+.{3,}"
            r"|^i(?:'d| would) (?:rather|prefer)(?: that)? you(?:'d)? \w+.{3,}"
            r"|^do(?: no|n'?)t (?:explain|apologi[sz]e|summari[sz]e|repeat|praise|flatter"
            r"|thank)\b.{3,}"
            r"|^i (?:do(?: no|n'?)t|never) want (?:from )?you to .{4,}\b(?:by yourself|on your own"
            r"|without (?:asking|my|me)|ever|unless i)\b.*"
            r"|^(?:do(?: no|n'?)t|never|only) .{4,60}\bunless i(?:'ll)? (?:say|tell|ask|told|give"
            r"|provide|approve|agree|confirm)\b.*"
            r"|^if (?:an?|any|some) .{3,40}?, ?(?:please )?(?:tell|ask|show|stop|let me know"
            r"|warn)\b.{3,}"
            r"|^ask(?: me)?(?: first)? before .{4,}|^always (?:show|tell|give|send) me .{3,}"
            r"|^i (?:want|need|expect) .{3,60}?,? always$|^i always want .{4,}"
            rf"|^only {_HANDS} .{{0,30}}\b(?:i (?:mention|ask|name|tell|point)|if i|when i"
            rf"|what i)\b.*"
            rf"|^(?:only )?{_ACTS} .{{3,60}}\bonly (?:when|if|after) i (?:ask|say|tell|agree)\b.*"
        ),
        unless=pattern(rf"{CALLED}|{_HERE}|\b(?:again|now|today|yet)\b"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            rf"^(?:stop|no more|quit) {_DOING}\b.{{3,}}\b(?:all the time|every\w*|each|always"
            rf"|unless"
            rf"|without|by default|again and again)\b.*"
        ),
        unless=pattern(rf"{CALLED}|{_HERE}|\b{_THINGS}\b"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            rf"^{_GIVEN} (?:you|we|i) (?!are\b|were\b|see\b|get\b|have\b|had\b"
            rf"|run into)\w+.{{0,60}}?"
            rf"(?:, ?|\b)(?:please |always |never |do(?: no|n'?)t |make sure to "
            rf"|first )+{_ACTS}\b.{{3,}}"
            rf"|^(?:when|every ?time|each time|whenever) (?!using\b)\w+ing .{{3,80}}"
            rf"\b(?:should|must|needs? to|has to|have to) always .{{3,}}"
            rf"|^(?:every ?time|each time|whenever) (?:you|we|i) .{{3,60}}?, ?(?!i\b|it\b"
            rf"|the\b)\w+ .{{3,}}"
            rf"|^before you (?:commit|push|open|merge|deploy|release|say)\b.{{0,40}}?, ?(?:run"
            rf"|rebase|ask"
            rf"|check|update|format|lint|test|squash|show)\b.{{3,}}"
            rf"|^when(?:ever)? you (?:write|make|create|review|explain|answer|commit|name|open) "
            rf".{{2,40}}?, ?(?:{_MAKING}|{_STEP})\b.{{3,}}"
            rf"|^i want to (?:review|see|approve|check|read) .{{3,40}} before you (?:start|commit"
            rf"|push"
            rf"|merge|change|write|touch|code)\b.*"
            rf"|^{_ACTS}\b.{{3,60}}\b(?:before|after) (?:each|every|any) (?:commit|push|merge|pr"
            rf"|pull request|change|edit|release|deploy\w*|step|task)\b.*"
            rf"|^(?:before|after) (?:each|every|any) (?:commit|push|merge|pr|pull request|change"
            rf"|edit"
            rf"|release|deploy\w*|step|task),? (?:please |always )*{_ACTS}\b.*"
        ),
        unless=pattern(rf"{CALLED}|{_HERE}"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?:every|each|all) (?:new )?(?:commit messages?|prs?|pull requests?|branch(?:es)?"
            r"|branch names|bug ?fix(?:es)?|changes?|releases?|tickets?)\b.{0,30}"
            r"\b(?:needs?|must|should|has to|have to|gets?|goes|go|starts?)\b.{4,}"
            r"|^(?:our|the|a|one|my) (?:\w+ )?(?:rule|convention|policy|practice)(?: here"
            r"| for \w+(?: \w+)?)?"
            r"(?: is|:) .{6,}|^house rules?:? .{6,}|^as a rule,? .{6,}"
        ),
        unless=pattern(rf"{CALLED}|{_HERE}|{KIND_WORDS.pattern}"),
    ),
)

# Who is asked to do something for good is asked as if ordered.
FRAME = pattern(
    r"(?:(?:i|we)(?:'d| would)? (?:want|need|like|expect) you to|make sure (?:that )?you"
    r"|make sure to"
    r"|be sure to|you(?:'ll| will)? (?:should|need to|have to|must)|(?P<asks>(?:can|could|would"
    r"|will)"
    r" (?:you|u)(?: please)?(?= (?:always|never|stop|from now on|in (?:the )?future|remember)\b)))"
    r"\s+(?=\w)"
)
