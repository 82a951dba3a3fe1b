import math

import pytest
import torch
import torch.nn.functional as F
from mmseg.apis import init_model

from mmseg_cct.apis.run import Run
from mmseg_cct.errors import UserError
from mmseg_cct.studies.clusters import (
    class_regions,
    contrast,
    distance_maps,
    mean_neighbour_distance,
    ratio,
    write_clusters,
)

PATCHES = '20×20 patches'


def test_two_regions_give_the_value_computed_by_hand():
    """Of 8 neighbours two lie in the same column; the upper border has 5, a corner 3."""
    # slopes of 1 per column with a step of 5 between columns 2 and 3
    features = torch.tensor([0.0, 1.0, 2.0, 7.0, 8.0, 9.0]).expand(1, 4, 6)
    regions = class_regions((features[0] > 4).long(), width=1)
    sums = contrast(mean_neighbour_distance(features), *regions)
    on_boundary = (4 * 18 / 8 + 4 * 12 / 5) / 8
    within = (4 * 6 / 8 + 4 * 4 / 5 + 4 * 3 / 5 + 4 * 2 / 3) / 16
    assert (sums[0] / sums[1]).tolist() == pytest.approx([on_boundary, within])
    assert ratio(sums) == pytest.approx(on_boundary / within)


def naive_distance(channels, patch_size):
    """Cuts out every patch, as far as both of a pair lie in the image, and compares it."""
    values = channels.movedim(0, -1)
    height, width, _ = values.shape
    pixels = {(y, x) for y in range(height) for x in range(width)}
    neighbours = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]
    patch = range(-(patch_size // 2), patch_size - patch_size // 2)
    result = torch.zeros(height, width)
    for y, x in pixels:
        distances = []
        for dy, dx in neighbours:
            if (y + dy, x + dx) in pixels:
                pairs = [((y + u, x + v), (y + dy + u, x + dx + v)) for u in patch for v in patch]
                inside = [(values[a] - values[b]) for a, b in pairs if {a, b} <= pixels]
                squares = torch.stack(inside).square().sum(1)
                distances.append((squares.mean() * patch_size**2).sqrt())
        result[y, x] = torch.stack(distances).mean()
    return result


@pytest.mark.parametrize('patch_size', [1, 2, 3, 4])
@pytest.mark.parametrize('channels', [1, 32])
def test_distances_equal_those_of_cut_out_patches(patch_size, channels, monkeypatch):
    monkeypatch.setattr('mmseg_cct.studies.clusters._CHANNELS', channels)
    torch.manual_seed(0)
    image = torch.randn(3, 6, 5)
    actual = mean_neighbour_distance(image, patch_size)
    torch.testing.assert_close(actual, naive_distance(image, patch_size))


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


LAYERS = ['backbone.layer1', 'backbone']


@torch.no_grad()
def test_ratios_are_those_of_the_models_own_features(trained, tmp_path):
    run = Run.open(trained.work_dir)
    table = write_clusters(run, tmp_path / 'out', LAYERS, num_images=3, boundary_width=2)
    assert table.header == ['image', PATCHES, *LAYERS]
    ratios = {name: values for name, *values in table.rows}
    assert list(ratios) == ['v0', 'v1', 'v2', 'all images']
    assert (tmp_path / 'out/clusters.png').read_bytes().startswith(b'\x89PNG')

    model = init_model(str(trained.file), str(trained.checkpoint), device='cpu')
    contrasts = []
    for item in run.test_loader.dataset:
        data = model.data_preprocessor(
            dict(inputs=[item['inputs']], data_samples=[item['data_samples']])
        )
        features = model.backbone(data['inputs'])[-1]
        upsampled = F.interpolate(features, item['inputs'].shape[1:], mode='bilinear')[0]
        regions = class_regions(item['data_samples'].gt_sem_seg.data[0], width=2)
        contrasts.append(contrast(naive_distance(upsampled, 1), *regions))
    assert float(ratios['all images'][-1]) == pytest.approx(ratio(sum(contrasts)), abs=0.0051)
    assert float(ratios['v0'][-1]) == pytest.approx(ratio(contrasts[0]), abs=0.0051)


@pytest.mark.parametrize('layer', ['backbone.layer9', 'decode_head.loss_decode', 'decode_head'])
def test_a_layer_without_a_map_is_named(trained, layer):
    run = Run.open(trained.work_dir)
    with pytest.raises(UserError) as raised:
        distance_maps(run.load_model('cpu'), run.test_loader.dataset[0], [layer])
    assert raised.value.problems[0].key == f'--layers {layer}'


def test_the_tool_prints_the_ratios(cct, trained, tmp_path, capsys):
    arguments = trained.work_dir, '--layers', 'backbone', '--num-images', 1
    assert cct.tool('analyze_clusters', *arguments, '--out', tmp_path / 'out') == 0
    assert '| all images | ' in capsys.readouterr().out
