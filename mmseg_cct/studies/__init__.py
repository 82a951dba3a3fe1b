"""Ablations and learning curves over many trainings."""
