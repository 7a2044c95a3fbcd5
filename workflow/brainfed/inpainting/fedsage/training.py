"""FedSage+'s generators of missing neighbours: trained alone, then fGen against every other owner (Zhang et al. 2021).

An owner's generator never meets another's: i's fGen takes a step a round by the gradients that all owners
return for it, and their encoders no longer change. So the owners train one after the other, and
only one of them holds an optimiser's state: at d = 19,900 a generator has 26 million weights.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from brainfed.federation.adam import Adam
from brainfed.federation.ledger import Ledger
from brainfed.federation.pace import Pace
from brainfed.inpainting.fedsage.nodes import ImaginedNeighbours
from brainfed.inpainting.fedsage.owner import Owner, owners_of
from brainfed.inpainting.fedsage.settings import FedSageSettings
from brainfed.inpainting.fedsage.state import HistoryRow, TrainingState, arrays_of, load_arrays, optimiser_arrays
from brainfed.inpainting.fedsage.steps import Draws, federated_gradient, local_gradient, target_embeddings
from brainfed.inpainting.fedsage.visit import crosses_of
from brainfed.inpainting.fedsage.wide import CPU_BLOCK, WideOutput
from brainfed.inpainting.inputs import InpaintingInputs
from brainfed.inpainting.trained import TrainedGenerator
from brainfed.models.fedsage_generator import (
    ENCODER_WIDTH,
    FGEN_WIDTH,
    LATENT,
    GeneratorShape,
    MissingNeighbourGenerator,
)
from brainfed.runtime.artefacts import ArrayFile
from brainfed.runtime.jobs.run import Run
from brainfed.runtime.jobs.stopping import stop_asked, whole


def train(inputs: InpaintingInputs, settings: FedSageSettings, run: Run) -> TrainedGenerator:
    """Train one generator for each institution that may be learnt from; no label enters.

    Rounds of the history: the local epochs first, then the federated rounds.
    """
    device, dtype = torch.device(run.device), getattr(torch, run.precision)
    owners = owners_of(inputs, settings, device, dtype)
    generators = _generators(inputs, settings, device, dtype)
    state = TrainingState(generators, Ledger(crosses_of(settings), _axes(inputs, settings), "inpainting"))
    _run(state, owners, _steps(owners, settings), inputs, settings, run)
    shares = [(owner.institution, 1, "hidden_fraction", 1 - owner.visible / owner.subjects) for owner in owners]
    return TrainedGenerator(
        arrays=arrays_of(generators),
        history=_history([*shares, *state.history], inputs.institutions),
        counts={
            "parameters": sum(parameter.numel() for parameter in generators[owners[0].institution].parameters()),
            "rounds": settings.rounds,
            "local_epochs": settings.local_epochs,
            "operations": _operations(owners, settings),
        },
        crossings=state.ledger.rows(),
    )


def load(inputs: InpaintingInputs, settings: FedSageSettings, file: ArrayFile, run: Run) -> ImaginedNeighbours:
    """The trained generators, ready to be asked."""
    generators = _generators(inputs, settings, torch.device(run.device), getattr(torch, run.precision))
    load_arrays(generators, file.arrays)
    return ImaginedNeighbours(inputs, settings, generators)


def _history(rows: Sequence[HistoryRow], institutions: Sequence[str]) -> pd.DataFrame:
    """institution, round, loss, value, in order."""
    history = pd.DataFrame(sorted(rows), columns=["institution", "round", "loss", "value"])
    names = [institutions[code] for code in history["institution"]]
    return history.assign(institution=names).astype({"round": "int32"})


@dataclass(frozen=True)
class _Step:
    """One step of one owner: a local epoch, or a federated round."""

    owner: Owner
    federated: bool
    number: int


def _steps(owners: Sequence[Owner], settings: FedSageSettings) -> list[_Step]:
    local = [_Step(owner, False, number) for owner in owners for number in range(settings.local_epochs)]
    return local + [_Step(owner, True, number) for owner in owners for number in range(settings.rounds)]


def _run(
    state: TrainingState,
    owners: Sequence[Owner],
    steps: Sequence[_Step],
    inputs: InpaintingInputs,
    settings: FedSageSettings,
    run: Run,
) -> None:
    draws = Draws(inputs.streams, inputs.part, settings.dropout)
    kept = state.resume(run.checkpoint)
    embeddings: dict[int, Tensor] = {}
    wide = WideOutput(CPU_BLOCK if torch.device(run.device).type == "cpu" else inputs.features.shape[1])
    pace = Pace()
    for step in whole(steps[state.done :]):
        if step.federated and not embeddings:
            embeddings = {
                owner.institution: target_embeddings(state.generators[owner.institution], owner) for owner in owners
            }
        generator = state.generators[step.owner.institution]
        if state.optimiser is None or step.number == 0:
            trained = generator.fgen if step.federated else generator
            state.optimiser = Adam(list(trained.parameters()), settings.learning_rate)
            if step.number > 0:
                state.optimiser.load(optimiser_arrays(kept))
            kept = {}
        values = _take(step, generator, owners, embeddings, draws, settings, state, wide)
        round_index = step.number + 1 + settings.local_epochs * step.federated
        state.history += [(step.owner.institution, round_index, loss, value) for loss, value in values.items()]
        state.done += 1
        where = inputs.institutions[step.owner.institution]
        run.progress(state.done, len(steps), f"{where}, loss {sum(values.values()):.4f}, step")
        if stop_asked() or (state.done < len(steps) and pace.due()):
            with pace.writing():
                state.save(run.checkpoint)


def _take(
    step: _Step,
    generator: MissingNeighbourGenerator,
    owners: Sequence[Owner],
    embeddings: Mapping[int, Tensor],
    draws: Draws,
    settings: FedSageSettings,
    state: TrainingState,
    wide: WideOutput,
) -> dict[str, float]:
    """One gradient and one step of Adam; the losses by name."""
    assert state.optimiser is not None
    if step.federated:
        values = federated_gradient(
            generator.fgen, step.owner, owners, embeddings, draws, settings, step.number, state.ledger, wide
        )
    else:
        values = local_gradient(generator, step.owner, draws, settings, step.number, wide)
    state.optimiser.step()
    generator.zero_grad()
    return values


def _generators(
    inputs: InpaintingInputs, settings: FedSageSettings, device: torch.device, dtype: torch.dtype
) -> dict[int, MissingNeighbourGenerator]:
    """Equal starts: fGen visits others' embeddings, which had nothing in common if their encoders started apart."""
    shape = GeneratorShape(inputs.features.shape[1], settings.targets, settings.fgen_width)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(inputs.streams.key("fedsage-start", inputs.part))
        start = MissingNeighbourGenerator(shape).to(device, dtype)
    codes = [code for code in range(len(inputs.institutions)) if len(inputs.members(code))]
    return {code: copy.deepcopy(start) for code in codes}


def _axes(inputs: InpaintingInputs, settings: FedSageSettings) -> dict[str, int]:
    d = inputs.features.shape[1]
    return {
        "latent": LATENT,
        "fgen-0": FGEN_WIDTH,
        "fgen-1": settings.fgen_width,
        "slots": settings.targets,
        "features": d,
        "slots-features": settings.targets * d,
    }


def _operations(owners: Sequence[Owner], settings: FedSageSettings) -> int:
    """Multiplications and additions of the two layers that touch features, forward and backward, over all steps."""
    d = owners[0].missing.shape[1]
    visits = sum(6 * len(owner.targeted) * settings.fgen_width * settings.targets * d for owner in owners)
    encoders = sum(4 * owner.visible * d * ENCODER_WIDTH for owner in owners)
    return settings.local_epochs * (visits + encoders) + settings.rounds * len(owners) * visits
