"""Shared helpers: files, images, text, names, seeds and the command line."""
