"""Ablations, learning curves and self-training over many trainings."""
