"""The scores that every method must beat: the majority class, phenotypes without scans, motion alone."""
