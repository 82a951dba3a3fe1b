"""The order of the rooms inside `mmseg_cct.models`: a room imports from those before it alone."""

import ast
from pathlib import Path

import pytest

import mmseg_cct.models

ROOT = Path(mmseg_cct.models.__file__).parent
# rooms of one tier do not know each other
TIERS = [
    {'backbones', 'layers', 'necks'},
    {'losses', 'perturbations', 'data_preprocessors'},
    {'heads'},
    {'segmentors'},
]


def imported_modules(path):
    """Absolute names of what a file imports from this package."""
    package = ['mmseg_cct', 'models', *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            yield '.'.join([*above, *([node.module] if node.module else [])])
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def arrows():
    for path in sorted(ROOT.glob('*/**/*.py')):
        room = path.relative_to(ROOT).parts[0]
        for name in imported_modules(path):
            parts = name.split('.')
            if parts[:2] == ['mmseg_cct', 'models'] and parts[2:3] != [room]:
                yield path, room, parts[1:]


def tier(room):
    return next(i for i, rooms in enumerate(TIERS) if room in rooms)


def test_every_room_has_its_tier():
    rooms = {path.name for path in ROOT.iterdir() if (path / '__init__.py').exists()}
    assert rooms == set().union(*TIERS)


def test_there_are_arrows_to_look_at():
    targets = {(room, target[1]) for _, room, target in arrows()}
    assert {('losses', 'layers'), ('heads', 'perturbations')} <= targets


@pytest.mark.parametrize('room', sorted(set().union(*TIERS)))
def test_a_room_imports_only_from_the_rooms_before_it(room):
    for path, source, target in arrows():
        if source != room:
            continue
        assert len(target) > 1 and tier(target[1]) < tier(room), (path, target)


def test_files_of_a_room_form_no_circle():
    edges = {}
    for path in ROOT.glob('*/*.py'):
        name = f'mmseg_cct.models.{path.parent.name}.{path.stem}'
        edges[name] = set(imported_modules(path))
    done = set()

    def visit(name, above):
        assert name not in above, (*above, name)
        if name in edges and name not in done:
            for target in edges[name]:
                visit(target, (*above, name))
            done.add(name)

    for name in edges:
        visit(name, ())
