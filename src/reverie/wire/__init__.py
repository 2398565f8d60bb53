"""The formats of providers: Messages, chat completions, responses. Read and written, no network.

Pure: what a server sends becomes our blocks and back, calls and failures included.
"""
