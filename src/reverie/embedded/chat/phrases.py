"""The sentences the embedded model says, in the language it was asked in.

Plain and honest: what it is, what it can do here, what it did not understand. It never
claims to have understood anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from reverie.embedded.history import LOOKED_AT
from reverie.text.tokens import has_chinese


@dataclass(frozen=True, slots=True)
class Phrases:
    """Sentences of one language; braces are filled in."""

    am: str
    can: str
    forms: dict[str, str]
    no_tools: str
    recall: str
    configure: str
    no_rule: str
    short: str
    welcome: str
    no_words: str
    missing: str
    rest: str
    unread: str
    stopped: str
    failed: str
    lines: str
    empty: str
    hits: str
    no_hits: str
    entries: str
    exit: str
    output: str
    stored: str
    more: str
    first_ask: str
    no_asks: str
    found: str
    not_found: str
    you: str
    me: str
    message: str
    summary: str

    def counted(self, sentence: str, what: str, count: int, **more: str) -> str:
        """A sentence of these with a count in it."""
        s, ies = ("", "y") if count == 1 else ("s", "ies")
        return sentence.format(what=what, count=count, s=s, ies=ies, **more)


ENGLISH = Phrases(
    am="I am the embedded assistant: fixed rules, no language model. I recognise a few plain "
    "requests and look up words in this conversation; I do not understand language.",
    can="Here you can say: {forms}.",
    forms={
        "Read": "read FILE",
        "Grep": "grep WORD in PATH",
        "List": "list DIR",
        "Glob": "find *.py",
        "Bash": "run the tests · run COMMAND",
        "Write": 'write "TEXT" to FILE',
        "Edit": 'edit FILE: replace "A" with "B"',
        "ReadBack": "read back REFERENCE",
        "Remember": "remember …",
        "Forget": "forget TITLE",
    },
    no_tools="No tool that I know is defined here, so I can call none.",
    recall="You can also ask about what was said here or is remembered: “where are bugs tracked?”.",
    configure="For a real model, give the key of a provider (ANTHROPIC_API_KEY or OPENAI_API_KEY) "
    "and choose one with --model.",
    no_rule="I have read it; it holds no request that I know.",
    short="I have read it; it holds no request that I know. Say “help” for those I do.",
    welcome="You are welcome.",
    no_words="I see no words that I could answer.",
    missing="I cannot do that here: no tool named {tool} is defined.",
    rest="The rest holds no request that I know: {rest}",
    unread="I read the first {read:,} characters for requests, not the other {unread:,}.",
    stopped="I stopped there. Not done: {rest}",
    failed="{what} failed: {text}",
    lines="{what}: {count:,} line{s}.",
    empty="{what}: empty.",
    hits="{what}: {count:,} hit{s}.",
    no_hits="{what}: no hits.",
    entries="{what}: {count:,} entr{ies}.",
    exit="exit code {code}",
    output="{what}: {count:,} line{s} of output{exit}.",
    stored="The result was too long for the conversation; this is its beginning.",
    more="… and {count:,} more",
    first_ask="Your first message here was: “{text}” ({source})",
    no_asks="You said nothing before this message, as far as this conversation goes.",
    found="These places of the conversation have words of your question; I cannot tell whether "
    "they answer it:",
    not_found="I do not know: nothing in this conversation has the words of your question.",
    you="you",
    me="assistant",
    message="message {number}, {who}",
    summary="the summary of what came before",
)

CHINESE = Phrases(
    am="我是内置助手：只有固定规则，没有语言模型。我能识别少量简单的请求，并在本次对话中查找词语；我并不理解语言。",
    can="在这里你可以说：{forms}。",
    forms={
        "Read": "读取 FILE",
        "Grep": "在 PATH 中搜索 WORD",
        "List": "列出 DIR",
        "Glob": "查找 *.py",
        "Bash": "运行测试 · 运行 COMMAND",
        "Write": '把 "TEXT" 写入 FILE',
        "Edit": '把 FILE 中的 "A" 替换为 "B"',
        "ReadBack": "read back REFERENCE",
        "Remember": "记住 …",
        "Forget": "忘记 TITLE",
    },
    no_tools="这里没有定义我认识的工具，所以我无法调用任何工具。",
    recall="你也可以问这里说过的或记住的事：“缺陷记录在哪里？”。",
    configure="要使用真正的模型，请提供密钥（ANTHROPIC_API_KEY 或 OPENAI_API_KEY），"
    "并用 --model 选择。",
    no_rule="我没有处理它的规则。",
    short="我没有处理它的规则。说“帮助”可以看到我能做什么。",
    welcome="不客气。",
    no_words="我没有看到可以回答的文字。",
    missing="这里做不到：没有定义名为 {tool} 的工具。",
    rest="其余部分我没有规则：{rest}",
    unread="我只在前 {read:,} 个字符中寻找请求，后面的 {unread:,} 个没有看。",
    stopped="我在这里停下了。未做：{rest}",
    failed="{what} 失败：{text}",
    lines="{what}：{count:,} 行。",
    empty="{what}：空。",
    hits="{what}：{count:,} 处匹配。",
    no_hits="{what}：没有匹配。",
    entries="{what}：{count:,} 项。",
    exit="退出码 {code}",
    output="{what}：输出 {count:,} 行{exit}。",
    stored="结果太长，对话中只有它的开头。",
    more="…… 另有 {count:,} 项",
    first_ask="你在这里的第一条消息是：“{text}”（{source}）",
    no_asks="就本次对话而言，在这条消息之前你什么也没说。",
    found="对话中的这些地方含有你问题里的词；我无法判断它们是否回答了问题：",
    not_found="我不知道：本次对话中没有你问题里的词。",
    you="你",
    me="助手",
    message="第 {number} 条消息，{who}",
    summary="此前内容的摘要",
)


def phrases(words: str) -> Phrases:
    """The language of what was said."""
    return CHINESE if has_chinese(words[:LOOKED_AT]) else ENGLISH
