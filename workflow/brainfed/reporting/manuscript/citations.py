"""Citations for a report: data, software and statistics. Those of methods are their families'."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Citation:
    """One work; `doi` is empty without one."""

    text: str
    doi: str = ""


ABIDE = (
    Citation(
        "Di Martino A et al. (2014). The autism brain imaging data exchange: towards a large-scale evaluation of the "
        "intrinsic brain architecture in autism. Molecular Psychiatry 19, 659\u2013667.",
        "10.1038/mp.2013.78",
    ),
    Citation(
        "Craddock C et al. (2013). The Neuro Bureau Preprocessing Initiative: open sharing of preprocessed "
        "neuroimaging data and derivatives. Frontiers in Neuroinformatics, conference abstract.",
        "10.3389/conf.fninf.2013.09.00041",
    ),
)
ATLASES = {
    "cc200": Citation(
        "Craddock RC et al. (2012). A whole brain fMRI atlas generated via spatially constrained spectral clustering. "
        "Human Brain Mapping 33, 1914\u20131928.",
        "10.1002/hbm.21333",
    ),
    "basc122": Citation(
        "Bellec P et al. (2010). Multi-level bootstrap analysis of stable clusters in resting-state fMRI. NeuroImage "
        "51, 1126\u20131139.",
        "10.1016/j.neuroimage.2010.02.082",
    ),
    "harvard-oxford": Citation(
        "Desikan RS et al. (2006). An automated labeling system for subdividing the human cerebral cortex on MRI scans "
        "into gyral based regions of interest. NeuroImage 31, 968\u2013980.",
        "10.1016/j.neuroimage.2006.01.021",
    ),
    "aal": Citation(
        "Tzourio-Mazoyer N et al. (2002). Automated anatomical labeling of activations in SPM using a macroscopic "
        "anatomical parcellation of the MNI MRI single-subject brain. NeuroImage 15, 273\u2013289.",
        "10.1006/nimg.2001.0978",
    ),
}
ADNI = Citation(
    "Petersen RC et al. (2010). Alzheimer's Disease Neuroimaging Initiative (ADNI): clinical characterization. "
    "Neurology 74, 201\u2013209.",
    "10.1212/WNL.0b013e3181cb3e25",
)
FREESURFER = Citation("Fischl B (2012). FreeSurfer. NeuroImage 62, 774\u2013781.", "10.1016/j.neuroimage.2012.01.021")
PRIVACY = (
    Citation(
        "Abadi M, Chu A, Goodfellow I, McMahan HB, Mironov I, Talwar K, Zhang L (2016). Deep learning with "
        "differential privacy. ACM Conference on Computer and Communications Security, 308\u2013318.",
        "10.1145/2976749.2978318",
    ),
    Citation(
        "Gopi S, Lee YT, Wutschitz L (2021). Numerical composition of differential privacy. Advances in Neural "
        "Information Processing Systems 34."
    ),
    Citation(
        "Yousefpour A et al. (2021). Opacus: user-friendly differential privacy library in PyTorch. arXiv 2109.12298."
    ),
)
ATTACKS = (
    Citation(
        "Carlini N, Chien S, Nasr M, Song S, Terzis A, Tram\u00e8r F (2022). Membership inference attacks from first "
        "principles. IEEE Symposium on Security and Privacy, 1897\u20131914.",
        "10.1109/SP46214.2022.9833649",
    ),
    Citation(
        "Yeom S, Giacomelli I, Fredrikson M, Jha S (2018). Privacy risk in machine learning: analyzing the connection "
        "to overfitting. IEEE Computer Security Foundations Symposium, 268\u2013282.",
        "10.1109/CSF.2018.00027",
    ),
)
POISON = (
    Citation(
        "Chang H, Shejwalkar V, Shokri R, Houmansadr A (2019). Cronus: robust and heterogeneous collaborative learning "
        "with black-box knowledge transfer. arXiv 1912.11279."
    ),
    Citation(
        "Blanchard P, El Mhamdi EM, Guerraoui R, Stainer J (2017). Machine learning with adversaries: Byzantine "
        "tolerant gradient descent. Advances in Neural Information Processing Systems 30."
    ),
    Citation(
        "Yin D, Chen Y, Ramchandran K, Bartlett P (2018). Byzantine-robust distributed learning: towards optimal "
        "statistical rates. International Conference on Machine Learning, PMLR 80, 5650\u20135659."
    ),
    Citation(
        "Pillutla K, Kakade SM, Harchaoui Z (2022). Robust aggregation for federated learning. IEEE Transactions on "
        "Signal Processing 70, 1142\u20131154.",
        "10.1109/TSP.2022.3153135",
    ),
)
TUDATASET = Citation(
    "Morris C, Kriege NM, Bause F, Kersting K, Mutzel P, Neumann M (2020). TUDataset: a collection of benchmark "
    "datasets for learning with graphs. ICML workshop Graph Representation Learning and Beyond."
)
ALWAYS = (
    Citation(
        "McMahan B, Moore E, Ramage D, Hampson S, Ag\u00fcera y Arcas B (2017). Communication-efficient learning of "
        "deep networks from decentralized data. AISTATS, PMLR 54, 1273\u20131282."
    ),
    Citation(
        "Nadeau C, Bengio Y (2003). Inference for the generalization error. Machine Learning 52, 239\u2013281.",
        "10.1023/A:1024068626366",
    ),
    Citation(
        "Abraham A et al. (2014). Machine learning for neuroimaging with scikit-learn (nilearn). Frontiers in "
        "Neuroinformatics 8, 14.",
        "10.3389/fninf.2014.00014",
    ),
    Citation(
        "M\u00f6lder F et al. (2021). Sustainable data analysis with Snakemake. F1000Research 10, 33.",
        "10.12688/f1000research.29032.2",
    ),
    Citation(
        "Satyanarayan A, Moritz D, Wongsuphasawat K, Heer J (2017). Vega-Lite: a grammar of interactive graphics. IEEE "
        "Transactions on Visualization and Computer Graphics 23, 341\u2013350.",
        "10.1109/TVCG.2016.2599030",
    ),
)


def citations(
    cohorts: Collection[str],
    atlases: Collection[str],
    sources: Collection[str] = (),
    of_methods: Sequence[Citation] = (),
    *,
    private: bool = False,
    audited: bool = False,
    poisoned: bool = False,
) -> list[Citation]:
    """The works to cite.

    Args:
        cohorts: their names.
        atlases: names of their parcellations.
        sources: `freesurfer`, `tudataset` and others.
        of_methods: works of the methods that were run (`papers.collected.works_of`).
        private: whether a method can train with differential privacy.
        audited: whether attacks on membership were run.
        poisoned: whether institutions were poisoned, or a server defends itself.
    """
    data = ABIDE if any(name.lower().startswith("abide") for name in cohorts) else ()
    named = {name.lower() for name in atlases}
    atlas = [work for name, work in ATLASES.items() if name in named]
    adni = (ADNI,) if any(name.lower().startswith("adni") for name in cohorts) else ()
    measures = (FREESURFER,) if "freesurfer" in sources else ()
    graphs = (TUDATASET,) if "tudataset" in sources else ()
    attacks = [*(ATTACKS if audited else ()), *(POISON if poisoned else ())]
    return [*data, *graphs, *adni, *atlas, *measures, *of_methods, *(PRIVACY if private else ()), *attacks, *ALWAYS]
