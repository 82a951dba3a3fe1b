"""Hooks, metrics, optimizer wrappers, checkpoints and schedules of a training."""

from . import hooks, metrics, optimizers

__all__ = ['hooks', 'metrics', 'optimizers']
