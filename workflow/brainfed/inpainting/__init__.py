"""Generate the neighbours that a subject lacks because they are patients of other institutions, and join them to the
graph.

The sub-packages are FedNI and FedSage+; this door has what every inpainter shares, and the fidelity of what is
generated. No diagnosis is read.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
