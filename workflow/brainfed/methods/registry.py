"""All methods by name. A new method is one light file here, one training file, one line below."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from brainfed.methods.baselines import majority, motion, phenotype
from brainfed.methods.fedni import fedni, fedni_centroids
from brainfed.methods.fedsage import fedsage_plus
from brainfed.methods.fedtangent import fedtangent, ridge_federated
from brainfed.methods.fglbc import fedavg_stgcn, fedgnn, fglbc, gnn_central, gnn_local, stgcn_central, stgcn_local
from brainfed.methods.gahfl import fedet, fedgems, gahfl, recurrent_central, recurrent_local, recurrent_public
from brainfed.methods.gcfl import central_gin, fedavg_gin, gcfl, selftrain
from brainfed.methods.gcn import centralgcn, fedgcn, localgcn
from brainfed.methods.linear import logistic, ridge, svm
from brainfed.methods.logistic_federated import logistic_federated
from brainfed.methods.method import Method
from brainfed.methods.mlp import centralmlp, fedmlp, localmlp
from brainfed.methods.private_linear import fedmlp_dp, fedtangent_dp, logistic_dp, ridge_dp

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
            ridge_federated,
            fedtangent,
            localmlp,
            centralmlp,
            localgcn,
            centralgcn,
            fedmlp,
            fedgcn,
            fedsage_plus,
            fedni,
            fedni_centroids,
            selftrain,
            central_gin,
            fedavg_gin,
            gcfl,
            stgcn_local,
            stgcn_central,
            gnn_local,
            gnn_central,
            fedavg_stgcn,
            fedgnn,
            fglbc,
            recurrent_local,
            recurrent_central,
            recurrent_public,
            fedgems,
            fedet,
            gahfl,
            ridge_dp,
            fedtangent_dp,
            logistic_dp,
            fedmlp_dp,
        )
    }
)

ON_REQUEST = frozenset(name for method in METHODS.values() for name in method.on_request)
"""Shipped variants that an experiment has only if it names them."""

SHIPPED_VARIANTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        variant: {"method": method.name, **settings}
        for method in METHODS.values()
        for variant, settings in method.variants.items()
    }
)
