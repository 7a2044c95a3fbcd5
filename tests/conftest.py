"""Settings of the whole test suite."""

from hypothesis import settings

# No test asserts a wall-clock time, so neither may hypothesis.
settings.register_profile("brainfed", deadline=None)
settings.load_profile("brainfed")
