"""The torch side of CentralGCN (FedNI Sec. 9)."""

from brainfed.federation.schedule import FederationSettings
from brainfed.methods.centralgcn import METHOD, CentralGCNSettings
from brainfed.training.inputs import MethodInputs, Outcome
from brainfed.training.run import Run
from brainfed.training.stacked import train_stacked


def train(inputs: MethodInputs, settings: CentralGCNSettings, run: Run) -> Outcome:
    """Train CentralGCN on everybody's data on one repeat."""
    schedule = FederationSettings(
        rounds=settings.epochs // settings.curve_every,
        local_epochs=settings.curve_every,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        noise=0.0,
    )
    return train_stacked(
        inputs,
        schedule,
        run,
        hidden=settings.hidden,
        graph=True,
        standardise=settings.standardise == "institution",
        crosses=METHOD.crosses,
        exchange=False,
        pooled=True,
    )
