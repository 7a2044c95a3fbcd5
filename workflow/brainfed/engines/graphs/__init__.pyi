from ._clients import GraphCohort, GraphClients
from ._training import GraphTraining

__all__ = ["GraphCohort", "GraphClients", "GraphTraining"]
