"""Finds what would make training fail, before it starts.

A check yields a `Problem` for each mistake. Each check belongs to a stage, and each stage relies on
the ones before it:

1. structure: the sections of a config are dicts and lists (`mmseg_cct.config.structure`);
2. values: settings are in their ranges and go together (`values`, `ranges`);
3. components: types exist and take their arguments (`components`);
4. files: weights, lists, images and masks exist and can be read (`weights`, `data`);
5. model: model, data and checkpoint have the same classes (`classes`);
6. first batch: the first images pass pipeline, model and metrics (`first_batch`).

`stages.run_stages` runs them and reports all problems of the first stage that has any.
"""
