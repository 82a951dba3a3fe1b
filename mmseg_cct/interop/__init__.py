"""Conversion, publication and export of checkpoints."""
