from ._objective import PublicBatch, local_loss, Objective
from ._fedgems import FedGEMSObjective, FedETObjective
from ._gahfl import initial_weights, GAHFLObjective

__all__ = [
    "PublicBatch", "local_loss", "Objective",
    "FedGEMSObjective", "FedETObjective",
    "initial_weights", "GAHFLObjective",
]
