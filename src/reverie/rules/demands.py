"""The words around what a rule names: who forbids, who demands, and what may stand between.

Lists and a few patterns, in the languages in which people write rules. What is not listed makes a
clause unclear, and an unclear clause is no rule about calls.
"""

from __future__ import annotations

import re

from reverie.light import pattern


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


SENTENCE_END = pattern(r"[.!?;](?=\s|$)|[。！？；\n]")
CLAUSE_END = pattern(r"[,:](?=\s|$)|[：，、]|\s[-–—]\s|\s(?:but|sondern|sino|mais|но)\s")
QUOTED = pattern(r"`([^`\n]{1,200})`|[\"“„]([^\"“”\n]{1,80})[\"”]|'([^'\n]{2,60})'(?!\w)")

NOT = _set(
    "never don't dont don’t doesn't not no avoid stop mustn't forbidden prohibited banned "
    "off-limits nie niemals kein keine keinen nicht nichts verboten nunca jamás jamas "
    "prohibido prohibida não nao vietato mai non jamais pas interdit interdite ne n' не "
    "никогда нельзя запрещено запрещён nooit niet geen proibido"
)
NOT_DENSE = pattern(
    "不要|别|禁止|切勿|不准|不得|请勿|不许|永远不|しないで|しない|使わないで|使わない|触らないで|"
    "触らない|編集しない|するな|実行しない"
)
NOT_PAIRS = frozenset(
    {("hands", "off"), ("off", "limits"), ("must", "not"), ("do", "not"), ("finger", "weg")}
)
HANDS_OFF = frozenset({"hands off", "finger weg", "avoid"})
KEPT = pattern(
    r"(?<![\w-])(?:(?:is|are|stays?|remains?) (?:auto-?)?(?:generated|upstream|mine|read-only"
    r"|frozen|vendored|not (?:yours|ours)|not for you|dead|(?:done|run|made|handled) (?:by|in)"
    r"|(?:only )?for humans)|belongs? to|comes? from|only (?:with|after) my (?:ok|okay|permission"
    r"|approval|word)|only on request|(?:is|are) (?:gone|deprecated|obsolete|history)"
    r"|stays? as (?:it|they) (?:is|are)|es mío|es mía|gehört mir"
    r"|wird (?:automatisch )?generiert|gehört)(?![\w-])",
    re.IGNORECASE,
)
LEFT = pattern(
    r"^(?:please )?(?:leave|stay out of|stay away from|keep out of|keep away from"
    r"|only i (?:run|do|start|call)|i(?:'ll| will)? (?:run|do|start|call)(?= .{2,80}\bmyself$))\b"
    r"|\b(?:alone|to me|myself)$",
    re.IGNORECASE,
)
"""What asks to leave something as it is, around what it names."""
DEMAND = pattern(
    r"(?<![\w-])(?:always|only|immer|nur|siempre|s[oó]lo|solamente|toujours|seulement|uniquement"
    r"|sempre|только|всегда)(?![\w-])|必须|只能|一定要|始终|总是|务必",
    re.IGNORECASE,
)
WITH = pattern(r"(?<![\w-])(?:with|mit|con|avec|com|с)(?![\w-])|带|加上?", re.IGNORECASE)
WITHOUT = pattern(
    r"(?<![\w-])(?:without|ohne|sin|sans|sem|senza|без)(?![\w-])|不带|不加", re.IGNORECASE
)
INSTEAD = pattern(
    r"(?<![\w-])(?:instead of|rather than|in place of|statt|anstatt|anstelle von|en vez de"
    r"|en lugar de|au lieu de|invece di|em vez de|вместо)(?![\w-])|而不是",
    re.IGNORECASE,
)
DEPENDS = pattern(
    r"(?<![\w-])(?:while|when|whenever|if|before|after|until|except|besides|apart from|other than"
    r"|twice|at the same time|more than|less than|wenn|während|bevor|nachdem|außer|bis|falls|cuando"
    r"|antes|después|mientras|excepto|salvo|quand|avant|après|sauf|pendant|outside|everywhere else"
    r"|если|когда|пока|кроме|перед|после|unless|only for|as long as)(?![\w-])"
    r"|如果|除非|除了|之前|之后|的时候|以外",
    re.IGNORECASE,
)
ALLOWED = pattern(
    r"(?<![\w-])(?:you (?:may|can|could)|feel free|(?:is|are) (?:fine|ok|okay|allowed)"
    r"|don['’]?t care|no need|no matter|no problem|kannst|darfst|puedes|tu peux|можно)(?![\w-])"
    r"|可以",
    re.IGNORECASE,
)
ASKING = pattern(
    r"\b(?:unless|without) (?:i|me|my|asking|you ask\w*|being asked|permission)\b[^,;]*"
    r"|\bfor (?:you|agents|now)$",
    re.IGNORECASE,
)
READING = pattern(
    r"(?<![\w-])(?:read(?!-only)|reading|open|print|show|cat|look at|lesen|leas|leer"
    r"|lire|ler|чита\w+)(?![\w-])|读|查看",
    re.IGNORECASE,
)
BY_HAND = pattern(
    r"\b(?:by hand|manually|von hand|a mano|à la main)\b|(?<!\w)вручную(?!\w)|手动", re.IGNORECASE
)
NEEDS = pattern(
    r"(?<![\w-])(?:needs|requires|must have|braucht|necesita|requiert|precisa de|требует)(?![\w-])",
    re.IGNORECASE,
)
OUT_OF = pattern(r"\b(?:stays?|keep|kept|belongs?) out of\b", re.IGNORECASE)
CO_AUTHOR = pattern(r"\bco-?author\w*\b", re.IGNORECASE)
BARE_GIT = pattern(
    r"(?:please )?(?:never|don['’]?t|do not)(?: ever)? (?:git )?(push|commit|rebase)"
    r"(?: anything| yourself| on your own| code| changes| by yourself)?\W*",
    re.IGNORECASE,
)
AGENT_TOOL = pattern(
    r"\b(WebFetch|WebSearch|NotebookEdit|MultiEdit)\b|\b(Task|Edit|Write|Grep|Glob|Agent) tool\b"
)
IMPERATIVES = _set(
    "use log write prefer call import always run utiliza usa nutze verwende benutze utilise "
    "используй"
)
COMMIT = pattern(
    r"\b(?:(?:in)?to git|commit|committe\w*|check in|einchecken|stage)\b|提交|(?<!\w)коммит\w*",
    re.IGNORECASE,
)
COMMITS = pattern(r"\bcommits?\b|\bcommit messages?\b|提交信息", re.IGNORECASE)
WORDS = pattern(r"\b(?:words?|terms?|phrases?)\b", re.IGNORECASE)
IT = pattern(r"\b(?:it|them)\b|(?<!\w)(?:его|её|их)(?!\w)", re.IGNORECASE)
POLITE = pattern(
    r"\W*(?:please|bitte|por favor|s'il vous plaît|пожалуйста|here)?\W*", re.IGNORECASE
)

# Things that people do and call by no command.
PUSH_TO = pattern(
    r"\bpush\w*\s+(?:\w+\s+)?(?:to|on|onto|auf|nach|into|a|sur|vers)\s+(?:origin[ /])?"
    r"(main|master|develop|production|prod|trunk)(?![\w/-])",
    re.IGNORECASE,
)
FORCED = pattern(r"\bforce[- ]?push\w*\b", re.IGNORECASE)
AMEND = pattern(
    r"(?:please )?(?:never|don['’]?t|do not|no) amend(?:ing)?(?: (?:a |the |your )?commits?)?\W*",
    re.IGNORECASE,
)
FETCH = pattern(
    r"\bweb ?fetch(?:es|ing)?\b|\bfetch(?:es|ing)? (?:pages|urls|of|from|web pages|articles)\b",
    re.IGNORECASE,
)
SEARCH = pattern(r"\bweb ?search(?:es)?\b", re.IGNORECASE)
AGENTS = pattern(r"\bsub-?agents?\b", re.IGNORECASE)
DOMAIN = pattern(r"(?:[a-z0-9-]{1,40}\.){1,4}(?:com|org|net|io|dev|ai|app|co)")

# What may stand between the word that forbids and what it forbids.
FILLERS = _set(
    "ever please the a an any our your my to again just ever also allowed is are be you we "
    "der die das den el la los las le les un une es bitte absolutely tool command commands "
    "folder file directory ordner datei папку файл каталог carpeta archivo dossier fichier de "
    "in"
)
RUNNING = _set(
    "run use call execute start launch invoke type do issue running using calling invoking "
    "ausführen benutzen verwenden nutzen ausfuehren starten ejecutes ejecutar uses usar "
    "corras lances hagas haz hacer emplees fais faire lance gebruik draai use utilises mache "
    "machen lancer utilise utiliser utilisez exécute exécuter exécutez executar usare "
    "eseguire запускай запускать используй использовать выполняй"
)
TOUCHING = _set(
    "edit touch change modify write delete remove rename move overwrite reformat format alter "
    "commit add read open editing touching changing modifying writing deleting committing "
    "changes edits or and nor check in stage hands off ändern aendern anfassen bearbeiten "
    "löschen committen einchecken lesen print show cat generated code à a en mexer mexa em "
    "edite wijzig verander raak toques edites modifiques borres tocar editar modificar touche "
    "touchez touche modifie modifiez modifier toucher трогай трогать меняй менять редактируй "
    "изменяй удаляй коммить mexa altere toccare"
)
WRITING = _set(
    "use write add put import call leave hard-code hardcode introduce commit using writing "
    "adding leaving new appear verwenden schreiben benutzen uses escribas usar pongas utilise "
    "utiliser écrire используй пиши left words word and ajoute ajouter escribir schreib metas "
    "coloques используйте log"
)
DENSE_VERBS = pattern(
    "は|を|の|に|で|も|コマンド|ファイル|フォルダ|絶対に|"
    "修改|更改|编辑|删除|改动|动|碰|改|触碰|运行|执行|使用|用|写|提交|读取|文件|目录|下的|里|中|的|请|再|直接|目录下|文件夹|任何|代码|命令|在|去|跑|里面|手"
)

# What may follow what is forbidden, without saying more about it.
TAIL = _set(
    "here directly anything any ever please is are at all never niemals nie nunca jamais "
    "yourself myself forbidden not allowed commands command calls statements statement "
    "comments comment lines line files file folder directory dir by hand manually again "
    "anywhere left annotations blocks and or nor und oder ni y o et ou и или for that you "
    "stays stay remains belongs comes off-limits off ausführen ändern anfassen benutzen "
    "verwenden bearbeiten committen directamente no не трогай трогать меняй запускай banned "
    "dead mine this project repo repository codebase code only it them alone unchanged "
    "untouched either too as well instead has in from inside into unter im en dans on "
    "prohibido verboten interdit gone out with nicht kein don't dont do must"
)
SUBJECTS = _set("i it they he she there is are was were which that has have had who")
"""Words before "not" and "no" that make it tell, not forbid."""
TELLING = _set("not no n' nicht kein keine не no ne pas não non don't doesn't")
BANNED = _set("allowed permitted yours ours erlaubt permitido autorisé for")
ANY = _set("anything things stuff code etwas irgendetwas nada rien ничего files")
JOINING = _set("and or nor und oder ni y o et ou и или , auch not no never")
ARTICLES = _set("the our any all your my der die das den el la los las le les")
WITHIN = _set("in inside into under within unter im en dans em from of")
LEADING = _set(
    "to on against contra gegen auf for via through using by with like at als wie para pour"
)
"""Words behind which a name says where, how or why, and not what."""
FROM_HERE = _set("here this the laptop machine local locally you hier")
FOLDERS = _set("src tests test lib app docs api pkg packages services")
ANYWHERE = _set(
    "code codebase repo repository project this here files sources source commits commit new "
    "diesem este esta ce css git"
)
TYPES = {
    "css": ["css", "scss", "less"],
    "scss": ["scss"],
    "html": ["html"],
    "sql": ["sql"],
    "typescript": ["ts", "tsx"],
    "javascript": ["js", "jsx", "mjs"],
    "python": ["py"],
    "rust": ["rs"],
    "java": ["java"],
    "ruby": ["rb"],
    "php": ["php"],
    "swift": ["swift"],
    "markdown": ["md", "mdx"],
}
