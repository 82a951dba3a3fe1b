"""For `pytest --doctest-modules mmseg_cct/...`."""


def pytest_configure(config):
    """Registers the components once: pytest imports a module again after its package."""
    if config.option.doctestmodules:
        import mmseg_cct.plugin  # noqa: F401
