"""Writes configs: for a folder of images, and on top of a config of MMSegmentation."""
