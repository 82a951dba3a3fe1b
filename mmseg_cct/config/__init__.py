"""What a run is read, composed and written from: texts, settings, methods, domains."""
