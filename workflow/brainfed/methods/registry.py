"""All methods by name. A new method is one light file here, one training file, one line below."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from brainfed.methods import (
    centralgcn,
    centralmlp,
    fedgcn,
    fedmlp,
    fedni,
    fedni_centroids,
    fedsage_plus,
    localgcn,
    localmlp,
    logistic,
    logistic_federated,
    majority,
    motion,
    phenotype,
    ridge,
    svm,
)
from brainfed.methods.method import Method

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        module.METHOD.name: module.METHOD
        for module in (
            majority,
            phenotype,
            motion,
            ridge,
            svm,
            logistic,
            logistic_federated,
            localmlp,
            centralmlp,
            localgcn,
            centralgcn,
            fedmlp,
            fedgcn,
            fedsage_plus,
            fedni,
            fedni_centroids,
        )
    }
)

SHIPPED_VARIANTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        variant: {"method": method.name, **settings}
        for method in METHODS.values()
        for variant, settings in method.variants.items()
    }
)
