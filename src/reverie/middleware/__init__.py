"""Between a client and its provider: what the proxy and `reverie.wrap` have in common.

A request that goes out is the client's own bytes with a list of patches on them; beside it a
shadow session takes the conversation in, so that memory works on it as on any other.
"""
