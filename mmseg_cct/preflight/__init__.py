"""Checks a run before it starts.

What a constructor says of its arguments is not checked beforehand: `failures` makes one line of it,
with the component's key. `PreflightHook` looks for what would fail late or silently. A check yields
a `Problem` for each mistake, and all problems of the first kind that has any are reported:

1. settings are in their limits (`mmseg_cct.config.limits`) and go together (`combinations`);
2. model, data and checkpoint have the same classes (`classes`);
3. lists, images and masks exist and can be read (`files`, `pipelines`);
4. the first images pass pipeline, model and metrics (`first_batch`, `rehearsal`).

A config names the hook, so the checks hold under every launcher.
"""

from .preflight_hook import PreflightHook

__all__ = [
    'PreflightHook',
]
