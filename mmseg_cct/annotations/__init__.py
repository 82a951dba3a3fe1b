"""Makes masks of class ids from annotations of labelling tools, and the reverse."""
