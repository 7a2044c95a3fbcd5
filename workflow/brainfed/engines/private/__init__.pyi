from ._cohort import Moment, Poisson, PrivateCohort, SeriesWindows, mean_adjacencies, subject_gradients, clip_factors
from ._training import PrivateClients, PrivateTraining

__all__ = [
    "Moment", "Poisson", "PrivateCohort", "SeriesWindows", "mean_adjacencies", "subject_gradients", "clip_factors",
    "PrivateClients", "PrivateTraining",
]
