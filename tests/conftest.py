"""Settings of the whole test suite."""

import os

from hypothesis import settings

# No test asserts a wall-clock time, so neither may hypothesis.
settings.register_profile("brainfed", deadline=None)
settings.load_profile("brainfed")

# The jobs of all runs of a worker are forked from one process, which ends with it.
os.environ.setdefault("BRAINFED_FORKS", f"{os.getpid()}-tests")

# Workers side by side have a core each; libraries read this when they are first imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
