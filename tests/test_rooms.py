"""The floor plan: which package may import which."""

import ast
import graphlib

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
    'writer': {*('errors', 'utils', 'annotations', 'config', 'datasets', 'engine', 'preflight')},
    'apis': {
        *('errors', 'version', 'utils', 'annotations', 'config', 'datasets', 'engine', 'preflight')
    },
    'pseudo_labels': {'errors', 'utils', 'datasets', 'engine', 'preflight'},
    'labelling': {*('errors', 'utils', 'annotations', 'config', 'datasets', 'engine', 'apis')},
    'studies': {*('errors', 'utils', 'config', 'datasets', 'engine', 'preflight')},
    # The command line runs the tools as scripts.
    '__main__': {'errors', 'version', 'utils', 'config', 'cli'},
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
