"""What both OpenAI wire formats share: how our request's parts read in theirs.

Pure functions, the same bytes for the same input, and block by block: what is added to a
conversation never changes how the blocks before it are written. Texts that carry numbers
(tool schemas, inputs, native items) are copied, not read. Blocks that mean nothing there
are left out: thinking, and whatever has no words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b

from reverie.transcript.blocks import Block, Json, Object, dump, elements, members, text_of
from reverie.transcript.records import Usage
from reverie.transcript.tokens import family
from reverie.wire.request import Request

EFFORTS = {"max": "xhigh"}
CHOICES = {"auto": '"auto"', "any": '"required"', "none": '"none"'}
COPIED = ("temperature", "top_p", "service_tier", "metadata")
REASONING = re.compile(r"gpt-([5-9]|\d\d)|o[1-9](-|$)|codex")


def system_text(request: Request) -> str:
    """The system prompt as one text."""
    texts = (text_of(value) for _, value in elements(request.head.system))
    return "\n\n".join(text for text in texts if text)


def tools(request: Request) -> Iterator[tuple[str, str]]:
    """Name and the rest of each tool a client runs: the members of a function's object."""
    for raw, value in elements(request.head.tools):
        parts = members(raw)
        if isinstance(value, dict) and "name" in value and value.get("type", "custom") == "custom":
            found = [f'"name":{parts["name"][0]}']
            if "description" in parts:
                found.append(f'"description":{parts["description"][0]}')
            schema = parts["input_schema"][0] if "input_schema" in parts else '{"type":"object"}'
            strict = ['"strict":true'] if value.get("strict") is True else []
            yield str(value["name"]), ",".join([*found, f'"parameters":{schema}', *strict])


def hosted(request: Request) -> Iterator[str]:
    """Tools without a name: those that a provider of this kind runs itself."""
    for raw, value in elements(request.head.tools):
        if isinstance(value, dict) and "name" not in value and value.get("type") != "function":
            yield raw


def common_options(options: Mapping[str, tuple[str, Json]]) -> Iterator[tuple[str, str]]:
    """Options that both formats write the same way."""
    for key in COPIED:
        if key in options:
            yield key, options[key][0]
    choice = options.get("tool_choice", ("", None))[1]
    if isinstance(choice, dict) and choice.get("disable_parallel_tool_use") is True:
        yield "parallel_tool_calls", "false"


def effort(options: Mapping[str, tuple[str, Json]]) -> str:
    """How hard the model is asked to think, or the empty string."""
    found = options.get("output_config", ("", None))[1]
    asked = found.get("effort") if isinstance(found, dict) else None
    return EFFORTS.get(asked, asked) if isinstance(asked, str) else ""


def own_options(options: Mapping[str, tuple[str, Json]]) -> Iterator[tuple[str, str]]:
    """Members that the options hold under `openai`: copied as they are."""
    if "openai" in options and isinstance(options["openai"][1], dict):
        yield from ((key, raw) for key, (raw, _) in members(options["openai"][0]).items())


def cache_key(request: Request, given: str = "") -> str:
    """One key for a session and its forks: given, or made from what they all begin with."""
    if given:
        return given
    named = members(request.head.options).get("prompt_cache_key", ("", None))[1]
    if isinstance(named, str) and named:
        return named
    first = request.at(0).pieces[0].block.raw if request.count else ""
    head = request.head
    beginning = dump([head.model, head.system, head.tools, first])
    return "reverie-" + blake2b(beginning.encode(), digest_size=12).hexdigest()


def image_url(source: Json) -> str:
    """The address of a picture, or its bytes as one; empty where there is neither."""
    if not isinstance(source, dict):
        return ""
    if source.get("type") == "base64":
        return f"data:{source.get('media_type', 'image/png')};base64,{source.get('data', '')}"
    url = source.get("url")
    return url if isinstance(url, str) else ""


def content(value: Json) -> list[Object]:
    """A message's or result's content as a list of blocks."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def result_text(block: Block) -> str:
    """The words of a tool result."""
    parts = (text_of(v) for v in content(block.value.get("content")))
    return "\n".join(part for part in parts if part)


def result_images(block: Block) -> list[str]:
    """The pictures of a tool result, as addresses."""
    found = content(block.value.get("content"))
    urls = (image_url(v.get("source")) for v in found if v.get("type") == "image")
    return [url for url in urls if url]


def arguments(block: Block) -> str:
    """A call's input as the text the model wrote."""
    return members(block.raw).get("input", ("{}", None))[0]


def file_of(block: Block) -> tuple[str, str] | None:
    """Name and data of a document that is a file; None where it is text or elsewhere."""
    source = block.value.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64":
        return None
    kind = source.get("media_type", "application/pdf")
    return block.get("title") or "document.pdf", f"data:{kind};base64,{source.get('data', '')}"


def words(block: Block) -> str:
    """What of any other block can be said in words."""
    source = block.value.get("source")
    if block.type == "document" and isinstance(source, dict):
        data = source.get("data")
        if source.get("type") == "text" and isinstance(data, str):
            return data
        return text_of(source.get("content"))
    if block.type == "compaction":
        return block.get("content")
    return "" if block.thinking else block.text


def usage_of(whole: Json, prompt: str, answer: str) -> Usage | None:
    """Usage in our form: what was cached is inside their count of the input."""
    if not isinstance(whole, dict):
        return None
    details = whole.get(f"{prompt}_details")
    found = details if isinstance(details, dict) else {}
    total = number(whole.get(prompt))
    read = min(total, number(found.get("cached_tokens")))
    written = min(total - read, number(found.get("cache_write_tokens")))
    return Usage(total - read - written, read, written, number(whole.get(answer)))


def number(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def member(key: str, value: object) -> str:
    return f"{dump(key)}:{dump(value)}"


def reasons(model: str) -> bool:
    """Whether an OpenAI model answers with reasoning items."""
    return REASONING.match(family(model)) is not None
