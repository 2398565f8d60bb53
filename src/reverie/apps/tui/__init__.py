"""The terminal app: a conversation in the terminal's own scroll-back, with an input below it.

It knows how things look and which key does what. What the keys act on is given to it.
"""
