"""The torch side of LocalMLP: FedMLP's network without an exchange."""

from brainfed.methods.localmlp import METHOD, LocalMLPSettings
from brainfed.runtime.run import Run
from brainfed.training.inputs import MethodInputs, Outcome
from brainfed.training.stacked import train_stacked


def train(inputs: MethodInputs, settings: LocalMLPSettings, run: Run) -> Outcome:
    """Train LocalMLP in every institution alone on one repeat."""
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
        pooled=False,
    )
