"""The networks of FedNI Tables II and III."""

import numpy as np
import pytest
import torch
from torch.nn.utils.parametrize import is_parametrized

from brainfed.models import WIDE, Discriminator, Generator

BASC_122 = 122 * 121 // 2


def sizes(module):
    return {name: tuple(weight.shape) for name, weight in module.named_parameters()}


def test_the_generator_has_the_layers_of_table_ii():
    held = sizes(Generator(BASC_122))
    weights = {name.removesuffix(".weight"): shape[::-1] for name, shape in held.items() if len(shape) == 2}
    assert weights == {
        "encoder_0": (7381, 256),
        "encoder_1": (256, 64),
        "count": (65, 1),
        "feature_0": (68, 128),
        "feature_1": (128, 256),
        "feature_2": (256, 7381),
        "phenotype_0": (7381, 32),
        "phenotype_1": (32, 3),
    }
    assert held["normal_0.weight"] == (128,) and held["normal_1.weight"] == (256,)


def test_the_discriminator_has_the_layers_of_table_iii_all_spectrally_normalised():
    discriminator = Discriminator(BASC_122)
    layers = [discriminator.judge_0, discriminator.judge_1, discriminator.judge_2]
    assert [tuple(layer.weight.shape)[::-1] for layer in layers] == [(7381, 128), (128, 32), (32, 1)]
    assert all(is_parametrized(layer, "weight") for layer in layers)


def test_parameters_at_the_papers_size_are_those_of_its_tables_not_of_table_vi():
    generator = sum(weight.numel() for weight in Generator(BASC_122).parameters())
    discriminator = sum(weight.numel() for weight in Discriminator(BASC_122).parameters())
    assert round(generator / 1e6, 2) == 4.08
    assert round((generator + discriminator) / 1e6, 2) == 5.03


def test_the_wide_tensors_are_those_with_an_axis_of_d():
    held = sizes(Generator(501))
    assert {name for name, shape in held.items() if 501 in shape} == set(WIDE)


@pytest.mark.parametrize(("sex", "age", "outputs"), [(True, True, 3), (True, False, 2), (False, True, 1)])
def test_the_phenotype_head_has_an_output_for_each_compared_phenotype(sex, age, outputs):
    generator = Generator(11, sex=sex, age=age)
    assert generator.phenotypes(torch.zeros(4, 11)).shape == (4, outputs)


def test_without_phenotypes_there_is_no_phenotype_head():
    generator = Generator(11, sex=False, age=False)
    assert not generator.predicts_phenotypes and not hasattr(generator, "phenotype_0")


def test_encoding_is_two_graph_convolutions_with_elu():
    generator = Generator(5).double()
    rng = np.random.default_rng(0)
    features, propagation = torch.from_numpy(rng.standard_normal((4, 5))), torch.from_numpy(rng.random((4, 4)))

    def convolve(rows, layer):
        product = propagation.numpy() @ rows @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
        return np.where(product > 0, product, np.expm1(product))

    expected = convolve(convolve(features.numpy(), generator.encoder_0), generator.encoder_1)
    encoded = generator.encode(features, propagation).detach().numpy()
    # Sums that cancel keep the rounding of their terms.
    np.testing.assert_allclose(encoded, expected, rtol=1e-12, atol=1e-14)


def test_before_training_every_subject_misses_the_share_that_a_mask_hides():
    printed = Generator(30, hidden=0.2, sees_degree=False)
    assert printed.count.in_features == 64
    torch.testing.assert_close(printed.missing(torch.randn(8, 64), torch.arange(8.0)), torch.full((8,), 0.2))
    # of ten neighbours, a hidden fifth: one for every four visible ones and one more
    share = Generator(30, hidden=0.2, k=1000, proportional=True).missing(torch.randn(8, 64), torch.arange(8.0))
    torch.testing.assert_close(share, (1 + torch.arange(8.0)) / 4 / 1000, rtol=0.01, atol=0)


def test_the_count_does_not_train_the_encoder_unless_as_printed():
    for sees_degree in (True, False):
        generator = Generator(30, sees_degree=sees_degree)
        torch.nn.init.normal_(generator.count.weight)
        generator.missing(generator.encode(torch.randn(8, 30), torch.eye(8)), torch.ones(8)).sum().backward()
        assert (generator.encoder_0.weight.grad is None) is sees_degree


def test_generated_features_lie_inside_the_bounds_of_a_correlation():
    generator = Generator(30).eval()
    made = generator.generate(100 * torch.randn(8, 64), torch.randn(8, 4))
    assert made.shape == (8, 30) and bool((made.abs() <= 1).all())


def test_the_first_weight_in_parts_equals_torchs_spectral_norm():
    torch.manual_seed(0)
    discriminator = Discriminator(50).double()
    copy = Discriminator(50).double()
    copy.load_state_dict(discriminator.state_dict())
    for _ in range(3):
        parts, whole = discriminator.first_weight(), copy.judge_0.weight
        np.testing.assert_allclose(parts.original.detach() / parts.sigma, whole.detach(), rtol=1e-12)
    assert torch.equal(discriminator.state_dict()["judge_0.parametrizations.weight.0._u"],
                       copy.state_dict()["judge_0.parametrizations.weight.0._u"])  # fmt: skip
