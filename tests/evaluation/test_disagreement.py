"""Auxiliary decoders against the main one, for one image."""

import torch
from mmengine.config import Config
from mmseg.registry import DATASETS

from mmseg_cct.analysis.ranking import load_training_model
from mmseg_cct.evaluation.disagreement import auxiliary_disagreement, batch_of_one


def test_a_seed_decides_and_the_generator_stays(trained):
    config = Config.fromfile(str(trained.file))
    model = load_training_model(config, str(trained.checkpoint), 'cpu')
    item = DATASETS.build(config.test_dataloader.dataset)[0]
    batch = batch_of_one(model, item, ('a', 'b', 'c'))
    assert batch['data_samples'][0].classes == ('a', 'b', 'c')

    state = torch.get_rng_state()
    logits, distances, flips, _ = auxiliary_disagreement(model, batch, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(logits, model._forward(batch['inputs']))
    assert len(distances) == len(flips) == model.auxiliary_head.num_decoders
    torch.rand(3)
    assert torch.equal(auxiliary_disagreement(model, batch, seed=1)[1], distances)
    assert not torch.equal(auxiliary_disagreement(model, batch, seed=2)[1], distances)
