"""The shipped settings of a method, which distinguish ablations and a paper's numbers from changed settings."""

from dataclasses import asdict
from typing import Any

from brainfed.graphs.settings import GraphSettings
from brainfed.imaging.settings import FeatureSettings
from brainfed.inpainting.settings import FusingSettings
from brainfed.methods.method import Method
from brainfed.runtime.settings import flat_settings


def shipped_settings(method: Method) -> dict[str, Any]:
    """Every default of a method, its own (`rounds`) and its stages' (`graph.k`)."""
    stages: dict[str, dict[str, Any]] = {}
    if method.features:
        stages["features"] = asdict(FeatureSettings())
    if method.graph != "none":
        stages["graph"] = asdict(GraphSettings(scope="global") if method.graph == "global" else GraphSettings())
    if method.inpainter is not None:
        stages["inpainting"] = asdict(method.inpainter.settings())
        stages["fusing"] = asdict(FusingSettings(**method.fusing))
    return flat_settings(asdict(method.settings()), stages)
