"""Wire formats behind `world.Model`: Anthropic, OpenAI-style, and which of them to use.

A provider translates and never decides: what is sent is the request it is handed, what
comes back is kept as received. None of them reads the environment or a file, and an SDK
is imported only where a provider that needs it is built.
"""
