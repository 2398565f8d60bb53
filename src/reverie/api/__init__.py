"""The public Python API: what `import reverie` offers, made of the rooms below.

Each name of `reverie.__all__` stands here or further down, and is loaded when it is first used.
Nothing in this room decides: it hands arguments down and plain values up.
"""
