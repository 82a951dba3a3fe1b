"""Checks a run before it starts.

A check yields a `Problem` for each mistake. Each check belongs to a stage, and each stage relies on
the ones before it:

1. structure: the sections of a config are dicts and lists (`mmseg_cct.config.structure`);
2. values: settings are in their ranges and go together (`values`);
3. components: types exist and take their arguments (`components`);
4. model: model, data and checkpoint have the same classes (`classes`);
5. files: lists, images and masks exist and can be read (`files`, `pipelines`);
6. first batch: the first images pass pipeline, model and metrics (`first_batch`).

`stages.run_stages` runs them and reports all problems of the first stage that has any. A config
names `PreflightHook`, so the checks hold under every launcher.
"""

from .preflight_hook import PreflightHook

__all__ = ['PreflightHook']
