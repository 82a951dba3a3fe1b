"""Hooks, metrics, optimizer wrappers, checkpoints, schedules and pictures of a training."""

from . import hooks, metrics, optimizers, visualization
