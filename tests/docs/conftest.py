"""Tiny data sets on disk."""

from trees import tree  # noqa: F401
