"""The floor plan: which package may import which; tests mirror the tree."""

import ast
import graphlib
import re

import pytest

# What each may import, besides itself; above it stands all that it may use. The modules at the root
# (errors, stack, version) are for everybody. The package itself
# imports its version and nothing else, so that `--help` is answered at once.
ROOMS = {
    'errors': set(),
    'stack': set(),
    'version': set(),
    '__init__': {'version'},
    'utils': {'errors'},
    'config': {'errors', 'utils'},
    'models': {'errors', 'stack', 'utils', 'config'},
    'datasets': {'errors', 'utils', 'config'},
    'annotations': {'errors', 'utils', 'datasets'},
    'engine': {*('errors', 'utils', 'config', 'models', 'datasets')},
    # Knows the whole run, so it stands above the run's parts.
    'preflight': {'errors', 'utils', 'config', 'datasets', 'engine'},
    # Registers what a config can name; it loads no tool's code.
    'plugin': {'stack', 'config', 'datasets', 'engine', 'models', 'preflight'},
    'cli': {'errors', 'stack', 'version', 'utils', 'config', 'plugin'},
    'writer': {'errors', 'utils', 'annotations', 'config', 'datasets', 'engine', 'preflight'},
    'apis': {
        *('errors', 'version', 'utils', 'annotations', 'config', 'datasets', 'engine', 'preflight')
    },
    'pseudo_labels': {'errors', 'utils', 'datasets', 'engine', 'preflight'},
    'studies': {
        *('errors', 'utils', 'annotations', 'config', 'datasets', 'engine', 'preflight'),
        *('apis', 'models'),
    },
    # The command line runs the tools as scripts.
    '__main__': {'errors', 'version', 'utils', 'config', 'cli'},
}
# Folders of tests that belong to none of the rooms.
OTHER_TESTS = {'benchmarks', 'docs', 'examples', 'shared', 'tools', 'trust'}
# Modules without a file of tests of their own name, and where they are tested.
TESTED_ELSEWHERE = {
    '__init__': 'test_package',
    '__main__': 'test_package runs the command line',
    'version': 'test_package',
    'preflight/components': 'preflight/test_values',
    'writer/choices': 'writer/test_new_config',
    'writer/method_parts': 'writer/test_new_config',
    'writer/pipeline_lines': 'writer/test_new_config loads what is written',
    'annotations/readers/geometry': 'in the tests of each reader',
    'datasets/shapes_scene': 'datasets/test_shapes',
    'datasets/transforms/set_domain': 'datasets/test_multi_domain',
    'datasets/samplers/streams': 'datasets/samplers/test_pair_sampler',
    'models/perturbations/paper': 'models/heads/test_perturbed_decoder_bank',
    'models/losses/pixel_term': 'models/losses/test_auxiliary',
    **{
        f'models/segmentors/{name}': 'models/segmentors/test_strong_views'
        for name in ('cct_plus', 'cct_strong', 'fixmatch', 'unimatch', 'unimatch_v2')
    },
    **{
        f'annotations/writers/{name}': 'annotations/test_export writes and reads every format'
        for name in ('coco', 'cvat', 'label_studio', 'labelme', 'output')
    },
}
# Tests of several modules of a room together.
OF_A_ROOM = {
    'engine/test_run_lengths',
    'annotations/readers/test_formats',  # damage in any format
    'annotations/test_clients',
    'datasets/test_mistakes',  # in the settings of any part
    'apis/test_public_code',
    'models/segmentors/test_auxiliary_heads',
    'models/segmentors/test_unchanged_models',
    'models/test_pinned_losses',
    'pseudo_labels/test_weak_configs',
}


def imported_modules(path, package):
    """Absolute names of what a file imports, at its top and inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level + 1] if node.level else []
            module = '.'.join([*parents, *([node.module] if node.module else [])])
            yield from (f'{module}.{alias.name}' for alias in node.names)


@pytest.fixture(scope='module')
def imports(project_root):
    """(file, room, absolute name imported) of every import of the package."""
    root = project_root / 'mmseg_cct'
    found = []
    for path in sorted(root.rglob('*.py')):
        parts = path.relative_to(project_root).with_suffix('').parts
        names = imported_modules(path, list(parts[:-1]))
        found += [('/'.join(parts), parts[1], name) for name in names]
    return found


def test_every_room_is_in_the_plan(project_root):
    paths = (project_root / 'mmseg_cct').iterdir()
    found = {path.stem for path in paths if path.suffix == '.py' or any(path.glob('*.py'))}
    assert found == set(ROOMS)


def test_a_room_imports_only_what_the_plan_allows(imports):
    strays = []
    for file, room, name in imports:
        target, *inner = name.split('.')
        if target == 'mmseg_cct' and inner and inner[0] not in {room, *ROOMS[room]}:
            strays.append(f'{file} imports {name}')
    assert not strays


def test_the_plan_has_no_circle():
    known = set()
    for room, allowed in ROOMS.items():  # the table is in order: each after all that it may import
        assert allowed <= known, room
        known.add(room)


def test_no_modules_import_each_other(imports):
    modules = {file.replace('/', '.') for file, *_ in imports}
    edges = {module: set() for module in modules}
    for file, _, name in imports:
        edges[file.replace('/', '.')] |= {name, name.rpartition('.')[0]} & modules
    graphlib.TopologicalSorter(edges).prepare()


def test_tests_mirror_the_tree(project_root):
    """Each module has its tests in the file of its name in the mirrored room, and only there."""
    tests, package = project_root / 'tests', project_root / 'mmseg_cct'
    modules = {path.relative_to(package).with_suffix('') for path in package.rglob('*.py')}
    modules = {module.as_posix() for module in modules}
    modules = {module for module in modules if not module.endswith('/__init__')}
    found = {path.relative_to(tests).with_suffix('') for path in tests.rglob('test_*.py')}
    rooms = {
        file.as_posix() for file in found if file.parts[1:] and file.parts[0] not in OTHER_TESTS
    }
    assert TESTED_ELSEWHERE.keys() <= modules
    expected = {re.sub(r'[^/]+$', r'test_\g<0>', name) for name in modules - set(TESTED_ELSEWHERE)}
    assert rooms - OF_A_ROOM == {name for name in expected if '/' in name}
    assert expected | OF_A_ROOM <= {file.as_posix() for file in found}
