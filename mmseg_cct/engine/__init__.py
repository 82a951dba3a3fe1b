"""Hooks, optimizer wrappers, checkpoints and schedules of a training."""

from . import hooks, optimizers

__all__ = ['hooks', 'optimizers']
