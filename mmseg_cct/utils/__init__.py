"""Shared helpers: files, processes, text and seeds."""
