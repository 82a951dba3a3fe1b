"""Shared helpers: files, images, text, names and seeds."""
