"""Pseudo labels from image-level labels: class activation maps, thresholds, dense CRF."""

from mmengine.config import Config
from mmengine.dist import get_rank

from mmseg_cct.datasets.leaves import data_folders
from mmseg_cct.engine.visualization.label_maps import full_palette
from mmseg_cct.errors import raise_problems
from mmseg_cct.preflight.classes import order_problems, output_problems
from mmseg_cct.utils.log import say
from mmseg_cct.utils.output_folder import OutputFolder, file_stamp
from mmseg_cct.utils.processes import ImageCounts, SharedImages

from .agreement import agreement_table
from .cam import load_classifier
from .labels_from_maps import require_pydensecrf
from .settings import read_settings
from .writer import BEFORE_CRF, LABELS, RECORD, LabelWriter, write_pseudo_labels


def make_pseudo_labels(
    config: Config,
    checkpoint: str,
    out: str,
    *,
    with_crf: bool = True,
    workers: int = 1,
    batch_size: int = 8,
    device: str = 'cpu',
) -> ImageCounts:
    """Generates pseudo labels for a config's images, and logs how they agree with its masks.

    Images that an earlier run finished are skipped unless the file or its image-level labels have
    changed. Connected processes share the images, and the first logs the table.

    `config` and `checkpoint` are the classifier's, and `batch_size` is the number of images that it
    takes at a time; 0 `workers` work in this process.
    """
    if with_crf:
        require_pydensecrf()
    settings = read_settings(config)
    model = load_classifier(config, checkpoint, device)
    # By name: the classifier counts without the background, the labels with it.
    meta = dict(classes=[settings.classes[label_id] for label_id in settings.label_ids])
    raise_problems(output_problems(model, meta, 'pseudo_labels.images'))
    raise_problems(order_problems(meta, model.dataset_meta, checkpoint))

    made_of = {i.name: [list(i.class_ids), file_stamp(i.path)] for i in settings.images}
    origin = settings.origin(model.state_dict(), with_crf)
    with OutputFolder(out, RECORD, data_folders(config), origin) as folder:
        names = set(folder.remaining(made_of, LABELS))
        todo = [image for image in settings.images if image.name in names]
        share = SharedImages(todo, len(settings.images) - len(todo))
        crf = settings.crf if with_crf else None
        # White beyond the ids: a shorter palette makes a PNG of fewer bits, which cannot hold 255.
        palette = full_palette(settings.palette)
        writer = LabelWriter(settings.background, settings.thresholds, crf, palette, out)
        write_pseudo_labels(model, settings, share, writer, workers, batch_size)
        counts = share.total()
        if get_rank() == 0:
            say(agreement_table(settings, out, [BEFORE_CRF, LABELS] if with_crf else [LABELS]))
    return counts
