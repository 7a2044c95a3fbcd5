"""Cost as subjects, institutions, regions or rounds grow, one file a part of the measurement; `scale.py` runs it."""
