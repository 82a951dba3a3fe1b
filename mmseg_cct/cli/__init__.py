"""The command line of the tools: arguments, ranks, errors, start.

Nothing here imports torch before a tool calls `start.register`, so `--help`, a wrong argument and
tools that need no network are answered at once.
"""
