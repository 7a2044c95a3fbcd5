"""Missing neighbours from a trained FedNI generator (Algorithm 1, line 24), their number scaled to the cut."""

import logging
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from brainfed.federation import Ledger, add_up, normal
from brainfed.inpainting import SIZE_TENSORS, Generated, InpaintingInputs, InpaintingSettings
from brainfed.inpainting.fedni._adversarial_step import StackedModules, new_generator
from brainfed.inpainting.fedni._masking import Institution, draw_mask, institution_of, normalised
from brainfed.models import NOISE, SEXES, Generator
from brainfed.runtime import ArrayFile, BoolArray, Float64, IntArray, below
from brainfed.runtime.jobs import Run

# Scale predicted numbers of missing neighbours from masks to the cut.
#
# A mask hides a tenth of an institution; a cut into five hides four fifths of all subjects. So a count learnt on masks
# is multiplied by the odds of the cut over the odds of the masks. Odds are hidden edges over visible ones.

logger = logging.getLogger(__name__)

MASKS = 32


def foreign_subjects(inputs: InpaintingInputs, institution: int) -> int:
    """Number of training subjects of the other institutions."""
    ledger, own = Ledger(SIZE_TENSORS, stage="inpainting"), {"training-subjects": inputs.fitted.sum()}
    everybody = add_up(inputs.link, ledger, len(inputs.subjects), own)["training-subjects"]
    return int(everybody) - len(inputs.members(institution))


def hidden_and_visible(row: IntArray, column: IntArray, is_visible: BoolArray) -> IntArray:
    """(2,) numbers of edges (row, column) that reach a visible node (n,): from hidden nodes, and from visible ones."""
    inside = is_visible[row] & (row != column)
    return np.array([(inside & ~is_visible[column]).sum(), (inside & is_visible[column]).sum()])


def odds_ratio(inputs: InpaintingInputs, institution: int, edges: IntArray) -> float:
    """Odds of the cut over those of masks with so many hidden and visible `edges` (2,).

    With institutions drawn at random, a subject has (N - n) / (n - 1) foreign neighbours for one in its institution of
    n of N subjects. 1 without a cut (any scope but `global_cut`), and where masks hide no edge or leave none.
    """
    own = len(inputs.members(institution))
    if inputs.graph_settings.scope != "global_cut":
        return 1.0
    if own < 2 or not edges.all():
        logger.warning(
            "institution %r: its masks %s no edge, so its predicted numbers of missing neighbours are not scaled from "
            "the masks to the cut and are too low; institutions with more subjects, or a larger graph.k, have more "
            "edges",
            inputs.institutions[institution],
            "leave" if edges[0] else "hide",
        )
        return 1.0
    return (foreign_subjects(inputs, institution) / (own - 1)) / (int(edges[0]) / int(edges[1]))


def warn_of_sites(inputs: InpaintingInputs, count: str) -> None:
    """Warn that the scale assumes random institutions; call it where institutions are sites or groups of sites."""
    if inputs.graph_settings.scope == "global_cut" and count == "calibrated":
        logger.warning(
            "the predicted numbers of missing neighbours are scaled as if institutions were drawn at random; these are "
            "sites or groups of sites, whose subjects often have their neighbours inside, so the numbers tend to be "
            "too high"
        )


def count_scale(inputs: InpaintingInputs, institution: Institution, settings: InpaintingSettings) -> float:
    """The odds ratio of one FedNI institution, from `MASKS` fresh masks.

    Its masks have smaller odds than nodes hidden at random, for leaves have fewer neighbours.
    """
    if settings.count == "printed":
        return 1.0
    own = len(institution.members)
    row = np.repeat(np.arange(own), np.diff(institution.edges.indptr))
    edges = np.zeros(2, dtype=np.int64)
    for number in range(MASKS):
        random = inputs.streams.numpy("count-scale", inputs.part, institution.number, number)
        mask = draw_mask(institution.edges, int(random.integers(own)), random, settings)
        is_visible = np.ones(own, dtype=np.bool_)
        is_visible[mask.hidden] = False
        edges += hidden_and_visible(row, institution.edges.indices.astype(np.int64), is_visible)
    return odds_ratio(inputs, institution.number, edges)


def load(inputs: InpaintingInputs, settings: InpaintingSettings, file: ArrayFile, run: Run) -> "TrainedFedNI":
    """The trained generator."""
    device, dtype = torch.device(run.device), getattr(torch, run.precision)
    arrays = below("generator/", file.arrays)
    copies = len(arrays["encoder_0.weight"])
    stack = StackedModules(lambda: new_generator(inputs, settings), copies, device, dtype)
    stack.load(arrays)
    institutions = [institution_of(inputs, code, device, dtype) for code in inputs.learning]
    pairs = [(each, stack.modules[place % copies].eval()) for place, each in enumerate(institutions)]
    return TrainedFedNI(inputs, settings, pairs)


class TrainedFedNI:
    """A `NodeGenerator`: one generator an institution, on the institution's whole graph.

    Args:
        pairs: every institution with training subjects, and its generator in evaluation mode.
    """

    def __init__(
        self, inputs: InpaintingInputs, settings: InpaintingSettings, pairs: Sequence[tuple[Institution, Generator]]
    ) -> None:
        self._inputs, self._settings = inputs, settings
        self._pairs = pairs
        with torch.no_grad():
            self._embeddings = [
                generator.encode(institution.nodes.features, normalised(institution.adjacency))
                for institution, generator in pairs
            ]

    @torch.no_grad()
    def counts(self) -> Float64:
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
