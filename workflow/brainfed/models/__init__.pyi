from ._classifier import Read, Products, derivative_of, Classifier, class_probabilities, LogisticRegression
from ._fedni import (
    GCN, MLP, ENCODER, NOISE, FEATURE, PHENOTYPE, SEXES, WIDE, Generator, WIDTHS, FIRST_WEIGHT, EPSILON, FirstWeight,
    Discriminator,
)
from ._fedsage import (
    GraphSAGE, ENCODER_WIDTH, LATENT, FGEN_WIDTH, GeneratorShape, FeatureGenerator, MissingNeighbourGenerator,
)
from ._fglbc import RegionGNN, STGCN
from ._gahfl import Kind, KINDS, RecurrentClassifier, Workspace, fold_logits
from ._gcfl import SHARED, GIN

__all__ = [
    "Read", "Products", "derivative_of", "Classifier", "class_probabilities", "LogisticRegression",
    "GCN", "MLP", "ENCODER", "NOISE", "FEATURE", "PHENOTYPE", "SEXES", "WIDE", "Generator", "WIDTHS", "FIRST_WEIGHT",
    "EPSILON", "FirstWeight", "Discriminator",
    "GraphSAGE", "ENCODER_WIDTH", "LATENT", "FGEN_WIDTH", "GeneratorShape", "FeatureGenerator",
    "MissingNeighbourGenerator",
    "RegionGNN", "STGCN",
    "Kind", "KINDS", "RecurrentClassifier", "Workspace", "fold_logits",
    "SHARED", "GIN",
]
