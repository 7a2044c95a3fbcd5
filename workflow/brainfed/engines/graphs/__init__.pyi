from ._training import GraphCohort, GraphClients, GraphTraining

__all__ = ["GraphCohort", "GraphClients", "GraphTraining"]
