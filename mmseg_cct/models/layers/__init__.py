"""The decoders as stacked matrices, their initialisation and their chunks."""
