"""Names and axes on the wire in federated inpainting, in its four ways (FedNI Fig. 3)."""

from brainfed.inpainting.fedni.crossings import DISCRIMINATOR_TENSORS, GENERATOR_TENSORS
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.models.discriminator import WIDTHS
from brainfed.models.generator import ENCODER, FEATURE, NOISE, PHENOTYPE, Generator


def crossings_by(settings: InpaintingSettings) -> dict[str, tuple[str, ...]]:
    """What may cross under these settings: name -> axes."""
    shared_tensors: dict[str, tuple[str, ...]] = {}
    if settings.federated in ("generator", "both"):
        shared_tensors |= GENERATOR_TENSORS
    if settings.federated in ("discriminator", "both"):
        shared_tensors |= DISCRIMINATOR_TENSORS
    return shared_tensors


def axes_of(features: int, generator: Generator) -> dict[str, int]:
    """Sizes of the axes on the wire."""
    outputs = {"phenotypes": generator.phenotype_1.out_features} if generator.predicts_phenotypes else {}
    return {
        "features": features,
        "encoder-0": ENCODER[0],
        "encoder-1": ENCODER[1],
        "embedding-and-degree": ENCODER[1] + generator.sees_degree,
        "embedding-and-noise": ENCODER[1] + NOISE,
        "feature-0": FEATURE[0],
        "feature-1": FEATURE[1],
        "phenotype-0": PHENOTYPE,
        "judge-0": WIDTHS[0],
        "judge-1": WIDTHS[1],
        "one": 1,
        **outputs,
    }


def wire_name(name: str) -> str:
    """What a module's tensor is called on the wire: spectral normalisation's original is the weight."""
    return name.replace("parametrizations.weight.original", "weight")
