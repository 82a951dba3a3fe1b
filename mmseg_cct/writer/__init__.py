"""Writes settings: for a folder of images, and on a config of MMSegmentation."""
