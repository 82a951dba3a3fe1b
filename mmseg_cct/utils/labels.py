"""Labels of masks."""

# Ignored pixels, in every mask and at every step after the masks are loaded.
IGNORE_INDEX = 255
