import csv
import io
import json
import shutil

import numpy as np
import pytest
from importing import import_masks
from PIL import Image

from mmseg_cct.annotations import FORMATS
from mmseg_cct.apis.run import Run
from mmseg_cct.errors import UserError
from mmseg_cct.labelling.next_batch import BatchRequest, choose, next_batch
from mmseg_cct.labelling.ranking import ScoredImage

UNLABELED = 'train_dataloader.dataset.unlabeled'
DROP = 'model.auxiliary_head.perturbations.FeatureDrop'


@pytest.fixture
def batch_of(trained, photos, tmp_path):
    def write(out='out', **kwargs):
        arguments = dict(dict(images=str(photos), number=3, device='cpu'), **kwargs)
        run = Run.open(trained.checkpoint, options=arguments.pop('options', None))
        return next_batch(run, BatchRequest(str(tmp_path / out), **arguments))

    return write


def test_a_batch_holds_images_predictions_and_pages(
    batch_of, trained, photos, tmp_path, checkpoints_read
):
    shutil.copy(trained.data / 'val_images/v1.png', photos / 'seen.png')
    batch = batch_of(seed=3)
    assert len(checkpoints_read) == 1
    left_out = '1 labelled, 1 of the validation and test sets'
    assert batch.note == f'3 of 10 candidates; left out: {left_out}' and batch.failed == []
    out = tmp_path / 'out'
    predicted = Run.open(trained.work_dir).predictor([photos / each.name for each in batch.images])
    for image, segmented in zip(batch.images, predicted):
        assert (out / 'images' / image.name).read_bytes() == (photos / image.name).read_bytes()
        mask = Image.open(out / 'masks' / image.name)
        assert mask.mode == 'P' and np.array_equal(np.array(mask), segmented.labels)
        # the page shows the disagreement that ranks
        assert f'{image.doubt.mean():.3g} of the pixels' in image.detail
    header, *rows = csv.reader(io.StringIO((out / 'ranking.csv').read_text()))
    assert header[:3] == ['rank', 'file', 'score'] and header[-1] == 'position in the batch'
    assert [row[0] for row in rows] == [str(rank) for rank in range(1, 11)]
    assert sorted(row[-1] for row in rows)[-3:] == ['1', '2', '3']
    assert {row[1]: row[0] for row in rows if row[-1]} == {
        str(photos / image.name): image.detail.split()[1].strip(':') for image in batch.images
    }


def test_a_stopped_run_leaves_no_image_in_a_smaller_batch(batch_of, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr('mmseg_cct.labelling.next_batch.image_page', stop)
        batch_of(number=4)
    batch_of(number=1)
    assert len(list((tmp_path / 'out').glob('[im]*s/**/*.png'))) == 2


def test_an_earlier_batch_is_left_out(batch_of, tmp_path):
    first = batch_of(number=6)
    second = batch_of('second', number=6, without=[str(tmp_path / 'out/images')])
    assert second.note.startswith('4 of 4 candidates')
    assert second.note.endswith('6 of the folders to leave out')
    assert not {image.name for image in first.images} & {image.name for image in second.images}


def test_the_first_of_the_ranking_far_from_the_labelled_are_chosen():
    def image(name, *z):
        return ScoredImage(0.0, name, {}, list(z))

    ranked = [image('like a label', 1, 0), image('a', 0, 1), image('b', 0.1, 1)]
    ranked += [image('c', -1, 0), image('d', 0, -1)]
    ranked += [image(str(i), -9, -9) for i in range(20)]  # of low disagreement, so out of reach
    chosen = choose(ranked, [image('label', 1, 0)], 1)
    assert [each.name for each in chosen] == ['c']
    assert [each.name for each in choose(ranked[:3], [], 2)] == ['like a label', 'a']


@pytest.mark.parametrize(
    ('options', 'images', 'match'),
    [
        ({UNLABELED: None}, False, 'no unlabelled images; expected --images DIR'),
        ({f'{UNLABELED}.subset': 'labeled'}, False, 'no candidates left'),
        ({'model.auxiliary_head': None}, False, 'has no auxiliary decoders; expected a run of cct'),
        ({f'{DROP}.num_decoders': 5}, True, 'other auxiliary decoders'),
    ],
)
def test_mistakes_are_named(batch_of, photos, options, images, match):
    with pytest.raises(UserError, match=match):
        batch_of(options=options, images=str(photos) if images else None)


@pytest.mark.parametrize('form', FORMATS)
def test_an_export_that_nobody_touched_is_known(batch_of, photos, tmp_path, form):
    out, data = tmp_path / 'out', tmp_path / 'data'
    batch_of(format=form, images=str(photos / 'a'))
    export = min(out.glob(f'{form.replace("-", "_")}*'))
    if form == 'label-studio':
        export.write_text(export.read_text().replace('"predictions"', '"annotations"'))
    (data / 'images').mkdir(parents=True)
    shutil.copy(out / 'classes.json', data)
    imported = import_masks(export, data, images=out / 'images', batch=out)
    assert imported.masks == 0 and not imported.missing
    assert [sum(names.values()) for names in imported.notes.values()] == [3]
    labels = json.loads((out / 'labels_for_cvat.json').read_text()) if form == 'cvat' else []
    assert [label['name'] for label in labels] in ([], ['ground', 'thing', 'other'])
