import re

import pytest
import torch
from mmengine.config import Config
from mmseg.apis import init_model
from mmseg.registry import DATASETS

from mmseg_cct.analysis.cluster_assumption import (
    class_regions,
    contrast,
    mean_neighbour_distance,
    ratio,
    upsampled,
)
from mmseg_cct.analysis.cluster_report import ClusterRequest, analyze, write_cluster_report
from mmseg_cct.errors import UserError

PATCHES = '20×20 patches'


def read_ratios(file):
    """The ratios by image and map."""
    lines = [line.strip('| ').split(' | ') for line in file.read_text().splitlines() if '|' in line]
    (_, *maps), _, *rows = lines
    return {
        (re.sub(r'\\\\', '', image), name): float(value)
        for image, *values in rows
        for name, value in zip(maps, values)
    }


@pytest.fixture(scope='module')
def report(trained, tmp_path_factory):
    out = tmp_path_factory.mktemp('clusters')
    options = ('--layers', 'backbone.layer1', 'backbone', '--num-images', 3, '--boundary-width', 2)
    trained.run('analyze_clusters', trained.file, trained.checkpoint, '--out', out, *options)
    return out


def test_ratios_of_every_image_and_map(report):
    ratios = read_ratios(report / 'clusters.md')
    images, maps = ['v0', 'v1', 'v2', 'all images'], [PATCHES, 'backbone.layer1', 'backbone']
    assert list(ratios) == [(image, name) for image in images for name in maps]
    assert (report / 'clusters.png').read_bytes().startswith(b'\x89PNG')


def test_images_of_the_same_name_all_count(cct, trained, tmp_path):
    for folder in (cct.data / 'val_images', cct.data / 'val_masks'):
        for index, file in enumerate(sorted(folder.iterdir())):
            (folder / f'city{index}').mkdir()
            file.rename(folder / f'city{index}' / f'frame{file.suffix}')
    write_cluster_report(
        ClusterRequest(str(cct.file), str(trained.checkpoint), str(tmp_path / 'out'))
    )
    images = [image for image, name in read_ratios(tmp_path / 'out/clusters.md') if name == PATCHES]
    assert images == [*(f'city{index}/frame' for index in range(3)), 'all images']


@torch.no_grad()
def test_ratios_are_those_of_the_models_own_features(report, trained):
    model = init_model(str(trained.file), str(trained.checkpoint), device='cpu')
    dataset = DATASETS.build(Config.fromfile(trained.file).test_dataloader.dataset)
    contrasts = []
    for index in range(3):
        item = dataset[index]
        data = model.data_preprocessor(
            dict(inputs=[item['inputs']], data_samples=[item['data_samples']])
        )
        features = model.backbone(data['inputs'])[-1][0]
        distances = mean_neighbour_distance(upsampled(features, item['inputs'].shape[1:]))
        regions = class_regions(item['data_samples'].gt_sem_seg.data[0], width=2)
        contrasts.append(contrast(distances, *regions))
    ratios = read_ratios(report / 'clusters.md')
    assert ratios['all images', 'backbone'] == pytest.approx(ratio(sum(contrasts)), abs=0.0051)
    assert ratios['v0', 'backbone'] == pytest.approx(ratio(contrasts[0]), abs=0.0051)


@torch.no_grad()
def test_a_margin_is_left_out_of_the_ratios(trained):
    model = init_model(str(trained.file), str(trained.checkpoint), device='cpu')
    item = DATASETS.build(Config.fromfile(trained.file).test_dataloader.dataset)[0]
    analysis = analyze(model, item, {'backbone': model.backbone}, boundary_width=2, margin=9)
    _, height, width = item['inputs'].shape
    for sums in analysis.contrasts.values():
        assert 0 < sums[1].sum() <= (height - 18) * (width - 18)
    boundary, inside = class_regions(item['data_samples'].gt_sem_seg.data[0], width=2)
    inner = torch.from_numpy(analysis.distances['backbone'])[9:-9, 9:-9]
    expected = contrast(inner, boundary[9:-9, 9:-9], inside[9:-9, 9:-9])
    assert torch.equal(analysis.contrasts['backbone'], expected)


def test_without_a_checkpoint_it_is_the_pretrained_backbone(trained, tmp_path):
    request = ClusterRequest(str(trained.file), None, str(tmp_path / 'out'), num_images=1)
    _, page = write_cluster_report(request)
    assert {name for _, name in read_ratios(page)} == {PATCHES, 'backbone'}


@pytest.mark.parametrize(
    ('layer', 'match'),
    [
        ('backbone.layer9', r'layer9: the model has no such module; .* name like backbone.conv1, '),
        ('nothing', r'no such module; expected a name like data_preprocessor, backbone'),
        ('decode_head.loss_decode', r'loss_decode: gives no output of its own when the model pre'),
        ('decode_head', r'a layer inside the main decoder, such as decode_head\.conv_seg'),
    ],
)
def test_a_layer_without_a_map_is_named(trained, tmp_path, layer, match):
    run = str(trained.file), str(trained.checkpoint), str(tmp_path)
    with pytest.raises(UserError, match=match):
        write_cluster_report(ClusterRequest(*run, layers=[layer]))


def test_a_missing_test_set_is_named(trained, tmp_path):
    options = dict(test_dataloader=None, test_cfg=None, test_evaluator=None)
    request = ClusterRequest(str(trained.file), None, str(tmp_path), cfg_options=options)
    with pytest.raises(UserError, match=r'tiny.py: no test_dataloader.dataset; expected labelled'):
        write_cluster_report(request)
