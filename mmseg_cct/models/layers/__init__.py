"""Stacked decoders, their initialisation, and their evaluation in chunks."""
