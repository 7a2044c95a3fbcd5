from ._training import Recipe, SoloTraining, DistilledTraining

__all__ = ["Recipe", "SoloTraining", "DistilledTraining"]
