"""The cluster assumption: distances and regions by hand and by naive loops, then the report."""

import dataclasses
import math
import re

import pytest
import torch
import torch.nn.functional as F
from mmengine.config import Config
from mmseg.apis import init_model
from mmseg.registry import DATASETS

from mmseg_cct.errors import UserError
from mmseg_cct.studies.clusters import (
    ClusterRequest,
    analyze,
    class_regions,
    contrast,
    mean_neighbour_distance,
    ratio,
    resize_nearest,
    upsampled,
    write_cluster_report,
)

PATCHES = '20×20 patches'


def two_regions():
    """Two slopes of 1 per column with a step of 5 between columns 2 and 3, and their labels."""
    column = torch.tensor([0.0, 1.0, 2.0, 7.0, 8.0, 9.0])
    features = column.expand(1, 4, 6)
    return features, (features[0] > 4).long()


def test_two_regions_give_the_value_computed_by_hand():
    features, labels = two_regions()
    distances = mean_neighbour_distance([features])
    # of 8 neighbours two lie in the same column, three on the left and three on the right
    assert distances[1, 1] == pytest.approx(6 * 1 / 8)
    assert distances[1, 2] == pytest.approx((3 * 5 + 3 * 1) / 8)
    assert distances[0, 2] == pytest.approx((2 * 5 + 2 * 1) / 5)  # the upper border has 5
    assert distances[0, 0] == pytest.approx(2 * 1 / 3)  # a corner 3

    boundary, inside = class_regions(labels, width=1)
    assert boundary[0].tolist() == [False, False, True, True, False, False]
    sums = contrast(distances, boundary, inside)
    on_boundary = (4 * 18 / 8 + 4 * 12 / 5) / 8
    within = (4 * 6 / 8 + 4 * 4 / 5 + 4 * 3 / 5 + 4 * 2 / 3) / 16
    assert (sums[0] / sums[1]).tolist() == pytest.approx([on_boundary, within])
    assert ratio(sums) == pytest.approx(on_boundary / within)


def naive_distance(channels, patch_size):
    """Cuts out every patch, as far as both of a pair lie in the image, and compares it."""
    _, height, width = channels.shape
    offsets = range(-(patch_size // 2), patch_size - patch_size // 2)
    result = torch.zeros(height, width)

    def inside(y, x):
        return 0 <= y < height and 0 <= x < width

    for y in range(height):
        for x in range(width):
            distances = []
            for dy, dx in [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]:
                if not inside(y + dy, x + dx):
                    continue
                squares = [
                    (channels[:, y + u, x + v] - channels[:, y + dy + u, x + dx + v]).square().sum()
                    for u in offsets
                    for v in offsets
                    if inside(y + u, x + v) and inside(y + dy + u, x + dx + v)
                ]
                distances.append((torch.stack(squares).mean() * patch_size**2).sqrt())
            result[y, x] = torch.stack(distances).mean()
    return result


@pytest.mark.parametrize('patch_size', [1, 2, 3, 4])
@pytest.mark.parametrize('channels', [1, 2, 3])
def test_distances_equal_those_of_cut_out_patches(patch_size, channels):
    torch.manual_seed(0)
    image = torch.randn(3, 6, 5)
    actual = mean_neighbour_distance(image.split(channels), patch_size)
    torch.testing.assert_close(actual, naive_distance(image, patch_size))


def test_features_are_resized_in_parts():
    torch.manual_seed(0)
    features = torch.randn(7, 3, 4)
    parts = list(upsampled(features, (12, 16), channels=3))
    assert [len(part) for part in parts] == [3, 3, 1]
    whole = F.interpolate(features[None], (12, 16), mode='bilinear')[0]
    torch.testing.assert_close(torch.cat(parts), whole)


def test_ignored_pixels_are_no_class():
    row = torch.tensor([0, 0, 0, 255, 255, 255, 0, 0, 255, 1, 1, 1, 1])
    boundary, inside = (r[0].long().tolist() for r in class_regions(row[None], width=1))
    # the hole in class 0 makes its surroundings neither; the contour between 0 and 1 is boundary
    assert boundary == [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert inside == [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    boundary, _ = class_regions(row[None], width=2)
    assert boundary[0].long().tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ('sums', 'expected'),
    [
        ([[6, 8], [6, 4]], 0.5),
        ([[0, 3], [0, 3]], math.nan),  # no boundary
        ([[3, 0], [3, 0]], math.nan),  # nothing inside
        ([[3, 0], [3, 3]], math.inf),
    ],
)
def test_the_ratio_is_that_of_means_over_pixels(sums, expected):
    assert ratio(torch.tensor(sums, dtype=torch.double)) == pytest.approx(expected, nan_ok=True)


def test_labels_keep_their_type_and_no_new_ones_arise():
    labels = torch.tensor([[[0, 255], [3, 7]]])
    assert resize_nearest(labels, (4, 2)).tolist() == [[0, 255], [0, 255], [3, 7], [3, 7]]
    assert resize_nearest(labels, (2, 2)).dtype == labels.dtype
    # each is that at the centre
    assert resize_nearest(torch.arange(6)[None, None], (1, 2)).tolist() == [[1, 4]]


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
    options = dict(test_dataloader=None, test_cfg=None, test_evaluator=None)
    with pytest.raises(UserError, match=r'tiny.py: no test_dataloader.dataset; expected labelled'):
        write_cluster_report(dataclasses.replace(request, cfg_options=options))


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
