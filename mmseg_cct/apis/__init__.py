"""What the tools call: training, testing, inference."""
