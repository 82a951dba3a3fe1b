"""Installs mmseg_cct: `pip install .`, for development `pip install -e .[weak,dev]`."""

import contextlib
import os
import re
import runpy
import shutil
import tempfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
# Run, not imported: importing the package would need what is about to be installed.
VERSION = runpy.run_path(str(ROOT / 'mmseg_cct' / 'version.py'))['__version__']
STACK = runpy.run_path(str(ROOT / 'mmseg_cct' / 'stack.py'))['MAINTAINED']

REPOSITORY = 'https://github.com/mmseg-cct/mmseg-cct'

# mmpretrain imports torchvision and does not declare it.
MMPRETRAIN = ['onedl-mmpretrain>=1.3.6,<1.4', 'torchvision']
# mkdocs 2 has no plugins, which mkdocstrings is.
DOCS = ['mkdocs>=1.6,<2', 'mkdocs-material>=9,<10', 'mkdocstrings[python]>=1,<2']
# the last mkdocstrings for Python 3.10 breaks with version 12
DOCS += ['pymdown-extensions<12; python_version < "3.11"']
# tifffile decompresses other methods than Deflate by it
TIFF = ['imagecodecs']
# to write ONNX files, and to run them once
EXPORT = ['onnx', 'onnxscript', 'onnxruntime']


class BuildPackage(build_py):
    """Adds `.mim`, in which MMEngine and MIM look for a package's configs and tools."""

    def run(self) -> None:
        """Copies them into a wheel; an editable installation has links to the checkout's own."""
        super().run()
        root = ROOT if self.editable_mode else Path(self.build_lib)
        if not os.access(root, os.W_OK):  # a checkout that one may only read
            return
        folder = root / 'mmseg_cct' / '.mim'
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in ('configs', 'tools', 'model-index.yml'):
            self.provide(ROOT / name, folder / name)

    def provide(self, source: Path, target: Path) -> None:
        """Links a file or folder, or copies it; the scripts that install the project stay out.

        Args:
            source: The project's own.
            target: Its place in the package.
        """
        if self.editable_mode:
            with contextlib.suppress(OSError):  # Windows allows links to developers only
                return target.symlink_to(os.path.relpath(source, target.parent))
        if source.is_file():
            shutil.copy(source, target)
        else:
            own = '__pycache__', '*.pyc', 'demo.sh', 'run_tests.sh', 'setup_venv.sh'
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(*own))


def index_page() -> str:
    """Makes a page for a package index of the README.

    Returns:
        Its text, with pictures and links that lead to the repository.
    """
    text = (ROOT / 'README.md').read_text(encoding='utf-8')
    text = re.sub(r'(!\[[^\]]*\]\()(?!https?:)', rf'\1{REPOSITORY}/raw/main/', text)
    return re.sub(r'\]\((?!https?:|#)', f']({REPOSITORY}/blob/main/', text)


# What was built before would bring files back that are gone since.
shutil.rmtree(ROOT / 'build' / 'lib', ignore_errors=True)
options = {}
if not os.access(ROOT, os.W_OK):  # setuptools writes its notes beside the source
    scratch = tempfile.mkdtemp()
    options = dict(egg_info=dict(egg_base=scratch), build=dict(build_base=scratch))

setup(
    name='mmseg_cct',
    version=VERSION,
    description='Cross-consistency training (CCT): semi-supervised segmentation for MMSegmentation',
    long_description=index_page(),
    long_description_content_type='text/markdown',
    author='the mmseg_cct authors',
    license='Apache-2.0',
    url=REPOSITORY,
    project_urls={
        'Documentation': 'https://mmseg-cct.github.io/mmseg-cct/',
        'Source': REPOSITORY,
        'Issues': f'{REPOSITORY}/issues',
        'Changelog': f'{REPOSITORY}/blob/main/CHANGELOG.md',
    },
    keywords=[
        'semi-supervised learning',
        'semantic segmentation',
        'consistency training',
        'PyTorch',
        'MMSegmentation',
    ],
    classifiers=[
        'Development Status :: 5 - Production/Stable',
        'Intended Audience :: Developers',
        'Intended Audience :: Science/Research',
        'Operating System :: POSIX :: Linux',
        'Operating System :: MacOS',
        'Operating System :: Microsoft :: Windows',
        'Programming Language :: Python :: 3',
        'Programming Language :: Python :: 3.10',
        'Programming Language :: Python :: 3.11',
        'Programming Language :: Python :: 3.12',
        'Programming Language :: Python :: 3.13',
        'Programming Language :: Python :: 3.14',
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
        'Topic :: Scientific/Engineering :: Image Processing',
        'Typing :: Typed',
    ],
    license_files=['LICENSE'],
    packages=find_packages(include=['mmseg_cct', 'mmseg_cct.*']),
    # An editable installation is then a path. Otherwise it is a finder that Python asks last, and
    # from the folder of a clone named mmseg_cct, the clone would be imported as an empty package.
    package_dir={'': '.'},
    options=options,
    package_data={'mmseg_cct': ['py.typed', '**/*.jinja', 'models/layers/*.cpp']},
    cmdclass={'build_py': BuildPackage},
    include_package_data=False,
    python_requires='>=3.10',
    entry_points={'console_scripts': ['mmseg-cct = mmseg_cct.__main__:main']},
    install_requires=[name + bounds for name, bounds in STACK.items()]
    + ['filelock>=3.25', 'jinja2', 'matplotlib', 'numpy', 'opencv-python', 'packaging', 'pillow']
    + ['scipy', 'tensorboard', 'tifffile', 'tqdm'],
    extras_require={
        # mmpretrain backbones, image-level pseudo labels, and what builds their dense CRF: `pip
        # install --no-build-isolation pydensecrf2`, as the Cython it asks for knows no Python 3.13
        'weak': [*MMPRETRAIN, 'cython>=3', 'setuptools', 'wheel'],
        # the checks of tools/run_tests.sh; the tests build mmpretrain and timm backbones
        'dev': [
            *MMPRETRAIN,
            *DOCS,
            *EXPORT,
            *TIFF,
            'timm',
            'ruff',
            'mypy',
            'hypothesis>=6',
            'pydoclint',
            'pytest>=8',
            'pytest-cov',
            'pytest-xdist>=3',
            'setuptools>=77',
        ],
        'tiff': TIFF,
        # other projects' code in tests/annotations/test_clients.py
        'clients': ['datumaro', 'label-studio-sdk', 'labelme>=7', 'pycocotools'],
        # tools/ablation.py --slurm
        'cluster': ['submitit>=1.5'],
        # tools/publish_model.py --onnx
        'export': EXPORT,
        # the site alone: `mkdocs serve`
        'docs': DOCS,
    },
    zip_safe=False,
)
