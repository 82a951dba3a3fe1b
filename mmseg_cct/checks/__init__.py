"""Finds what cannot be trained on, a stage at a time, before a training starts."""
