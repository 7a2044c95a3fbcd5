"""The torch side of FedNI's second phase (FedNI Sec. III-C.2, 7 and 9)."""

from brainfed.engines.stacked.training import train_stacked
from brainfed.methods.fedni.fedni import METHOD, FedNISettings
from brainfed.methods.gcn.sampled import train_sampled
from brainfed.runtime.jobs.run import Run
from brainfed.samples.fused import with_generated, without_generated
from brainfed.samples.inputs import MethodInputs, Outcome


def train(inputs: MethodInputs, settings: FedNISettings, run: Run) -> Outcome:
    """Train FedNI's classifier on one repeat's fused graphs; without generated nodes it is FedGCN to the bit."""
    fused = with_generated(inputs)
    if settings.neighbours:
        return without_generated(train_sampled(fused, settings, run, METHOD.shared_tensors), len(inputs.subjects))
    outcome = train_stacked(
        fused,
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
    return without_generated(outcome, len(inputs.subjects))
