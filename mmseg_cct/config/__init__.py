"""Reads, composes and checks the config of a run: its text, settings, method and domains."""
