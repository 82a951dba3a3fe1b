"""Entry points: training, testing and prediction."""
