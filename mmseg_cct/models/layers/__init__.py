"""Stacked decoders and their evaluation in chunks, and helpers that the models share."""
