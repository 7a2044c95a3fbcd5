"""Methods that stand beside others wherever both were run, as the papers of their families compare them."""

from collections.abc import Mapping

from brainfed.methods.fedni.paper.compared import COMPARED as FEDNI

BESIDE: Mapping[str, tuple[str, ...]] = {**FEDNI}
"""Variant -> variants that it is compared with on the first screen and in a sentence of its own.

The tests of these and of the method's own variants are one family of comparisons.
"""
