"""From image-level labels to pseudo labels: class activation maps, thresholds, dense CRF."""
