"""Tiny data sets on disk."""

from trees import make_tree, tree  # noqa: F401
