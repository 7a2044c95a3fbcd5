"""Train recurrent networks of one repeat, alone or in a distilled federation, to an `Outcome`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from brainfed.engines.curves import of_subjects
from brainfed.engines.distilling.clients import RecurrentClients, Teaching
from brainfed.engines.distilling.crops import IntArray
from brainfed.engines.distilling.network import FoldNetwork
from brainfed.engines.distilling.public_crossings import record_exchange
from brainfed.engines.distilling.recipe import SERVER, Workplace
from brainfed.engines.distilling.server import DistillingServer, logit_defence
from brainfed.engines.distilling.trainer import Trainer
from brainfed.federation.attacks.poisoning import Federation, attack_of
from brainfed.federation.distillation.objective import Objective
from brainfed.federation.ledger import Ledger
from brainfed.federation.loop import federate
from brainfed.federation.privacy.weight_noise import WeightNoise
from brainfed.federation.robustness_settings import RobustnessSettings
from brainfed.federation.sharing import Content, record_downloads, record_help
from brainfed.federation.strategies.alone import Alone
from brainfed.federation.strategies.strategy import Strategy
from brainfed.federation.wire import Attack, Wire
from brainfed.models.recurrent import Kind
from brainfed.runtime.errors import UserError
from brainfed.samples.inputs import Outcome
from brainfed.samples.public_series_inputs import PublicSeriesInputs
from brainfed.samples.training_folds import require_training_subjects

Declared = Mapping[str, tuple[str, ...]]
"""Tensors that may leave an institution, name -> axes."""
Groups = Sequence[Sequence[IntArray]]
"""(M)(F) positions of subjects."""


def train_alone(
    workplace: Workplace,
    names: Sequence[str],
    kinds: Sequence[Kind],
    members: Sequence[IntArray],
    trained: Groups,
    ledger: Ledger,
) -> Outcome:
    """Train networks that exchange nothing.

    The mean of the others' last networks scores the subjects of a trainer without training subjects in a fold.

    Args:
        workplace: of the repeat.
        names: (M,) of the trainers.
        kinds: (M,) of their networks.
        members: (M,) positions of the subjects that each trainer scores.
        trained: (M)(F) positions of the subjects that each trains on.
        ledger: takes the networks that score subjects of others.
    """
    trainers = [
        workplace.trainer(name, place, kind, own)
        for place, (name, kind, own) in enumerate(zip(names, kinds, trained, strict=True))
    ]
    _require_training(workplace, trainers)
    clients = _clients(workplace, trainers, members, None)
    _federate(workplace, clients, Alone(clients.institutions), members, ledger, None)
    scores = of_subjects(
        workplace.inputs, members, clients.curves.probabilities, workplace.inputs.tested, range(workplace.inputs.folds)
    )
    _score_unseen(workplace, clients, members, scores)
    _record_help(clients, members, ledger)
    networks = [trainer.network for trainer in trainers]
    return _outcome(workplace, clients, scores, networks, _member_scores(workplace, networks, members), ledger)


def train_distilled(
    workplace: Workplace,
    kinds: Sequence[Kind],
    kind: Kind,
    epochs: int,
    alpha: float,
    objective: Callable[[int], Objective],
    declared: Declared,
    robustness: RobustnessSettings,
) -> Outcome:
    """Train institutions and the server in turn (GAHFL Algorithm 1); the global model scores all tested subjects.

    Args:
        workplace: of the repeat; its inputs have a public set.
        kinds: (M,) of the institutions' networks.
        kind: of the global network.
        epochs: global epochs a round.
        alpha: weight of the global model in the local loss (eq. 3).
        objective: number of public samples -> the server's loss.
        declared: tensors that may leave an institution.
        robustness: the attack on the logits that reach the server, and its defence.
    """
    inputs = workplace.inputs
    assert isinstance(inputs, PublicSeriesInputs)
    places, folds = range(len(inputs.institutions)), range(inputs.folds)
    members = [inputs.members(place) for place in places]
    private = [[inputs.private_training(fold, place) for fold in folds] for place in places]
    trainers = [
        workplace.trainer(name, place, kinds[place], private[place]) for place, name in enumerate(inputs.institutions)
    ]
    shown = [inputs.public_training(fold) for fold in folds]
    head = workplace.trainer("the server", SERVER, kind, shown)
    _require_training(workplace, trainers)
    _require_training(workplace, [head], "public ")
    server = DistillingServer(
        tuple(places), head, workplace.recipe.rounds, epochs, objective(head.pool.size), logit_defence(robustness)
    )
    clients = _clients(workplace, trainers, members, Teaching(head.pool, workplace.network(kind), alpha))
    ledger = Ledger(declared, {"public-samples": head.pool.counts[0], **workplace.axes})
    trains = {place for place, trainer in enumerate(trainers) if trainer.pool.counts[0]}
    record_exchange(inputs, workplace.usable(shown[0]), trains, ledger)
    attacked = Federation(len(places), tuple(folds), inputs.streams, {}, head.pool.counts)
    _federate(workplace, clients, server, members, ledger, attack_of(robustness, attacked))
    scores = of_subjects(inputs, members, clients.curves.probabilities, inputs.tested, folds)
    absent = {place: len(own) for place, own in enumerate(members) if place not in trains}
    record_downloads(ledger, absent, content_of(head.network))
    networks = [head.network] * len(members)
    outcome = _outcome(workplace, clients, scores, networks, _member_scores(workplace, networks, members), ledger)
    return replace(outcome, taught=server.taught)


def _require_training(workplace: Workplace, trainers: Sequence[Trainer], what: str = "") -> None:
    """Refuse a fold in which nobody trains.

    Raises:
        UserError: there are no training subjects, or all of their scans are short and dropped.
    """
    for fold in range(workplace.inputs.folds):
        require_training_subjects(workplace.inputs, fold)
        if not any(trainer.pool.counts[fold] for trainer in trainers):
            raise UserError(
                f"Fold {fold}: expected {what}training scans of {workplace.recipe.length} time points or more, found "
                "none; set `short: wrap`, or a smaller `length`."
            )


def _clients(
    workplace: Workplace, trainers: Sequence[Trainer], members: Sequence[IntArray], teaching: Teaching | None
) -> RecurrentClients:
    places = [workplace.places(own) for own in members]
    tested = [workplace.pool([own[found] for found in each]) for own, each in zip(members, places, strict=True)]
    curves, epochs = workplace.curves(members), workplace.recipe.epochs
    return RecurrentClients(trainers, workplace.crops, tested, epochs, curves, places, teaching)


def _federate(
    workplace: Workplace,
    clients: RecurrentClients,
    server: Strategy,
    members: Sequence[IntArray],
    ledger: Ledger,
    attack: Attack | None,
) -> None:
    inputs, run = workplace.inputs, workplace.run
    sizes = {place: len(own) for place, own in enumerate(members)}
    noise = WeightNoise(0.0, inputs.streams, tuple(range(inputs.folds)))
    federate(
        clients,
        server,
        Wire(ledger, sizes, noise, attack=attack),
        workplace.recipe.rounds,
        run.checkpoint,
        run.progress,
    )


def _score_unseen(
    workplace: Workplace, clients: RecurrentClients, members: Sequence[IntArray], scores: NDArray[np.float64]
) -> None:
    trained = clients.samples.numpy() > 0
    for place, fold in np.argwhere(~trained).tolist():
        own = members[place][workplace.inputs.tested(fold)[members[place]]]
        if not len(own):
            continue
        pool = workplace.pool([own] * workplace.inputs.folds)
        others = np.flatnonzero(trained[:, fold]).tolist()
        scores[:, fold, own] = np.nan
        scores[-1, fold, own] = np.mean(
            [clients.trainers[each].network.probabilities(workplace.crops, pool)[fold] for each in others], axis=0
        )


def _record_help(clients: RecurrentClients, members: Sequence[IntArray], ledger: Ledger) -> None:
    """Record the networks that score institutions without training subjects, in the first fold."""
    trained = clients.samples[:, 0].tolist()
    sizes = {place: len(own) for place, own in enumerate(members)}
    helped = {place: size for place, size in sizes.items() if not trained[place]}
    for place, size in sizes.items():
        if trained[place]:
            record_help(ledger, {place: size}, helped, content_of(clients.trainers[place].network))


def content_of(network: FoldNetwork) -> Content:
    """Tensors of the network of one fold, for the ledger."""
    return {
        network.wire(name): (tuple(each.shape[1:]), each.element_size()) for name, each in network.parameters.items()
    }


def _member_scores(
    workplace: Workplace, networks: Sequence[FoldNetwork], members: Sequence[IntArray]
) -> NDArray[np.float64]:
    """(F, n, C) scores of the training subjects of each fold by the last network of their trainer."""
    inputs = workplace.inputs
    found = np.full((inputs.folds, len(inputs.subjects), inputs.classes), np.nan)
    for network, own in zip(networks, members, strict=True):
        trained = [own[inputs.training(fold)[own]] for fold in range(inputs.folds)]
        probabilities = network.probabilities(workplace.crops, workplace.pool(trained))
        for fold, each in enumerate(trained):
            found[fold, each] = probabilities[fold, : len(each)]
    return found


def _outcome(
    workplace: Workplace,
    clients: RecurrentClients,
    scores: NDArray[np.float64],
    networks: Sequence[FoldNetwork],
    member_scores: NDArray[np.float64] | None,
    ledger: Ledger,
) -> Outcome:
    recipe, institutions = workplace.recipe, len(workplace.inputs.institutions)
    # Those of the largest kind.
    parameters = max(sum(each[0].numel() for each in network.parameters.values()) for network in networks)
    counts = {"parameters": parameters, "rounds": recipe.rounds, "local_epochs": recipe.epochs}
    return Outcome(
        scores[-1],
        "probability",
        scores,
        np.repeat(clients.curves.losses, institutions // len(clients.trainers), axis=1),
        counts | workplace.counts,
        ledger.rows(),
        member_scores=member_scores,
    )
