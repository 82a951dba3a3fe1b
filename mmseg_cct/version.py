"""The version of this package; setup.py reads it without importing the package."""

__version__ = '1.0.0'
