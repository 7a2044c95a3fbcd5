"""The torch side of CentralMLP: FedMLP's network without an exchange."""

from brainfed.methods.centralmlp import METHOD, CentralMLPSettings
from brainfed.runtime.run import Run
from brainfed.training.inputs import MethodInputs, Outcome
from brainfed.training.stacked import train_stacked


def train(inputs: MethodInputs, settings: CentralMLPSettings, run: Run) -> Outcome:
    """Train CentralMLP on everybody's data on one repeat."""
    return train_stacked(
        inputs,
        settings.schedule(),
        run,
        hidden=settings.hidden,
        graph=False,
        standardise=settings.standardise == "institution",
        crosses=METHOD.crosses,
        precision=settings.precision,
        dropout=settings.dropout,
        exchange=False,
        pooled=True,
    )
