"""Losses of FedNI by hand, the blockwise epoch against plain autograd, and what its settings mean (eq. 6 to 12)."""

import math
from copy import deepcopy

import numpy as np
import pytest
import torch

from brainfed.inpainting import InpaintingSettings
from brainfed.inpainting.fedni._adversarial_step import new_generator, paired, train_step
from brainfed.inpainting.fedni._losses import (
    Phenotype,
    Upstream,
    WideLayers,
    count_loss,
    discriminator_loss,
    generator_loss,
    phenotype_loss,
)
from brainfed.inpainting.fedni._masking import institution_of
from brainfed.models import Discriminator, Generator, Products
from reference.inpainting_step import plain_gradients
from support.samples.inpainting_inputs import inpainting_inputs, mask_of_epoch

LN2 = math.log(2)

LN3 = math.log(3)


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_count_loss_is_the_squared_error_of_the_share_of_k():
    # shares 0.5, 0, 1 against 2/4, 1/4 and min(6, 4)/4
    loss = count_loss(numbers(0.5, 0.0, 1.0), numbers(2, 1, 6), k=4)
    assert float(loss) == pytest.approx((0 + 0.25**2 + 0) / 3)


@torch.no_grad()
def test_reconstruction_loss_is_the_squared_error_a_feature_and_its_weight_reaches_the_gradient():
    generated = torch.tensor([[0.5, -0.5], [0.1, 0.4]], dtype=torch.float64)
    features = torch.tensor([[0.0, 0.4], [0.5, 0.5]], dtype=torch.float64)
    generator, wide = Generator(2, sex=False, age=False).double(), WideLayers(Products())
    generator.feature_2.weight.fill_(0)
    source = torch.zeros(2, 256, dtype=torch.float64)
    # the nodes 1 and 0 are the targets: errors 0, -1, 0.1, 0
    upstream = Upstream(torch.tensor([1, 0]), 3.0, None, None)
    found = wide.by_features(generator, generated, features, None, upstream)
    wide.backward(generator, source, generated, upstream, found, torch.ones(3))
    assert float(found.reconstruction) == pytest.approx((0 + 1 + 0.01 + 0) / 4)
    # 3 * 2 * error / 4 through the slope of tanh, 1 - generated^2, summed over the pairs
    expected = [1.5 * 0.1 * (1 - 0.1**2), 1.5 * -1 * (1 - 0.5**2)]
    assert generator.feature_2.bias.grad.tolist() == pytest.approx(expected)


def test_generator_loss_is_minus_the_log_probability_of_being_real():
    # sigmoid(0) = 1/2 and sigmoid(ln 3) = 3/4
    assert float(generator_loss(numbers(0, LN3))) == pytest.approx((LN2 + math.log(4 / 3)) / 2)


def test_discriminator_loss_is_cross_entropy_with_real_1_and_generated_0():
    # real: -log 3/4; generated: -log(1 - 1/2) and -log(1 - 3/4), their mean
    loss = discriminator_loss(numbers(LN3), numbers(0, LN3))
    assert float(loss) == pytest.approx(math.log(4 / 3) + (LN2 + math.log(4)) / 2)


def test_phenotype_loss_is_cross_entropy_of_sex_plus_squared_error_of_age():
    outputs = torch.tensor([[0.0, 0.0, 0.5], [LN3, 0.0, -1.0]], dtype=torch.float64)
    true = Phenotype(torch.tensor([1, 1]), numbers(0.0, 1.0))
    # sex: 1/2 and 1/4 for the right class; age: 0.25 and 4
    expected = (LN2 + math.log(4)) / 2 + (0.25 + 4) / 2
    assert float(phenotype_loss(outputs, true, sex=True, age=True)) == pytest.approx(expected)


def test_an_unknown_phenotype_counts_in_no_loss():
    outputs = torch.tensor([[0.0, 0.0, 0.5], [LN3, 0.0, -1.0]], dtype=torch.float64)
    true = Phenotype(torch.tensor([1, -1]), numbers(math.nan, 1.0))
    assert float(phenotype_loss(outputs, true, sex=True, age=True)) == pytest.approx(LN2 + 4)
    unknown = Phenotype(torch.tensor([-1, -1]), numbers(math.nan, math.nan))
    assert float(phenotype_loss(outputs, unknown, sex=True, age=True)) == 0


def test_the_head_may_predict_sex_or_age_alone():
    true = Phenotype(torch.tensor([0]), numbers(2.0))
    assert float(phenotype_loss(numbers(LN3, 0.0)[None], true, sex=True, age=False)) == pytest.approx(math.log(4 / 3))
    assert float(phenotype_loss(numbers(0.5)[None], true, sex=False, age=True)) == pytest.approx(2.25)


DOUBLE = (torch.device("cpu"), torch.float64)


def pieces(settings, phenotypes=("sex", "age"), number=0):
    inputs = inpainting_inputs(phenotypes=phenotypes)
    institution = institution_of(inputs, number, *DOUBLE)
    masked = mask_of_epoch(institution, 0, "all", inputs.streams, settings)
    generator = new_generator(inputs, settings).double()
    torch.manual_seed(1)
    return institution.nodes, masked, generator, Discriminator(40).double()


def gradients(module):
    return {name: parameter.grad.clone() for name, parameter in module.named_parameters()}


@pytest.mark.parametrize(("block", "reconstruction"), [(7, "balanced"), (40, "sum"), (1000, "mean")])
@pytest.mark.parametrize("phenotypes", [("sex", "age"), ("sex",), ("age",), ()])
@pytest.mark.parametrize("with_discriminator", [True, False])
@pytest.mark.parametrize("count", ["calibrated", "printed"])
def test_losses_and_gradients_equal_plain_autograd(block, phenotypes, with_discriminator, reconstruction, count):
    settings = InpaintingSettings(alpha=0.7, beta=1.3, reconstruction=reconstruction, count=count)
    nodes, masked, generator, discriminator = pieces(settings, phenotypes)
    discriminator = discriminator if with_discriminator else None
    copies = deepcopy(generator), deepcopy(discriminator)
    wide = WideLayers(Products(), block, block)
    for _ in range(2):  # the second time gradient buffers hold the first's numbers
        generator.zero_grad(set_to_none=False)
        if discriminator is not None:
            discriminator.zero_grad()
        losses = train_step(generator, discriminator, nodes, masked, settings, 4, wide)
        expected = plain_gradients(*copies, nodes, masked, settings, 4)
        assert losses == pytest.approx(expected, rel=1e-10)
        for own, copy in zip((generator, discriminator), copies, strict=True):
            if own is not None:
                for (name, gradient), other in zip(gradients(own).items(), gradients(copy).values(), strict=True):
                    np.testing.assert_allclose(gradient, other, rtol=1e-8, atol=1e-14, err_msg=name)


def test_the_discriminators_gradient_does_not_depend_on_alpha_and_beta():
    found = []
    for alpha, beta in ((1, 1), (0, 5)):
        settings = InpaintingSettings(alpha=alpha, beta=beta)
        nodes, masked, generator, discriminator = pieces(settings)
        train_step(generator, discriminator, nodes, masked, settings, 4, WideLayers(Products()))
        found.append(gradients(discriminator))
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_beta_0_trains_the_generator_as_without_a_discriminator():
    settings = InpaintingSettings(beta=0)
    nodes, masked, generator, discriminator = pieces(settings)
    alone = deepcopy(generator)
    train_step(generator, discriminator, nodes, masked, settings, 4, WideLayers(Products()))
    train_step(alone, None, nodes, masked, settings, 4, WideLayers(Products()))
    for (name, gradient), other in zip(gradients(generator).items(), gradients(alone).values(), strict=True):
        np.testing.assert_allclose(gradient, other, rtol=1e-10, atol=1e-15, err_msg=name)


def test_hungarian_pairing_takes_the_smallest_total_error_of_each_node():
    nodes, masked, _, _ = pieces(InpaintingSettings())
    fake = torch.randn(len(masked.target), 40, dtype=torch.float64)
    target = paired(fake, nodes.features, masked)
    several = 0
    for parent in masked.parent.unique():
        own = masked.parent == parent
        assert sorted(target[own].tolist()) == sorted(masked.target[own].tolist())
        error = ((fake[own] - nodes.features[target[own]]) ** 2).sum()
        plain = ((fake[own] - nodes.features[masked.target[own]]) ** 2).sum()
        assert error <= plain + 1e-12
        several += int(own.sum() > 1)
    assert several > 0
    swapped = nodes.features[masked.target].clone()
    first = int(np.flatnonzero(np.diff(masked.parent.numpy()) == 0)[0])
    swapped[[first, first + 1]] = swapped[[first + 1, first]]
    assert not torch.equal(paired(swapped, nodes.features, masked), masked.target)


def test_bfloat16_products_come_near_those_of_float32():
    settings = InpaintingSettings()
    found = []
    for precision in ("float32", "bfloat16"):
        inputs = inpainting_inputs()
        institution = institution_of(inputs, 0, torch.device("cpu"), torch.float32)
        masked = mask_of_epoch(institution, 0, "all", inputs.streams, settings)
        generator = new_generator(inputs, settings)
        torch.manual_seed(1)
        losses = train_step(generator, Discriminator(40), institution.nodes, masked, settings, 4,
                            WideLayers(Products(precision)))  # fmt: skip
        found.append(({name: float(loss) for name, loss in losses.items()}, gradients(generator)))
    assert found[0][0] != found[1][0]
    assert found[1][0] == pytest.approx(found[0][0], rel=0.02)
    exact, rough = (found[index][1]["feature_2.weight"].flatten() for index in (0, 1))
    assert float(torch.nn.functional.cosine_similarity(exact, rough, dim=0)) > 0.99


def test_operations_are_counted_as_the_shapes_say():
    settings = InpaintingSettings()
    nodes, masked, generator, discriminator = pieces(settings)
    wide = WideLayers(Products(), block=7)
    train_step(generator, discriminator, nodes, masked, settings, 4, wide)
    n, p, h, d = len(nodes.features), len(masked.target), len(masked.hidden), 40
    encoder = 2 * 256 * n
    features = 3 * 256 * p
    phenotype = 3 * 32 * p
    product = 3 * 128 * p + 2 * 128 * h
    assert wide.products.operations == 2 * d * (encoder + features + phenotype + product)
