"""Missing neighbours from a trained FedNI generator (FedNI Algorithm 1, line 24)."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.privacy.weight_noise import normal
from brainfed.inpainting.fedni.count_scale import count_scale, foreign_subjects
from brainfed.inpainting.fedni.institution import Institution, institution_of, normalised
from brainfed.inpainting.fedni.stacked_modules import StackedModules
from brainfed.inpainting.fedni.starts import new_generator
from brainfed.inpainting.inputs import Generated, InpaintingInputs, IntArray
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.models.generator import NOISE, SEXES, Generator
from brainfed.runtime.artefacts import ArrayFile
from brainfed.runtime.jobs.run import Run


def load(inputs: InpaintingInputs, settings: InpaintingSettings, file: ArrayFile, run: Run) -> "TrainedFedNI":
    """The trained generator."""
    device, dtype = torch.device(run.device), getattr(torch, run.precision)
    arrays = {name.removeprefix("generator/"): array for name, array in file.arrays.items()}
    copies = len(arrays["encoder_0.weight"])
    stack = StackedModules(lambda: new_generator(inputs, settings), copies, device, dtype)
    stack.load(arrays)
    every = [institution_of(inputs, number, device, dtype) for number in range(len(inputs.institutions))]
    present = [institution for institution in every if len(institution.members)]
    pairs = [(institution, stack.modules[place % copies].eval()) for place, institution in enumerate(present)]
    return TrainedFedNI(inputs, settings, pairs)


class TrainedFedNI:
    """A `NodeGenerator`: one generator an institution, on the institution's whole graph.

    Args:
        inputs: of the job.
        settings: of the training.
        pairs: every institution with training subjects, and its generator in evaluation mode.
    """

    def __init__(
        self,
        inputs: InpaintingInputs,
        settings: InpaintingSettings,
        pairs: Sequence[tuple[Institution, Generator]],
    ) -> None:
        self._inputs, self._settings = inputs, settings
        self._pairs = pairs
        with torch.no_grad():
            self._embeddings = [
                generator.encode(institution.nodes.features, normalised(institution.adjacency))
                for institution, generator in pairs
            ]

    @torch.no_grad()
    def counts(self) -> NDArray[np.float64]:
        """(n,) k times the predicted share, scaled to the cut; 0 for subjects outside the training.

        Not rounded, and at most the number of foreign subjects.
        """
        counts = np.zeros(len(self._inputs.subjects))
        for (institution, generator), embedding in zip(self._pairs, self._embeddings, strict=True):
            degree = torch.from_numpy(np.diff(institution.edges.indptr)).to(embedding)
            share = generator.missing(embedding, degree).double().cpu().numpy()
            predicted = self._inputs.graph_settings.k * share * count_scale(self._inputs, institution, self._settings)
            counts[institution.members] = np.minimum(predicted, foreign_subjects(self._inputs, institution.number))
        return counts

    @torch.no_grad()
    def draw(self, parents: IntArray) -> Generated:
        """One node for each entry of `parents`: features, the likelier sex, the predicted age."""
        inputs = self._inputs
        features = np.zeros((len(parents), inputs.features.shape[1]), dtype=np.float32)
        sex, age = np.full(len(parents), -1, dtype=np.int64), np.full(len(parents), np.nan)
        for (institution, generator), embedding in zip(self._pairs, self._embeddings, strict=True):
            own = np.flatnonzero(inputs.institution[parents] == institution.number)
            if len(own) == 0:
                continue
            place = np.searchsorted(institution.members, parents[own])
            rows = embedding[torch.from_numpy(place).to(embedding.device)]
            made = generator.generate(rows, self._noise(institution.number, place).to(rows))
            features[own] = institution.scaling.undo(made.double().cpu().numpy())
            if generator.predicts_phenotypes:
                predicted = generator.phenotypes(made).double().cpu().numpy()
                if generator.sex:
                    sex[own] = predicted[:, :SEXES].argmax(axis=1)
                if generator.age:
                    age[own] = predicted[:, -1] * institution.age_sd + institution.age_mean
        return Generated(features, sex, age)

    def _noise(self, institution: int, places: IntArray) -> Tensor:
        """(g, 4) for parents at these places (g,) of an institution.

        From one stream a parent, so that the number of one parent's nodes changes no other's.
        """
        drawn = [
            normal(self._inputs.streams, (int(count), NOISE), "drawn-nodes", self._inputs.part, institution, int(place))
            for place, count in zip(*np.unique(places, return_counts=True), strict=True)
        ]
        noise = torch.empty(len(places), NOISE)
        noise[torch.from_numpy(np.argsort(places, kind="stable"))] = torch.cat(drawn)
        return noise
