"""Studies of trained networks: ablations, the next images to label, the cluster assumption."""
