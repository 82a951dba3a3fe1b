"""The command line of the tools: arguments, ranks, errors, start.

Nothing here imports torch or mmengine before the command line is parsed, so `--help` and a wrong
argument are answered at once.
"""
