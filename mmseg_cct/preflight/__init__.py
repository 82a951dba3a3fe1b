"""Checks a run before it starts.

`PreflightHook` looks for what would fail late, or train otherwise than meant without a word. What
fails by itself at the build or at the first batch is left to the library's own words. A check
yields a `Problem` for each mistake, and all problems of the first stage that has any are reported:

1. settings and the weights that they name (`settings`);
2. model, data and checkpoint have the same classes (`classes`);
3. images and masks exist and can be read, and pipelines move both alike (`files`);
4. the first validation batch passes pipeline, model and metrics.

A config names the hook, so the checks hold under every launcher.
"""

from .preflight_hook import PreflightHook

__all__ = ['PreflightHook']
