"""Annotations of labelling tools: what they hold, and masks of class ids made of them."""
