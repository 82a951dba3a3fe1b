import csv

import pytest
import torch
from mmengine.config import Config
from mmseg.apis import init_model
from mmseg.registry import DATASETS

from mmseg_cct.analysis.cluster_assumption import (
    BoundaryContrast,
    class_regions,
    mean_neighbour_distance,
    upsampled,
)
from mmseg_cct.analysis.cluster_report import ClusterRequest, analyze, write_cluster_report
from mmseg_cct.errors import UserError

PATCHES = '20×20 patches'


def read_ratios(file):
    with file.open(encoding='utf-8') as stream:
        return {(row['image'], row['map']): float(row['ratio']) for row in csv.DictReader(stream)}


@pytest.fixture(scope='module')
def report(trained, tmp_path_factory):
    out = tmp_path_factory.mktemp('clusters')
    trained.run(
        'analyze_clusters',
        trained.file,
        trained.checkpoint,
        '--out',
        out,
        '--layers',
        'backbone.layer1',
        'backbone',
        '--num-images',
        3,
        '--pictures',
        2,
        '--boundary-width',
        2,
    )
    return out


def test_ratios_of_every_image_and_map(report):
    ratios = read_ratios(report / 'clusters.csv')
    images, maps = ['v0', 'v1', 'v2', 'all images'], [PATCHES, 'backbone.layer1', 'backbone']
    assert list(ratios) == [(image, name) for image in images for name in maps]
    table = (report / 'clusters.md').read_text()
    assert '| image | 20×20 patches | backbone.layer1 | backbone |' in table
    assert f'| {ratios["all images", PATCHES]:.2f} |' in table
    assert (report / 'clusters.png').read_bytes().startswith(b'\x89PNG')


def test_images_of_the_same_name_all_count(cct, trained, tmp_path):
    for folder in (cct.data / 'val_images', cct.data / 'val_masks'):
        for index, file in enumerate(sorted(folder.iterdir())):
            (folder / f'city{index}').mkdir()
            file.rename(folder / f'city{index}' / f'frame{file.suffix}')
    write_cluster_report(
        ClusterRequest(str(cct.file), str(trained.checkpoint), str(tmp_path / 'out'))
    )
    images = [
        image for image, name in read_ratios(tmp_path / 'out/clusters.csv') if name == PATCHES
    ]
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
        contrasts.append(BoundaryContrast.of(distances, *regions))
    expected = sum(contrasts, BoundaryContrast()).ratio
    ratios = read_ratios(report / 'clusters.csv')
    assert ratios['all images', 'backbone'] == pytest.approx(expected, rel=1e-4)
    assert ratios['v0', 'backbone'] == pytest.approx(contrasts[0].ratio, rel=1e-4)


@torch.no_grad()
def test_a_margin_is_left_out_of_the_ratios(trained):
    model = init_model(str(trained.file), str(trained.checkpoint), device='cpu')
    item = DATASETS.build(Config.fromfile(trained.file).test_dataloader.dataset)[0]
    analysis = analyze(model, item, {'backbone': model.backbone}, boundary_width=2, margin=9)
    _, height, width = item['inputs'].shape
    for contrast in analysis.contrasts.values():
        assert 0 < contrast.boundary_count + contrast.inside_count <= (height - 18) * (width - 18)
    boundary, inside = class_regions(item['data_samples'].gt_sem_seg.data[0], width=2)
    inner = torch.from_numpy(analysis.distances['backbone'])[9:-9, 9:-9]
    assert analysis.contrasts['backbone'] == BoundaryContrast.of(
        inner, boundary[9:-9, 9:-9], inside[9:-9, 9:-9]
    )


def test_without_masks_there_are_maps_alone(trained, tmp_path):
    trained.run(
        'analyze_clusters', trained.file, '--images', trained.images, '--out', tmp_path / 'out'
    )
    assert {file.name for file in (tmp_path / 'out').iterdir()} == {
        'clusters.json',
        'clusters.png',
    }


@pytest.mark.parametrize(
    ('layers', 'match'),
    [
        (
            ['backbone.layer9'],
            r'--layers backbone.layer9: the model has no such module; expected a '
            r'name like backbone.conv1, ',
        ),
        (['nothing'], r'no such module; expected a name like data_preprocessor, backbone'),
        (
            ['decode_head.loss_decode'],
            r'decode_head.loss_decode: gives no output of its own when the model predicts',
        ),
        (['decode_head'], r'a layer inside the main decoder, such as decode_head\.conv_seg'),
    ],
)
def test_a_layer_without_a_map_is_named(trained, tmp_path, layers, match):
    with pytest.raises(UserError, match=match):
        write_cluster_report(
            ClusterRequest(str(trained.file), str(trained.checkpoint), str(tmp_path), layers=layers)
        )


def test_missing_data_is_named(trained, tmp_path):
    with pytest.raises(UserError, match=r'no such folder'):
        write_cluster_report(
            ClusterRequest(str(trained.file), None, str(tmp_path), images='nowhere')
        )
    with pytest.raises(UserError, match=r'tiny.py: no val_dataloader.dataset; expected one'):
        write_cluster_report(
            ClusterRequest(
                str(trained.file),
                None,
                str(tmp_path),
                split='val',
                cfg_options=dict(val_dataloader=None),
            )
        )


def test_bad_data_are_named(cct, trained, tmp_path):
    image = cct.data / 'val_images/v1.png'
    image.write_bytes(image.read_bytes()[:600])
    with pytest.raises(UserError, match=r'test_dataloader\.dataset: .*v1\.png'):
        write_cluster_report(
            ClusterRequest(str(cct.file), str(trained.checkpoint), str(tmp_path / 'out'))
        )
    folder = tmp_path / 'photos'
    folder.mkdir()
    image.rename(folder / 'cut.png')
    run = str(trained.file), None, str(tmp_path / 'out')
    with pytest.raises(UserError, match=r'cut\.png: cannot be read \('):
        write_cluster_report(ClusterRequest(*run, images=str(folder), layers=['backbone']))
