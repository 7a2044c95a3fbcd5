"""The torch side that the families of FedNI's Table V share, labels of poisoned institutions included."""

from dataclasses import replace
from typing import TypeVar

from brainfed.engines import train_networks
from brainfed.engines.stacked import Propagate, StackedTraining, train_chosen
from brainfed.federation import RobustnessSettings, attacked_institutions, flipped_labels
from brainfed.methods._classifier_settings import FederatedClassifierSettings, SoloSettings
from brainfed.methods._method import Method
from brainfed.models import Classifier
from brainfed.runtime import UserError
from brainfed.runtime.jobs import Run
from brainfed.samples import LabelledSubjects, MethodInputs, Outcome, centred_subjects

Inputs = TypeVar("Inputs", bound=LabelledSubjects)


def poisoned_inputs(inputs: Inputs, settings: RobustnessSettings) -> Inputs:
    """The inputs that the institutions train on: under `label_flip` with turned labels in the attacked ones.

    Scores stay those of true labels, which no method has.
    """
    if settings.attack != "label_flip" or not settings.poisons:
        return inputs
    attacked = attacked_institutions(settings.attacked, len(inputs.institutions), inputs.streams)
    return replace(inputs, labels=flipped_labels(inputs.labels, inputs.institution, attacked, inputs.classes))


def train_classifier(
    method: Method,
    module: Classifier,
    inputs: MethodInputs,
    settings: FederatedClassifierSettings | SoloSettings,
    run: Run,
    propagate: Propagate | None = None,
) -> Outcome:
    """Train `module` with the topology and the shared tensors of `method`; all else as its settings say.

    Raises:
        UserError: `choose: inner` and fewer than three sites are left out; the config refuses fewer folds, and
            `validation: holdout`.
    """
    assert method.topology != "setting"
    if inputs.folds < settings.least_folds:
        raise UserError(
            f"choose: inner needs at least {settings.least_folds} sites to leave out, found {inputs.folds}; set "
            "`choose: none`."
        )
    if settings.centre == "subject":
        centred = {id(features): centred_subjects(features) for features in inputs.features}
        inputs = replace(inputs, features=tuple(centred[id(features)] for features in inputs.features))
    robustness = settings if isinstance(settings, FederatedClassifierSettings) else RobustnessSettings()
    training = StackedTraining(
        poisoned_inputs(inputs, robustness),
        settings.schedule(),
        run,
        method.topology,
        method.crossing.tensors,
        module=module,
        propagate=propagate,
        standardise=settings.standardise == "institution",
        precision=settings.precision,
        dropout=settings.dropout,
        robustness=robustness,
    )
    return train_networks(training) if settings.choose == "none" else train_chosen(training, settings.weight_decays)
