"""The torch side of LocalMLP: FedMLP's network without an exchange."""

from brainfed.engines.stacked.training import train_stacked
from brainfed.methods.mlp.localmlp import METHOD, LocalMLPSettings
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import MethodInputs, Outcome


def train(inputs: MethodInputs, settings: LocalMLPSettings, run: Run) -> Outcome:
    """Train LocalMLP in every institution alone on one repeat."""
    return train_stacked(
        inputs,
        settings.schedule(),
        run,
        hidden=settings.hidden,
        graph=False,
        standardise=settings.standardise == "institution",
        shared_tensors=METHOD.shared_tensors,
        precision=settings.precision,
        dropout=settings.dropout,
        topology="local",
    )
