"""The version of this package; setup.py reads it without importing the package."""

__version__ = '0.1.0'
