"""Entry points: training, testing, prediction, conversion, publication and export."""
