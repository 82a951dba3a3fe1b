"""Scores, files and order of the ranking, and whether it finds what a model gets wrong."""

import csv
import io
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
from mmengine.config import Config
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from PIL import Image

from mmseg_cct.analysis.ranking import (
    SCORES,
    RankedImage,
    _read_scores,
    disagreement,
    rank_images,
)
from mmseg_cct.errors import UserError
from mmseg_cct.interop.publish import publish_checkpoint


def rank(tiny_cct, out, **kwargs):
    return rank_images(tiny_cct.config, tiny_cct.checkpoint, str(out), device='cpu', **kwargs)


def rows(out):
    return list(csv.reader(io.StringIO((out / 'ranking.csv').read_text())))


def test_writes_scores_by_perturbation_and_a_contact_sheet(tiny_cct, tmp_path, checkpoints_read):
    ranking = rank(tiny_cct, tmp_path, images=tiny_cct.images, top=3)
    assert checkpoints_read == [tiny_cct.checkpoint]
    names = list(Config.fromfile(tiny_cct.config).model.auxiliary_head.perturbations)
    header, *lines = rows(tmp_path)
    assert header[:3] == ['rank', 'file', 'score'] and sorted(header[3:]) == sorted(names)
    assert [line[0] for line in lines] == ['1', '2', '3', '4']
    assert {line[1] for line in lines} == {f'{tiny_cct.images}/{i}.png' for i in range(4)}
    values = np.array([line[2:] for line in lines], float)
    assert (np.diff(values[:, 0]) <= 0).all() and (values[:, 0] > 0).all()
    # one decoder of each kind here: their mean is the score
    np.testing.assert_allclose(values[:, 1:].mean(1), values[:, 0], rtol=1e-4)
    assert [bool(image.pictures) for image in ranking.images] == [True] * 3 + [False]
    width, height = Image.open(tmp_path / 'contact_sheet.png').size
    assert width == 960 and 3 * 230 < height < 3 * 320  # pictures of 56×40, titles, legend


def test_a_score_is_the_images_own(tiny_cct, tmp_path):
    """Not of its place in the list or its name."""
    first = rank(tiny_cct, tmp_path / 'a', images=tiny_cct.images)
    alone = tmp_path / 'alone'
    alone.mkdir()
    shutil.copy(f'{tiny_cct.images}/2.png', alone / 'other_name.png')
    second = rank(tiny_cct, tmp_path / 'b', images=str(alone))
    expected = {image.name[-5:]: image for image in first.images}['2.png']
    assert second.images[0].score == expected.score
    assert second.images[0].by_perturbation == expected.by_perturbation
    # the distance tells two draws of the perturbations apart where the predicted class is the same
    drawn = [
        rank(tiny_cct, tmp_path / f'c{seed}', images=str(alone), seed=seed, measure='distance')
        for seed in (0, 1)
    ]
    assert drawn[0].images[0].score != drawn[1].images[0].score


def test_an_image_that_was_replaced_is_scored_again(tiny_cct, tmp_path):
    folder = tmp_path / 'images'
    shutil.copytree(tiny_cct.images, folder)
    first = rank(tiny_cct, tmp_path / 'a', images=str(folder))
    scores = {Path(image.name).name: image.score for image in first.images}
    shutil.copy(folder / '1.png', folder / '2.png')
    os.utime(folder / '2.png', ns=(1, 2))  # all of one size: the time tells
    again = rank(tiny_cct, tmp_path / 'a', images=str(folder))
    changed = {Path(image.name).name: image.score for image in again.images}
    assert changed == {**scores, '2.png': scores['1.png']}
    assert scores['1.png'] != scores['2.png']


def test_torn_and_foreign_scores_are_left_out(tmp_path):
    good = RankedImage(0.5, 'a.png', dict(VAT=0.25))
    lines = [json.dumps(asdict(good)), '[1]', '3', 'null', '{"a": 1}', '[' * 9999, '{"score": 0.']
    for key, value in dict(score='x', name=3, by_perturbation=[1]).items():
        lines.append(json.dumps({**asdict(good), key: value}))
    (tmp_path / SCORES).mkdir()
    (tmp_path / SCORES / '0.jsonl').write_bytes(b'\xff\n' + '\n'.join(lines).encode())
    assert list(_read_scores(str(tmp_path))) == [good]


def test_the_unlabelled_set_of_the_config(tiny_cct, tmp_path):
    from_folder = rank(tiny_cct, tmp_path / 'a', images=tiny_cct.images)
    from_config = rank(tiny_cct, tmp_path / 'b')
    assert [image.name for image in from_config.images] == [
        image.name for image in from_folder.images
    ]
    assert [image.score for image in from_config.images] == [
        image.score for image in from_folder.images
    ]


def test_corrupt_images_are_reported(tiny_cct, tmp_path):
    folder = shutil.copytree(tiny_cct.images, tmp_path / 'images')
    (folder / 'bad.png').write_bytes(b'no image')
    ranking = rank(tiny_cct, tmp_path / 'out', images=str(folder))
    assert len(ranking.images) == 4
    (line,) = ranking.failed
    assert line.startswith(f'{folder}/bad.png: unreadable image (') and '\n' not in line


def test_a_published_checkpoint_cannot_rank(tiny_cct, tmp_path):
    published = publish_checkpoint(tiny_cct.checkpoint, str(tmp_path / 'small.pth'))
    with pytest.raises(UserError, match=r'small-.*\.pth: has no auxiliary decoders, as published'):
        rank_images(tiny_cct.config, str(published), str(tmp_path / 'out'), images=tiny_cct.images)
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
    ('options', 'match'),
    [
        ({'model.auxiliary_head': None}, r'model\.auxiliary_head is no PerturbedDecoderBank'),
        (
            {'model.auxiliary_head.perturbations.FeatureDrop.num_decoders': 5},
            r'auxiliary_head\.proj is \(7, 3, 6\), expected \(11, 3, 6\)',
        ),
        ({'train_dataloader.dataset.unlabeled': None}, r'no train_dataloader\.dataset\.unlabeled'),
        ({'train_dataloader.dataset.unlabeled.image_dir': 'nowhere'}, r'nowhere: no such folder'),
        (
            {
                'test_pipeline': [
                    dict(type='LoadImageFromFile'),
                    dict(type='RandomCrop', crop_size=(8, 8), cat_max_ratio=0.5),
                    dict(type='PackSegInputs'),
                ]
            },
            r"fails at the first image \(KeyError: 'gt_seg_map' in .*; expected settings that fit",
        ),
    ],
)
def test_mistakes_are_named(tiny_cct, tmp_path, options, match):
    with pytest.raises(UserError, match=match):
        rank(tiny_cct, tmp_path, options=options)


def test_disagreement_is_the_loss_of_the_bank():
    """The mean of the map is L_u under the same draws; padding is left out."""
    torch.manual_seed(0)
    config = tiny.model_config()
    config.auxiliary_head.loss_consistency.loss_weight = 1.0
    model = MODELS.build(config).eval()
    model.dataset_meta = dict(classes=('a', 'b', 'c'))
    image = torch.randint(0, 256, (3, 32, 40), dtype=torch.uint8)
    sample = SegDataSample(metainfo=dict(img_shape=(32, 40), ori_shape=(32, 40)))
    state = torch.get_rng_state()
    maps, labels = disagreement(
        model, dict(inputs=image, data_samples=sample), seed=4, measure='distance'
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert maps.shape == (7, 32, 40) and labels.shape == (32, 40)

    batch = model.data_preprocessor(dict(inputs=[image], data_samples=[sample]))
    with torch.no_grad():
        features = model.extract_feat(batch['inputs'])
        seg_logits = model.decode_head.forward(features)
    torch.manual_seed(4)
    loss = model.auxiliary_head.loss(features, seg_logits, [sample])
    torch.testing.assert_close(maps.mean(), loss['consistency'].detach(), rtol=1e-4, atol=1e-8)
    torch.manual_seed(4)
    q = model.auxiliary_head(features, seg_logits, [sample]).softmax(2)[:, 0]
    expected = (q - seg_logits[0].softmax(0)).square().mean(1)
    torch.testing.assert_close(maps, expected.detach(), rtol=1e-4, atol=1e-7)

    flips, _ = disagreement(model, dict(inputs=image, data_samples=sample), seed=4)
    assert torch.equal(flips, (q.argmax(1) != seg_logits[0].argmax(0)).float())
    smaller = dict(inputs=image[:, :27, :35], data_samples=sample)
    assert disagreement(model, smaller)[0].shape == (7, 27, 35)
