"""Text of `config/README.md` around the tables of keys."""

EXTENDS = (
    "Another config (a path from the working directory) that this one is laid over, key by key, or a list of them, "
    "each laid over the one before; lists are replaced, and null takes away a cohort, a variant or an experiment."
)

PREAMBLE = """\
<!-- `python -m brainfed.configuration.manual` writes this page from the settings dataclasses: edit these. -->

# Every key of a config

A config is a YAML file: `snakemake --cores all --configfile config/abide.yaml` runs this one, and without the option
Snakemake reads `config/config.yaml`, a simulated cohort. An unknown key, a value of the wrong type or a name that does
not exist stops the run before any job starts, and the message names the nearest valid one. NAME stands for a name of
your choice, of letters, digits, `-`, `_` and `.`. A config of your own may be as short as

```yaml
project: my-study
cohorts:
  my-cohort:
    source: nifti
    phenotype: resources/participants.tsv
    series: resources/{subject}_bold.nii.gz
    parcellation: resources/atlas.nii.gz
    labels: resources/atlas.tsv
```

or a few lines laid over another one:

```yaml
extends: config/abide.yaml
project: abide-k5
graph: {k: 5}
```
"""

VARIANTS = """\
## variants.NAME

One row of a table. `method` names one of the [methods](#methods); the method's settings stand beside it.

| key | type | default | meaning |
|---|---|---|---|
| `method` | name of a [method](#methods) | required | What is trained. |
STAGES
| ... | keys of the method | the method's | Settings of the method. |

A list where one value belongs is a sweep: `width: {method: fedgcn, graph: {k: [5, 10]}}` becomes the variants
`width-k5` and `width-k10`; an experiment may name `width` for both. Every method comes with variants of its own,
which need no entry here and may be redefined by one of the same name. The graph's `scope` is the one that the method
needs (CentralGCN: `global`; the others: `global_cut`, or `local` where `graph` says so) unless the variant sets it.
"""

EXPERIMENTS = """\
Each is a target: `snakemake --cores all NAME` computes it and writes `results/reports/{project}-NAME.html`,
`NAME-quick` the same with one repeat, `paper` and `paper-quick` all that have `default: false`. `config/paper.yaml`
holds the tables and figures of FedNI.

"""

METHODS_LEAD = """\
An entry of a method lists the keys that it alone has. Keys that several methods share are listed once, in tables whose
headings begin with `shared`, and the entry links to them. A key may be in several of these places: the method's own
table has precedence, then the last of the links. Variants on request are trained only in experiments that name them. A
method without variants in its entry has one, of its own name and with the defaults.
"""

FAMILIES = {
    "baseline": "Baselines",
    "linear": "Linear models, alone and pooled",
    "graph": "Networks, alone and pooled",
    "federated": "Federated",
}
"""Family of a method -> its name in the index."""

GROUPS = {
    "FederationSettings": "rounds",
    "EpochSettings": "epochs",
    "InputSettings": "scaling",
    "FedGCNSettings": "skip",
    "GINSettings": "GIN",
    "SoloGINSettings": "GIN epochs",
    "FederatedGINSettings": "GIN rounds",
    "SeriesNetworkSettings": "windows",
    "STGCNSettings": "ST-GCN",
    "RegionGNNSettings": "region GNN",
    "SoloSubjectSettings": "window epochs",
    "FederatedSubjectSettings": "window rounds",
    "PrivateSchedule": "private rounds",
    "PrivateRowSettings": "private rows",
    "CropSettings": "crops",
    "StepSettings": "crop rounds",
    "AssignmentSettings": "network kinds",
    "OneRecurrentSettings": "single network",
    "DistilledSettings": "distillation",
}
"""Settings dataclass -> title of its keys, where the words of its name are none."""
