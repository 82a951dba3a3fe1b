"""Which images to label next, and the pages that people see when they do."""
