"""What may leave an institution in federated inpainting: name -> axes. Light: the methods declare it."""

from collections.abc import Mapping


def _layer(name: str, read: str, made: str) -> dict[str, tuple[str, ...]]:
    """A linear layer's weight and bias."""
    return {f"{name}.weight": (made, read), f"{name}.bias": (made,)}


def _normal(name: str, axis: str) -> dict[str, tuple[str, ...]]:
    """Batch normalisation's weights and running moments."""
    return {f"{name}.{part}": (axis,) for part in ("weight", "bias", "running_mean", "running_var")}


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
