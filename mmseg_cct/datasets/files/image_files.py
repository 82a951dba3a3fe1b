"""Finds the images and masks of a folder, and reads text files that list images."""

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import product
from operator import attrgetter
from pathlib import Path, PurePath, PurePosixPath

from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import read_utf8, write_text
from mmseg_cct.utils.text import counted

IMAGE_SUFFIXES = ('.jpg', '.jpeg', '.png', '.bmp', '.tif', '.tiff', '.webp')
VAL_LIST = 'val.txt'  # in a data folder: the images that an import found to be for validation
Dirs = tuple[Path, Path]  # of images and of masks
# Our names first, then those of MMSegmentation, ADE20K, VOC, Cityscapes, nnU-Net and others
_IMAGES = 'images', 'img_dir', 'imgs', 'image', 'JPEGImages', 'leftImg8bit', 'imagesTr'
_MASKS = (
    *('masks', 'ann_dir', 'annotations', 'labels', 'mask', 'label', 'gt', 'SegmentationClass'),
    *('gtFine', 'labelsTr'),
)
_OF_TOOLS = ('.', '@', '#', '__MACOSX')  # how folders begin that hold no photo and no mask


def is_of_a_tool(path: str) -> bool:
    """Whether a file or a folder, whose path ends in `/`, is hidden or in a tool's own folder.

    There macOS, Jupyter, Synology and others keep copies, thumbnails and what was deleted.
    """
    *folders, name = path.split('/')
    return name.startswith('.') or any(part.startswith(_OF_TOOLS) for part in folders)


def find_files(folder: str | os.PathLike) -> list[str]:
    """Finds the files below a folder, sorted, as `Path` writes them; follows links.

    What `is_of_a_tool` is left out.
    """

    def walk(directory: str, prefix: str, above: frozenset[str]) -> Iterator[str]:
        # Strings, since paths take eight times as long: folders hold a million images.
        for entry in sorted(os.scandir(directory), key=attrgetter('name')):
            path = prefix + entry.name
            if not entry.is_dir():
                if not is_of_a_tool(entry.name):
                    yield path
            elif is_of_a_tool(f'{entry.name}/'):
                continue
            elif (real := os.path.realpath(path)) not in above:  # else a link leads in a circle
                yield from walk(path, f'{path}/', above | {real})

    return list(walk(os.fspath(folder), _prefix(folder), frozenset({os.path.realpath(folder)})))


def _prefix(folder: str | os.PathLike) -> str:
    root = Path(folder).as_posix()
    return '' if root == '.' else root if root.endswith('/') else f'{root}/'


def find_masks(folder: str | os.PathLike, suffix: str = '.png') -> dict[str, str]:
    """Finds the masks below a folder: sorted paths by relative name without suffix.

    The `suffix` may be in upper or lower case: a skipped `.PNG` would leave its image without mask.
    """
    if not os.path.isdir(folder):
        raise UserError(folder, 'no such folder', 'a folder of masks')
    start, end = len(_prefix(folder)), suffix.lower()
    masks: dict[str, str] = {}
    for path in find_files(folder):
        if path.lower().endswith(end):
            _add(masks, path[start : len(path) - len(end)], path, 'mask')
    return masks


def find_images(
    folder: str | os.PathLike,
    suffix: str | None = None,
    without: Collection[Path] = (),
    left_out: list[str] | None = None,
) -> dict[str, str]:
    """Finds the images below a folder: sorted paths by relative name without suffix.

    The `suffix` ends their names (``_leftImg8bit.png`` for Cityscapes), in any case; without an
    extension (``_leftImg8bit``) or None, it takes every image format. The resolved paths in
    `without` are left out. Files of other formats are added to `left_out`.
    """
    if not os.path.isdir(folder):
        raise UserError(folder, 'no such folder', 'a folder of images')
    start, images = len(_prefix(folder)), dict[str, str]()
    end_of_stem = (suffix or '').lower()
    ends = tuple(end_of_stem + extension for extension in IMAGE_SUFFIXES)
    ends = (end_of_stem,) if '.' in end_of_stem else ends
    for path in find_files(folder):
        end = next((end for end in ends if path.lower().endswith(end)), None)
        if end is None:
            # a file without an extension is none that somebody meant as an image
            extension = os.path.splitext(path)[1].lower()
            if left_out is not None and extension and extension not in IMAGE_SUFFIXES:
                left_out.append(path)
        elif not without or Path(path).resolve() not in without:
            _add(images, path[start : len(path) - len(end)], path, 'image')
    if not images:
        expected = ', '.join(IMAGE_SUFFIXES) if suffix is None else f'names that end in {suffix}'
        raise UserError(folder, 'no image in this folder', expected)
    return dict(sorted(images.items()))


def describe_left_out(folder: str | os.PathLike, left_out: Sequence[str]) -> str:
    """Says which files of a folder of images are none, such as HEIC and DICOM."""
    suffixes = ', '.join(sorted({os.path.splitext(path)[1] for path in left_out})[:5])
    files = f'{counted(len(left_out), "file")} left out ({suffixes})'
    return f'{folder}: {files}, first {left_out[0]}; expected {", ".join(IMAGE_SUFFIXES)}'


def _add(paths: dict[str, str], name: str, path: str, file_type: str) -> None:
    # macOS may store `ä` as `a` and its dots
    if (twin := paths.setdefault(unicodedata.normalize('NFC', name), path)) != path:
        problem = f'differs from {os.path.basename(twin)} in its extension or Unicode form only'
        raise UserError(path, problem, f'one {file_type} for each name')


def masks_of_images(
    folder: str | os.PathLike, suffix: str, images: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """Finds the masks of images, by name as `find_masks`, and the paths of those without an image.

    Raises:
        UserError: There is no such folder, or a mask has another suffix.
    """
    masks = find_masks(folder, suffix)
    end = suffix.partition('.')[0]
    for path in find_files(folder):
        name = PurePath(path).relative_to(folder).with_suffix('').as_posix()
        image = name.removesuffix(end)
        if name.endswith(end) and image in images and image not in masks:
            problem = f'mask suffix differs from {suffix}; its image would count as unlabelled'
            raise UserError(path, problem, f'{image}{suffix}')
    strays = sorted(masks.keys() - {*images})
    paths = [masks.pop(name) for name in strays]
    return masks, paths


def read_list(path: str | os.PathLike) -> list[str]:
    """Reads the names in a list of images, in its order.

    A line holds a name, or the two columns of the public CCT code, image and mask
    (``/JPEGImages/2007_000032.jpg /SegmentationClassAug/2007_000032.png``), which stand for the
    image's stem.
    """
    expected = 'a text file with one image name per line'
    if not os.path.exists(path):
        source = 'mmseg-cct make-splits; --from-unimatch for standard ones of VOC and Cityscapes'
        raise UserError(path, 'no such file', f'{expected} ({source})')
    names = []
    # Not `splitlines`, which also breaks lines at other characters that a name may hold.
    for line in re.split(r'[\r\n]', read_utf8(path, expected)):
        # A name may hold dots and spaces, so two columns are known by two extensions of images
        columns = line.split()
        is_pair = len(columns) == 2 and all(image_stem(column) != column for column in columns)
        name = PurePosixPath(columns[0]).stem if is_pair else line.strip()
        if name:
            names.append(name)
    if not names:
        raise UserError(path, 'the list is empty', expected)
    # `a.jpg` and `a` are the same image
    for stem, number in Counter(map(image_stem, names)).items():
        if number > 1:
            raise UserError(path, f'{stem} is listed twice', 'every image once')
    return names


def image_stem(name: str) -> str:
    """Removes the extension of an image format from a name; any other is part of the name."""
    stem, extension = os.path.splitext(name)
    return stem if extension.lower() in IMAGE_SUFFIXES else name


def find_listed(name: str, images: Collection[str]) -> str | None:
    """Finds the image that a line of a list or a table stands for."""
    name = unicodedata.normalize('NFC', name)
    return next((key for key in (name, image_stem(name)) if key in images), None)


def write_list(path: str | Path, names: Iterable[str]) -> None:
    """Writes a list of images, one name per line."""
    write_text(path, ''.join(f'{name}\n' for name in names))


def resolve_list(ann_file: str) -> str:
    """Makes the path of a list in the working directory absolute; it goes before `data_root`."""
    if ann_file and not os.path.isabs(ann_file) and os.path.isfile(ann_file):
        return os.path.abspath(ann_file)
    return ann_file


def training_dirs(data: str | Path) -> Dirs:
    """Finds the folders of images and masks in a data folder, or else in its folder `train`."""
    return _first(Path(data), Path(data, 'train')) or (Path(data, 'images'), Path(data, 'masks'))


def validation_dirs(data: str | Path) -> Dirs | None:
    """Finds the folders of the images and masks to validate on, if there is a folder of them."""
    parts = [path for name in ('val', 'valid', 'validation') if (path := Path(data, name)).is_dir()]
    return _first(*parts) or ((parts[0] / 'images', parts[0] / 'masks') if parts else None)


def is_validation(names: Iterable[str]) -> bool:
    """Whether one of the names of a folder or subset means validation, such as `val2017`."""
    return any(re.fullmatch(r'val(id|idation)?\d*', name.lower()) for name in names)


def _first(*roots: Path) -> Dirs | None:
    pairs = (
        (root / images, root / masks) for root, images, masks in product(roots, _IMAGES, _MASKS)
    )
    return next((pair for pair in pairs if pair[0].is_dir() and pair[1].is_dir()), None)
