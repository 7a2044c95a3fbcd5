"""FedSage+'s generators of missing neighbours: trained, and what they draw."""

import copy
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brainfed.federation import Clients, DrawnAhead, Ledger, Pace, WeightNoise, Wire, federate, normal
from brainfed.federation.strategies import Alone, Strategy
from brainfed.inpainting import (
    RAW_TENSORS,
    SUMMED_TENSORS,
    FedSageSettings,
    Generated,
    InpaintingInputs,
    TrainedGenerator,
    rank_among_equals,
    scaling_of,
)
from brainfed.inpainting.fedni.drawing import foreign_subjects, hidden_and_visible, odds_ratio
from brainfed.inpainting.fedsage._federated import LOSSES as FEDERATED_LOSSES
from brainfed.inpainting.fedsage._federated import WEIGHT, FGenServer, Hosts, RawFGenServer, RawHosts, embeddings_sent
from brainfed.inpainting.fedsage._local import (
    CPU_BLOCK,
    Draws,
    LocalOwner,
    Owner,
    WideOutput,
    arrays_of,
    hidden_nodes,
    load_arrays,
    owners_of,
    row_normalised,
    scaled_members,
    target_embeddings,
)
from brainfed.inpainting.fedsage._local import LOSSES as LOCAL_LOSSES
from brainfed.models import ENCODER_WIDTH, FGEN_WIDTH, LATENT, GeneratorShape, MissingNeighbourGenerator
from brainfed.runtime import ArrayFile, Float32, Float64, IntArray, seeded
from brainfed.runtime.jobs import Run

HistoryRow = tuple[int, int, str, float]
"""Institution, round, loss, value."""


class TrainedFedSage:
    """A `NodeGenerator`: one generator an institution, on its whole graph, without dropout.

    Args:
        generators: trained, by institution code.
    """

    def __init__(
        self, inputs: InpaintingInputs, settings: FedSageSettings, generators: Mapping[int, MissingNeighbourGenerator]
    ) -> None:
        self._inputs, self._settings = inputs, settings
        self._generators = generators
        self._embeddings = {code: self._embed(code) for code in generators}

    @torch.no_grad()
    def counts(self) -> Float64:
        """(n,) predicted numbers, scaled to the cut, at most the number of foreign subjects."""
        counts = np.zeros(len(self._inputs.subjects))
        for code, generator in self._generators.items():
            predicted = generator.dgen(self._embeddings[code]) * self._scale(code)
            predicted = predicted.clamp(max=foreign_subjects(self._inputs, code))
            counts[self._inputs.members(code)] = predicted.cpu().numpy()
        return counts

    def draw(self, parents: IntArray) -> Generated:
        """The r-th of equal parents takes output slot r.

        Raises:
            ValueError: a parent occurs more often than there are slots, or is no training subject.
        """
        slot = rank_among_equals(parents)
        features = np.zeros((len(parents), self._inputs.features.shape[1]), dtype=np.float32)
        drawn = np.zeros(len(parents), dtype=bool)
        for code, generator in self._generators.items():
            own = np.flatnonzero(np.isin(parents, self._inputs.members(code)))
            if len(own) == 0:
                continue
            if slot[own].max() >= generator.fgen.shape.targets:
                raise ValueError(f"a subject has at most {generator.fgen.shape.targets} generated neighbours")
            distinct, place = np.unique(parents[own], return_inverse=True)
            made = self._generate(code, distinct)[place, slot[own]]
            features[own] = scaling_of(self._inputs, code).undo(made)
            drawn[own] = True
        if not drawn.all():
            raise ValueError(f"subject {self._inputs.subjects[parents[~drawn][0]]!r} was never learnt from")
        unknown = np.full(len(parents), -1, dtype=np.int64)
        return Generated(features, unknown, np.full(len(parents), np.nan))

    def _scale(self, institution: int) -> float:
        if self._settings.count == "printed":
            return 1.0
        graph, is_visible = self._inputs.graph, np.zeros(len(self._inputs.subjects), dtype=np.bool_)
        members = self._inputs.members(institution)
        is_visible[members] = True
        inside = is_visible[graph.row] & is_visible[graph.column]
        is_visible[hidden_nodes(self._inputs, institution, self._settings.hidden_fraction)] = False
        edges = hidden_and_visible(graph.row[inside], graph.column[inside], is_visible)
        return odds_ratio(self._inputs, institution, edges)

    @torch.no_grad()
    def _embed(self, institution: int) -> Tensor:
        members, generator = self._inputs.members(institution), self._generators[institution]
        weight = generator.encoder.first.weight
        propagation = torch.from_numpy(row_normalised(self._inputs.graph, members)).to(weight)
        rows = torch.from_numpy(scaled_members(self._inputs, institution)).to(weight)
        embeddings: Tensor = generator.encoder(propagation @ rows, propagation)
        return embeddings

    @torch.no_grad()
    def _generate(self, institution: int, parents: IntArray) -> Float32:
        """(p, slots, d) in (-1, 1) for distinct parents; a parent's noise does not depend on the other parents."""
        embeddings = self._embeddings[institution]
        noise = normal(
            self._inputs.streams, embeddings.shape, "fedsage-noise", self._inputs.part, institution, "inference"
        )
        place = np.searchsorted(self._inputs.members(institution), parents)
        noisy = (embeddings + noise.to(embeddings))[torch.from_numpy(place).to(embeddings.device)]
        generated = self._generators[institution].fgen(noisy)
        return np.asarray(generated.cpu().numpy(), dtype=np.float32)


# FedSage+'s generators of missing neighbours: local training, then federated training of fGen.
#
# In federated rounds the encoders do not change, and one owner's fGen does not depend on another's. So the owners train
# one after the other, and only one optimiser's state is in memory: at d = 19,900 a generator has 26 million weights.


def train(inputs: InpaintingInputs, settings: FedSageSettings, run: Run) -> TrainedGenerator:
    """Train one generator for each institution with training subjects, without labels (Zhang et al. 2021, Algorithm 1).

    Rounds of the history: the local epochs first, then the federated rounds.
    """
    training = _Training(inputs, settings, run)
    owners, generators = training.owners, training.generators
    for owner in owners:
        training.train_locally(owner)
    embeddings = {
        owner.institution: target_embeddings(generators[owner.institution], owner) for owner in training.hosts
    }
    for owner in owners:
        training.train_federated(owner, embeddings)
    hidden = [(owner.institution, 1, "hidden_fraction", 1 - owner.visible / owner.subjects) for owner in owners]
    return TrainedGenerator(
        arrays={
            name: array
            for code, generator in generators.items()
            for name, array in arrays_of(generator, f"{code}/").items()
        },
        history=_history([*hidden, *training.history], inputs.institutions),
        counts={
            "parameters": sum(parameter.numel() for parameter in generators[owners[0].institution].parameters()),
            "rounds": settings.rounds,
            "local_epochs": settings.local_epochs,
            "operations": _operations(owners, settings),
        },
        crossings=training.ledger.rows(),
    )


def load(inputs: InpaintingInputs, settings: FedSageSettings, file: ArrayFile, run: Run) -> TrainedFedSage:
    """The trained generators."""
    generators = _generators(inputs, settings, torch.device(run.device), getattr(torch, run.precision))
    for code, generator in generators.items():
        load_arrays(generator, file.arrays, f"{code}/")
    return TrainedFedSage(inputs, settings, generators)


def _history(rows: Sequence[HistoryRow], institutions: Sequence[str]) -> pd.DataFrame:
    """Sorted columns institution, round, loss and value."""
    history = pd.DataFrame(sorted(rows), columns=["institution", "round", "loss", "value"])
    names = [institutions[code] for code in history["institution"]]
    return history.assign(institution=names).astype({"round": "int32"})


class _Training:
    """The shared state of the owners' trainings."""

    def __init__(self, inputs: InpaintingInputs, settings: FedSageSettings, run: Run) -> None:
        device, dtype = torch.device(run.device), getattr(torch, run.precision)
        self.inputs, self.settings, self.run = inputs, settings, run
        self.owners = owners_of(inputs, settings, device, dtype)
        self.hosts = [owner for owner in self.owners if len(owner.targeted)]
        self.generators = _generators(inputs, settings, device, dtype)
        self.draws = Draws(inputs.streams, inputs.part, settings.dropout)
        self.wide = WideOutput(CPU_BLOCK if device.type == "cpu" else inputs.features.shape[1])
        declared = SUMMED_TENSORS if settings.exchange == "gradients" else RAW_TENSORS
        self.ledger = Ledger(declared, _axes(inputs, settings), "inpainting")
        ahead = DrawnAhead.on(device, settings.rounds)
        self.noise = WeightNoise(settings.noise, inputs.streams, (inputs.fold,), prefix=WEIGHT, ahead=ahead)
        self.pace = Pace()
        self.history: list[HistoryRow] = []
        self._done = 0

    def train_locally(self, owner: Owner) -> None:
        """Local training of the owner's generator."""
        clients = LocalOwner(owner, self.generators[owner.institution], self.settings, self.draws, self.wide)
        wire, rounds = Wire(self.ledger, {}, self.noise), self.settings.local_epochs
        self._federate(owner, "home", clients, Alone(clients.institutions), wire, rounds)
        self._append_history(owner, LOCAL_LOSSES, clients.losses, first=1)

    def train_federated(self, owner: Owner, embeddings: Mapping[int, Tensor]) -> None:
        """Federated training of the owner's fGen at all hosts."""
        home, rounds, rate = owner.institution, self.settings.rounds, self.settings.learning_rate
        fgen = self.generators[home].fgen
        wire = Wire(self.ledger, {each.institution: each.subjects for each in self.owners}, self.noise, home=home)
        clients: Hosts | RawHosts
        if self.settings.exchange == "gradients":
            clients = Hosts(home, self.hosts, embeddings, fgen.shape, self.draws, self.wide, rounds)
            server = FGenServer(clients.institutions, fgen, rate, rounds)
        else:
            clients = RawHosts(home, self.hosts, rounds)
            if rounds:
                wire.up(0, embeddings_sent(embeddings))
            server = RawFGenServer(home, embeddings, self.draws, self.noise, fgen, rate, rounds)
        self._federate(owner, "hosts", clients, server, wire, rounds)
        self._append_history(owner, FEDERATED_LOSSES, clients.losses, first=1 + self.settings.local_epochs)

    def _federate(
        self, owner: Owner, phase: str, clients: Clients, strategy: Strategy, wire: Wire, rounds: int
    ) -> None:
        name, before = self.inputs.institutions[owner.institution], self._done
        steps = len(self.owners) * (self.settings.local_epochs + self.settings.rounds)

        def progress(done: int, _total: int, what: str) -> None:
            self.run.progress(before + done, steps, f"{name}, {what.rpartition(', ')[0]}, step")

        checkpoint = self.run.checkpoint.part(f"{phase}-{owner.institution}")
        federate(clients, strategy, wire, rounds, checkpoint, progress, self.pace)
        self._done += rounds

    def _append_history(self, owner: Owner, names: Sequence[str], losses: Float64, *, first: int) -> None:
        for number, values in enumerate(losses):
            self.history += [
                (owner.institution, first + number, name, float(value))
                for name, value in zip(names, values, strict=True)
            ]


def _generators(
    inputs: InpaintingInputs, settings: FedSageSettings, device: torch.device, dtype: torch.dtype
) -> dict[int, MissingNeighbourGenerator]:
    """Generators with equal initial weights, so that fGen can read the embeddings of other owners' encoders."""
    shape = GeneratorShape(inputs.features.shape[1], settings.targets, settings.fgen_width)
    with seeded(inputs.streams.key("fedsage-start", inputs.part)):
        start = MissingNeighbourGenerator(shape).to(device, dtype)
    return {code: copy.deepcopy(start) for code in inputs.learning}


def _axes(inputs: InpaintingInputs, settings: FedSageSettings) -> dict[str, int]:
    d, slots = inputs.features.shape[1], settings.targets
    layers = {"latent": LATENT, "fgen-0": FGEN_WIDTH, "fgen-1": settings.fgen_width}
    return {**layers, "slots": slots, "features": d, "slots-features": slots * d}


def _operations(owners: Sequence[Owner], settings: FedSageSettings) -> int:
    """Multiplications and additions of the two layers that touch features, forward and backward, over all steps."""
    d = owners[0].missing.shape[1]
    generators = sum(6 * len(owner.targeted) * settings.fgen_width * settings.targets * d for owner in owners)
    encoders = sum(4 * owner.visible * d * ENCODER_WIDTH for owner in owners)
    return settings.local_epochs * (generators + encoders) + settings.rounds * len(owners) * generators
