"""FedSage+'s generators: each is trained at home, then at all other owners (Zhang et al. 2021, Sec. 4).

Its networks are in `models`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
