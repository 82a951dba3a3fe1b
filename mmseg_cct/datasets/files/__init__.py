"""Files of images and masks: found, read, checked and written; their classes and colours."""
