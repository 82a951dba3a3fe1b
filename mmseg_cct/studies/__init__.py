"""Trainings of many models: ablations and learning curves."""
