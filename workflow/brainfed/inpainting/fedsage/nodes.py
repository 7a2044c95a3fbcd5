"""Missing neighbours from trained FedSage+ generators."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.privacy.weight_noise import normal
from brainfed.inpainting.fedni.count_scale import foreign_subjects, hidden_and_visible, odds_ratio
from brainfed.inpainting.fedsage.owner import hidden_nodes, row_normalised, scaled_members
from brainfed.inpainting.fedsage.settings import FedSageSettings
from brainfed.inpainting.inputs import Generated, InpaintingInputs, IntArray
from brainfed.inpainting.scaling import scaling_of
from brainfed.models.fedsage_generator import MissingNeighbourGenerator


class TrainedFedSage:
    """A `NodeGenerator`: one generator an institution, on its whole graph, without dropout.

    Args:
        inputs: of the inpainting job.
        settings: of the training.
        generators: trained, by institution code.
    """

    def __init__(
        self,
        inputs: InpaintingInputs,
        settings: FedSageSettings,
        generators: Mapping[int, MissingNeighbourGenerator],
    ) -> None:
        self._inputs, self._settings = inputs, settings
        self._generators = generators
        self._embeddings = {code: self._embed(code) for code in generators}

    @torch.no_grad()
    def counts(self) -> NDArray[np.float64]:
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
        slot = _rank_among_equals(parents)
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
    def _generate(self, institution: int, parents: IntArray) -> NDArray[np.float32]:
        """(p, slots, d) in (-1, 1) for distinct parents; a parent's noise does not depend on the other parents."""
        embeddings = self._embeddings[institution]
        noise = normal(
            self._inputs.streams, embeddings.shape, "fedsage-noise", self._inputs.part, institution, "inference"
        )
        place = np.searchsorted(self._inputs.members(institution), parents)
        noisy = (embeddings + noise.to(embeddings))[torch.from_numpy(place).to(embeddings.device)]
        generated = self._generators[institution].fgen(noisy)
        return np.asarray(generated.cpu().numpy(), dtype=np.float32)


def _rank_among_equals(values: IntArray) -> IntArray:
    """(g,) number of equal entries before each one."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - np.searchsorted(ranked, ranked)
    return rank
