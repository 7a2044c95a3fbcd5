"""All methods by name: those that `methods/FAMILY/declaration.py` declare. A new method is named nowhere else."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from brainfed.methods._method import Method

ORDER = (
    "majority", "phenotype", "motion", "ridge", "svm", "logistic", "logistic-federated", "ridge-federated",
    "fedtangent", "localmlp", "centralmlp", "localgcn", "centralgcn", "fedmlp", "fedgcn", "fedsage-plus", "fedni",
    "fedni-centroids", "selftrain", "central-gin", "fedavg-gin", "gcfl",
    "stgcn-local", "stgcn-central", "gnn-local", "gnn-central", "fedavg-stgcn", "fedgnn", "fglbc",
    "recurrent-local", "recurrent-central", "recurrent-public", "fedgems", "fedet", "gahfl",
    "ridge-dp", "fedtangent-dp", "logistic-dp", "fedmlp-dp",
)  # fmt: skip
"""Order of the shipped methods in tables and in the manual; others follow, by family."""


def _declared() -> Iterator[Method]:
    """Every method of every family, as its declaration assigns it to a name."""
    for file in sorted(Path(__file__).parent.glob("*/declaration.py")):
        module = import_module(f"brainfed.methods.{file.parent.name}.declaration")
        yield from (value for value in vars(module).values() if isinstance(value, Method))


def _by_name() -> dict[str, Method]:
    """Name -> method.

    Raises:
        ValueError: two methods have one name, or two shipped variants.
    """
    methods: dict[str, Method] = {}
    owners: dict[str, str] = {}
    for method in _declared():
        if methods.setdefault(method.name, method) is not method:
            raise ValueError(f"{method.name}: expected one method of this name, found two; rename one")
        for variant in method.variants:
            if owners.setdefault(variant, method.name) != method.name:
                raise ValueError(
                    f"{variant}: expected one shipped variant of this name, found those of {owners[variant]} and "
                    f"{method.name}; rename one"
                )
    return methods


_BY_NAME = _by_name()
METHODS: Mapping[str, Method] = MappingProxyType({name: _BY_NAME[name] for name in ORDER} | _BY_NAME)

ON_REQUEST = frozenset(name for method in METHODS.values() for name in method.on_request)
"""Shipped variants that an experiment has only if it names them."""

SHIPPED_VARIANTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        variant: {"method": method.name, **settings}
        for method in METHODS.values()
        for variant, settings in method.variants.items()
    }
)
