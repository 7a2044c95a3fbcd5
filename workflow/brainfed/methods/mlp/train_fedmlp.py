"""The torch side of FedMLP (FedNI Sec. 7 and 9)."""

from brainfed.engines.stacked.training import train_stacked
from brainfed.methods.mlp.fedmlp import METHOD, FedMLPSettings
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import MethodInputs, Outcome


def train(inputs: MethodInputs, settings: FedMLPSettings, run: Run) -> Outcome:
    """Train FedMLP on one repeat."""
    return train_stacked(
        inputs,
        settings,
        run,
        hidden=settings.hidden,
        graph=False,
        standardise=settings.standardise == "institution",
        shared_tensors=METHOD.shared_tensors,
        precision=settings.precision,
        dropout=settings.dropout,
    )
