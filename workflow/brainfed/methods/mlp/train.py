"""The torch side of FedMLP, LocalMLP and CentralMLP: one network, trained with others, alone or on pooled data."""

from functools import partial

from brainfed.methods.classifier_settings import FederatedClassifierSettings, SoloSettings
from brainfed.methods.method import Method
from brainfed.methods.mlp.declaration import CENTRALMLP, FEDMLP, LOCALMLP
from brainfed.methods.train_classifier import train_classifier
from brainfed.models.fedni import MLP
from brainfed.runtime.jobs.checkpoints import Run
from brainfed.samples.inputs import MethodInputs, Outcome


def train(
    method: Method, inputs: MethodInputs, settings: FederatedClassifierSettings | SoloSettings, run: Run
) -> Outcome:
    """Train the classifier without a graph on one repeat (FedNI Sec. 7 and 9)."""
    module = MLP(inputs.features[0].shape[1], settings.hidden, inputs.classes)
    return train_classifier(method, module, inputs, settings, run)


train_fedmlp = partial(train, FEDMLP)
train_localmlp = partial(train, LOCALMLP)
train_centralmlp = partial(train, CENTRALMLP)
