"""Ask a trained FedNI generator for the neighbours that are missing (FedNI spec section 6)."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.privacy import normal
from brainfed.inpainting.fedni.count_scale import count_scale, elsewhere
from brainfed.inpainting.fedni.institution import Institution, institution_of, normalised
from brainfed.inpainting.fedni.stacked_modules import StackedModules
from brainfed.inpainting.fedni.starts import new_generator
from brainfed.inpainting.inputs import Generated, InpaintingInputs, IntArray
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.models.generator import NOISE, SEXES, Generator
from brainfed.runtime.artefacts import ArrayFile
from brainfed.runtime.jobs.run import Run


def load(inputs: InpaintingInputs, settings: InpaintingSettings, file: ArrayFile, run: Run) -> "TrainedFedNI":
    """The trained generator, ready to be asked for counts and nodes."""
    device, dtype = torch.device(run.device), getattr(torch, run.precision)
    arrays = {name.removeprefix("generator/"): array for name, array in file.arrays.items()}
    held = len(arrays["encoder_0.weight"])
    stack = StackedModules(lambda: new_generator(inputs, settings), held, device, dtype)
    stack.load(arrays)
    every = [institution_of(inputs, number, device, dtype) for number in range(len(inputs.institutions))]
    present = [institution for institution in every if len(institution.members)]
    pairs = [(institution, stack.modules[place % held].eval()) for place, institution in enumerate(present)]
    return TrainedFedNI(inputs, settings, pairs)


class TrainedFedNI:
    """A `NodeGenerator`: one generator an institution, on the institution's whole graph.

    Args:
        inputs: of the job.
        settings: what the generators were trained with.
        pairs: every institution that has subjects, with the generator that it holds, in evaluation mode.
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
        """(n,) k times the predicted share on the scale of what is missing; 0 where a subject may not be learnt from.

        Not rounded, and at most as many as there are subjects elsewhere.
        """
        counts = np.zeros(len(self._inputs.subjects))
        for (institution, generator), embedding in zip(self._pairs, self._embeddings, strict=True):
            degree = torch.from_numpy(np.diff(institution.edges.indptr)).to(embedding)
            share = generator.missing(embedding, degree).double().cpu().numpy()
            predicted = self._inputs.graph_settings.k * share * count_scale(self._inputs, institution, self._settings)
            counts[institution.members] = np.minimum(predicted, elsewhere(self._inputs, institution.number))
        return counts

    @torch.no_grad()
    def draw(self, parents: IntArray) -> Generated:
        """One node for each entry of `parents`: features, the likelier sex, the predicted age."""
        inputs = self._inputs
        features = np.zeros((len(parents), inputs.features.shape[1]), dtype=np.float32)
        sex, age = np.full(len(parents), -1, dtype=np.int64), np.full(len(parents), np.nan)
        for (institution, generator), embedding in zip(self._pairs, self._embeddings, strict=True):
            asked = np.flatnonzero(inputs.institution[parents] == institution.number)
            if len(asked) == 0:
                continue
            place = np.searchsorted(institution.members, parents[asked])
            rows = embedding[torch.from_numpy(place).to(embedding.device)]
            made = generator.generate(rows, self._noise(parents[asked]).to(rows))
            features[asked] = institution.scaling.undo(made.double().cpu().numpy())
            if generator.predicts_phenotypes:
                told = generator.phenotypes(made).double().cpu().numpy()
                if generator.sex:
                    sex[asked] = told[:, :SEXES].argmax(axis=1)
                if generator.age:
                    age[asked] = told[:, -1] * institution.age_sd + institution.age_mean
        return Generated(features, sex, age)

    def _noise(self, parents: IntArray) -> Tensor:
        """(g, 4): a stream for each parent, so that one parent's number of nodes moves no other's."""
        drawn = [
            normal(self._inputs.streams, (int(count), NOISE), "drawn-nodes", self._inputs.part, int(parent))
            for parent, count in zip(*np.unique(parents, return_counts=True), strict=True)
        ]
        noise = torch.empty(len(parents), NOISE)
        noise[torch.from_numpy(np.argsort(parents, kind="stable"))] = torch.cat(drawn)
        return noise
