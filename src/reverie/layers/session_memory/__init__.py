"""Layer 3: session memory. Notes kept all along, and compaction that stands on them.

`due` says after a response whether the notes should be brought up to date; the session
does that with a fork. When the context passes its threshold, `settle` waits, bounded, for
an update under way and `compact` puts the notes in the place of what they cover, with no
model call. What they do not cover is never dropped: it stays, or the layer gives up and
the next one catches.
"""
