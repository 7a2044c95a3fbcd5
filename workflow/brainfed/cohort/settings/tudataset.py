"""Settings of a cohort of public graphs (source: tudataset)."""

from dataclasses import dataclass

from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class TUDatasetSettings:
    """Data sets in the text format of the TU Dortmund collection (Morris et al. 2020)."""

    folder: str = setting(
        "resources/tudataset", "Folder with a folder a data set; `snakemake fetch_tudatasets` downloads into it."
    )
    names: tuple[str, ...] = setting(
        (),
        "Names of the data sets, such as PROTEINS. Each is a site: with `institutions: sites` every one is an "
        "institution, with node features and classes of its own.",
    )

    def __post_init__(self) -> None:
        """Refuse a data set that is named twice, or whose name is no name of a folder."""
        for name in self.names:
            if self.names.count(name) > 1:
                raise ValueError(f"tudataset.names: expected every data set once, found {name!r} twice; remove one")
            if not name or "/" in name or name != name.strip() or name.startswith("."):
                raise ValueError(f"tudataset.names: expected the name of a data set, found {name!r}; fix it")
