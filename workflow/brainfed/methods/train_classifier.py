"""The torch side that the families of FedNI's Table V share."""

from brainfed.engines.stacked.choosing import train_chosen
from brainfed.engines.stacked.propagation import Propagate
from brainfed.engines.stacked.training import Server, Training, train_stacked
from brainfed.federation.strategies.fedavg import FedAvg
from brainfed.methods.classifier_settings import FederatedClassifierSettings, SoloSettings
from brainfed.methods.method import Method
from brainfed.models.classifier import Classifier
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import MethodInputs, Outcome


def train_classifier(
    method: Method,
    module: Classifier,
    inputs: MethodInputs,
    settings: FederatedClassifierSettings | SoloSettings,
    run: Run,
    propagate: Propagate | None = None,
    server: Server = FedAvg,
) -> Outcome:
    """Train `module` with the topology and the shared tensors of `method`, and choose as its settings say."""
    assert method.topology != "setting"
    training = Training(
        module,
        inputs,
        settings.schedule(),
        run,
        method.topology,
        method.shared_tensors,
        propagate,
        standardise=settings.standardise == "institution",
        precision=settings.precision,
        dropout=settings.dropout,
        server=server,
    )
    return train_stacked(training) if settings.choose == "none" else train_chosen(training, settings.weight_decays)
