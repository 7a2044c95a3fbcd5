from ._card import card

__all__ = ["card"]
