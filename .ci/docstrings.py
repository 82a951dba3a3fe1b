"""Runs pydoclint; a section of what is raised asks for no section of the arguments."""

from pydoclint.main import main
from pydoclint.utils.doc import Doc

_ASK = [
    'attrs',
    'params',
    'returns',
    'many_returns',
    'yields',
    'many_yields',
    'examples',
    'deprecation',
]
Doc.isShortDocstring = property(lambda doc: not any(getattr(doc.parsed, part) for part in _ASK))
main()
