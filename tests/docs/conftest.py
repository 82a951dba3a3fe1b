from trees import tree  # noqa: F401
