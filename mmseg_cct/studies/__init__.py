"""Studies: methods compared over numbers of labels and seeds."""
