"""Each loss of FedNI against numbers worked out by hand (FedNI eq. 6, 8 to 12)."""

import math

import pytest
import torch

from brainfed.inpainting.fedni.losses import (
    Phenotype,
    count_loss,
    discriminator_loss,
    generator_loss,
    phenotype_loss,
)
from brainfed.inpainting.fedni.wide_layers import Upstream, WideLayers
from brainfed.models.generator import Generator
from brainfed.models.products import Products

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
