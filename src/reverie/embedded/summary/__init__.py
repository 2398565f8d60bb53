"""Summaries of a conversation without a language model."""
