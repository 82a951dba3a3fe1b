"""Looking at finished trainings."""
