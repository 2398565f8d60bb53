"""Wire formats behind `world.Model`: Anthropic, OpenAI-style, and which of them to use.

A provider translates and never decides: what is sent is the request it is handed, what
comes back is kept as received. None of them reads the environment or a file, and an SDK
is imported only where a provider that needs it is built.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "anthropic": "AnthropicModel anthropic_model",
        "costs": "SessionBill KINDS PRICES dollars fork_usage money price_of",
        "capabilities": "LIFETIMES TABLE merge_model_info table_capabilities",
        "connection": "Connection LONGEST_WAIT OVERLOAD_PATIENCE Retries SdkErrors asked_wait "
        "persist",
        "embeddings": "BATCH LocalEmbeddings MAX_TOKENS MiniLM OnnxModel PACKAGE SIZE "
        "endpoint_embeddings minilm",
        "openai": "BASE_URL OpenAIModel WireFormat openai_model",
        "selection": "DEFAULT_ANTHROPIC DEFAULT_OPENAI model_for",
    },
)
