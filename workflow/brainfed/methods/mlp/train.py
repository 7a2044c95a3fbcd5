"""The torch side of FedMLP, LocalMLP and CentralMLP: one network, trained with others, alone or on pooled data."""

from functools import partial

from brainfed.methods import FederatedClassifierSettings, Method, SoloSettings, train_classifier
from brainfed.methods.mlp.declaration import CENTRALMLP, FEDMLP, LOCALMLP
from brainfed.models import MLP
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome


def train(
    method: Method, inputs: MethodInputs, settings: FederatedClassifierSettings | SoloSettings, run: Run
) -> Outcome:
    """Train the classifier without a graph on one repeat (FedNI Sec. 7 and 9)."""
    module = MLP(inputs.features[0].shape[1], settings.hidden, inputs.classes)
    return train_classifier(method, module, inputs, settings, run)


train_fedmlp = partial(train, FEDMLP)
train_localmlp = partial(train, LOCALMLP)
train_centralmlp = partial(train, CENTRALMLP)
