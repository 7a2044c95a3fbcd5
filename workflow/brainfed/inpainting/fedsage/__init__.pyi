from ._local import Draws, Owner, owners_of

__all__ = ["Draws", "Owner", "owners_of"]
