"""Tensors that institutions share in federated inpainting: name -> axes. Light: the methods declare them."""

from collections.abc import Mapping

from brainfed.inpainting.settings import InpaintingSettings


def _layer(name: str, read: str, made: str) -> dict[str, tuple[str, ...]]:
    """Weight and bias of a linear layer from the axis `read` to the axis `made`."""
    return {f"{name}.weight": (made, read), f"{name}.bias": (made,)}


def _normal(name: str, axis: str) -> dict[str, tuple[str, ...]]:
    """Weights and running moments of batch normalisation."""
    return {f"{name}.{part}": (axis,) for part in ("weight", "bias", "running_mean", "running_var")}


SIZE_TENSORS: Mapping[str, tuple[str, ...]] = {"training-subjects": ()}
"""Sizes of institutions: no subject has more missing neighbours than there are foreign subjects."""
GENERATOR_TENSORS: Mapping[str, tuple[str, ...]] = {
    **_layer("encoder_0", "features", "encoder-0"),
    **_layer("encoder_1", "encoder-0", "encoder-1"),
    **_layer("count", "embedding-and-degree", "one"),
    **_layer("feature_0", "embedding-and-noise", "feature-0"),
    **_normal("normal_0", "feature-0"),
    **_layer("feature_1", "feature-0", "feature-1"),
    **_normal("normal_1", "feature-1"),
    **_layer("feature_2", "feature-1", "features"),
    **_layer("phenotype_0", "features", "phenotype-0"),
    **_layer("phenotype_1", "phenotype-0", "phenotypes"),
}

DISCRIMINATOR_TENSORS: Mapping[str, tuple[str, ...]] = {
    **_layer("judge_0", "features", "judge-0"),
    **_layer("judge_1", "judge-0", "judge-1"),
    **_layer("judge_2", "judge-1", "one"),
}
"""Only under `federated: both` and `federated: discriminator`."""


def shared_tensors(settings: InpaintingSettings) -> dict[str, tuple[str, ...]]:
    """Tensors that may cross under these settings (FedNI Fig. 3): name -> axes."""
    generator = GENERATOR_TENSORS if settings.federated in ("generator", "both") else {}
    discriminator = DISCRIMINATOR_TENSORS if settings.federated in ("discriminator", "both") else {}
    return {**SIZE_TENSORS, **generator, **discriminator}


def wire_name(name: str) -> str:
    """Name on the wire of a module's tensor: spectral normalisation's original is the weight."""
    return name.replace("parametrizations.weight.original", "weight")
