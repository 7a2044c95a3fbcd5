from ._fedavg import average, choose, Selection, Strategy, EndingStrategy, Alone, FedAvg
from ._gcfl import Similarity, UpdateCosine, GradientNorms, GCFL
from ._krylov import Krylov, strongest_of_the_best
from ._quasi_newton import GradientDescent, Objective, QuasiNewton, PenaltyPath
from ._similarity_weighted import SimilarityWeighted

__all__ = [
    "average", "choose", "Selection", "Strategy", "EndingStrategy", "Alone", "FedAvg",
    "Similarity", "UpdateCosine", "GradientNorms", "GCFL",
    "Krylov", "strongest_of_the_best",
    "GradientDescent", "Objective", "QuasiNewton", "PenaltyPath",
    "SimilarityWeighted",
]
