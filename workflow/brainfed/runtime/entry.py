"""Entry points by name: rules name them as strings, so that no edit of one reruns the jobs of another."""

from importlib import import_module
from typing import Any


def resolve(path: str) -> Any:
    """`module:name` -> the object."""
    module, name = path.split(":")
    return getattr(import_module(module), name)
