"""Short names of array types for signatures."""

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
FloatArray = Float32 | Float64
"""Of either precision."""
