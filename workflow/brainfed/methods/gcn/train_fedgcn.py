"""The torch side of FedGCN (FedNI Sec. 7 and 9)."""

from brainfed.engines.stacked.training import train_stacked
from brainfed.methods.gcn.fedgcn import METHOD, FedGCNSettings
from brainfed.methods.gcn.sampled import train_sampled
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import MethodInputs, Outcome


def train(inputs: MethodInputs, settings: FedGCNSettings, run: Run) -> Outcome:
    """Train FedGCN on one repeat."""
    if settings.neighbours:
        return train_sampled(inputs, settings, run, METHOD.shared_tensors)
    return train_stacked(
        inputs,
        settings,
        run,
        hidden=settings.hidden,
        graph=True,
        standardise=settings.standardise == "institution",
        shared_tensors=METHOD.shared_tensors,
        precision=settings.precision,
        dropout=settings.dropout,
        skip=settings.skip == "linear",
    )
