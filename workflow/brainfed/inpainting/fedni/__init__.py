"""FedNI's generator: hidden leaves, losses, adversarial steps and federated training (FedNI Sec. III-B and III-C).

Its networks are in `models`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
