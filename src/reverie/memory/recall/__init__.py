"""Recall without a model: what a question asks for, and which texts answer it best.

`Query` is a question as the index takes it, `ranking` the score that all signals are fused into,
`passages` the turns of a dialogue or transcript. Pure: no file, clock or database.
"""
