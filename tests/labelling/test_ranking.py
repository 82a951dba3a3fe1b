import copy
import math
import shutil

import pytest
import tiny
import torch
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from mmseg_cct.apis.run import Run
from mmseg_cct.errors import UserError
from mmseg_cct.labelling import ranking
from mmseg_cct.labelling.listed_images import images_in
from mmseg_cct.labelling.ranking import SCORES, disagreement, load_training_model, rank_images


@pytest.fixture(scope='module')
def model(trained):
    return load_training_model(Run.open(trained.work_dir), 'cpu')


def test_scores_are_means_in_falling_order(trained, model, tmp_path):
    images = rank_images(model, images_in(str(trained.images)), tmp_path).images
    names = list(model.auxiliary_head.perturbations)
    assert {image.name for image in images} == {*map(str, trained.images.iterdir())}
    scores = [image.score for image in images]
    assert scores == sorted(scores, reverse=True) and scores[-1] > 0
    for image in images:
        assert list(image.by_perturbation) == names
        # one decoder of each kind here: their mean is the score
        mean = sum(image.by_perturbation.values()) / len(names)
        assert mean == pytest.approx(image.score, rel=1e-4)
    # and they are the images' own, not those of a place in the list or of a name
    (tmp_path / 'alone').mkdir()
    shutil.copy(trained.images / 'u2.png', tmp_path / 'alone' / 'other_name.png')
    (second,) = rank_images(model, images_in(str(tmp_path / 'alone')), tmp_path / 'b').images
    expected = {image.name[-6:]: image for image in images}['u2.png']
    for attribute in ('score', 'by_perturbation', 'z'):
        assert getattr(second, attribute) == getattr(expected, attribute)


def test_a_corrupt_image_and_logits_that_are_not_finite_are_told(trained, model, tmp_path):
    folder = shutil.copytree(trained.images, tmp_path / 'images')
    (folder / 'bad.png').write_bytes(b'no image')
    found = rank_images(model, images_in(str(folder)), tmp_path / 'a')
    assert len(found.images) == 8
    (line,) = found.failed
    assert line.startswith(f'{folder}/bad.png: cannot be read (') and '\n' not in line
    broken = copy.deepcopy(model)
    next(broken.decode_head.parameters()).data.fill_(math.nan)
    with pytest.raises(UserError, match=r'\.png: the logits are not finite'):
        rank_images(broken, images_in(str(folder)), tmp_path / 'b')


def test_the_maps_are_of_the_banks_predictions_with_a_seed():
    """And padding is left out."""
    torch.manual_seed(0)
    model = MODELS.build(tiny.model_config()).eval()
    model.dataset_meta = dict(classes=('a', 'b', 'c'))
    image = torch.randint(0, 256, (3, 32, 40), dtype=torch.uint8)
    sample = SegDataSample(metainfo=dict(img_shape=(32, 40), ori_shape=(32, 40)))
    state = torch.get_rng_state()
    maps, z = disagreement(model, dict(inputs=image, data_samples=sample), seed=4)
    assert torch.equal(torch.get_rng_state(), state)
    assert maps.shape == (7, 32, 40)
    other = disagreement(model, dict(inputs=image, data_samples=sample), seed=5)
    assert not torch.equal(other.maps, maps)

    batch = model.data_preprocessor(dict(inputs=[image], data_samples=[sample]))
    with torch.no_grad():
        features = model.extract_feat(batch['inputs'])
        seg_logits = model.decode_head.forward(features)
    torch.manual_seed(4)
    q = model.auxiliary_head(features, seg_logits, [sample]).softmax(2)[:, 0]
    assert torch.equal(maps, (q.argmax(1) != seg_logits[0].argmax(0)).float())
    pooled = features[-1].mean((0, 2, 3))
    torch.testing.assert_close(z, pooled / pooled.norm())
    smaller = dict(inputs=image[:, :27, :35], data_samples=sample)
    assert disagreement(model, smaller).maps.shape == (7, 27, 35)


def test_a_ranking_goes_on_where_it_was(trained, model, tmp_path, monkeypatch):
    images = images_in(str(trained.images))
    expected = rank_images(model, images, tmp_path)
    scores = tmp_path / SCORES / '0.jsonl'
    lines = scores.read_text().splitlines(keepends=True)
    scores.write_text(''.join(lines[:4]) + lines[4][:30])  # killed while it wrote
    scored, real = [], ranking.disagreement
    monkeypatch.setattr(ranking, 'disagreement', lambda *a: scored.append(a) or real(*a))
    assert rank_images(model, images, tmp_path) == expected
    assert len(scored) == 5 and len(expected.images) == 8


def test_an_image_that_was_replaced_is_scored_anew(trained, model, tmp_path):
    photos = shutil.copytree(trained.images, tmp_path / 'photos')
    images, out = images_in(str(photos)), tmp_path / 'out'
    before = {image.name: image.score for image in rank_images(model, images, out).images}
    first, second, *_ = images
    shutil.copyfile(second, first)
    after = {image.name: image.score for image in rank_images(model, images, out).images}
    assert after.pop(first) == before[second] != before.pop(first) and after == before
