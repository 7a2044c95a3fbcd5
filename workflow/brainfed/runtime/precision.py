"""Number formats of large matrix products: a setting of a method, because it changes the method's numbers."""

from typing import Literal

Precision = Literal["float32", "tf32", "bfloat16"]

PRECISION_DESCRIPTION = (
    "Number format of the large matrix products; weights and sums stay float32. tf32 (factors rounded to 10 bits of "
    "mantissa) exists on a GPU alone and is float32 elsewhere."
)
