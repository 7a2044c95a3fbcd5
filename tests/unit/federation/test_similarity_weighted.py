"""Similarity-weighted aggregation: numbers by hand, the plain version, and what it leaves alone."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.federation import Message
from brainfed.federation.strategies import FedAvg, SimilarityWeighted, average
from brainfed.federation.strategies._similarity_weighted import similarities, similarity_weights
from brainfed.runtime import UserError
from reference.similarity_weighted import aggregate

SHAPES = {"weight": (2, 2), "bias": (1,)}


def server_of(institutions, start, tau=10.0, components=None, **options):
    """A server whose model is one tensor `weight` (F, P)."""
    return SimilarityWeighted(
        tuple(range(institutions)), {"weight": torch.as_tensor(start).double()}, tau, components, **options
    )


def replies_of(weights, samples=None):
    """Replies from weights (M, F, P) and numbers of training samples (M, F)."""
    weights = torch.as_tensor(np.array(weights)).double()
    samples = torch.ones(weights.shape[:2], dtype=torch.int64) if samples is None else torch.as_tensor(samples)
    return {place: Message({"weight": own}, samples[place]) for place, own in enumerate(weights)}


def after(*rounds, **options):
    """The server after rounds of weights (M, P) of one fold, from a model of zeros."""
    server = server_of(len(rounds[0]), np.zeros((1, len(rounds[0][0]))), **options)
    for number, weights in enumerate(rounds):
        server.aggregate(number, replies_of([[own] for own in weights]))
    return server


def test_the_first_round_is_the_plain_mean():
    server = after([[1.0, 0.0], [3.0, 4.0]])
    assert server.shares.tolist() == [[[0.5, 0.5]]]
    assert server.tensors["weight"].tolist() == [[2.0, 2.0]]


def test_later_rounds_weigh_by_the_cosine_with_the_last_global_update():
    """The model goes from (0, 0) to (2, 0); updates (3, 0), (1, 1), (0, 5), (-1, 0) have cosines 1, .7071, 0, 0."""
    server = after([[2.0, 0.0]] * 4, [[5.0, 0.0], [3.0, 1.0], [2.0, 5.0], [1.0, 0.0]], tau=2.0)
    powers = np.exp(2.0 * np.array([1.0, 0.5**0.5, 0.0, 0.0]))
    alpha = powers / powers.sum()
    np.testing.assert_allclose(server.shares[1, 0], alpha, rtol=1e-12)
    expected = alpha @ np.array([[5.0, 0.0], [3.0, 1.0], [2.0, 5.0], [1.0, 0.0]])
    np.testing.assert_allclose(server.tensors["weight"][0], expected, rtol=1e-12)


def test_one_component_sees_the_common_direction_alone():
    """Updates (3, 1), (3, -1), (1, 0) of the server: the first component is (1, 0), on which all agree."""
    rounds = [[1.0, 0.0]] * 2, [[4.0, 1.0], [4.0, -1.0]]
    np.testing.assert_allclose(similarities(gram([[3, 1], [3, -1], [1, 0]]), 1), [1.0, 1.0], rtol=1e-12)
    np.testing.assert_allclose(similarities(gram([[3, 1], [3, -1], [1, 0]])), [0.9**0.5] * 2, rtol=1e-12)
    np.testing.assert_allclose(after(*rounds, components=1).shares[1, 0], [0.5, 0.5], rtol=1e-12)


def test_what_the_components_do_not_see_is_not_similar():
    """(0, 2) has no score on the first component, (1, 0); zeros have none on any."""
    vectors = [[9, 0], [0, 2], [0, 0], [4, 0]]
    np.testing.assert_allclose(similarities(gram(vectors), 1), [1.0, 0.0, 0.0], atol=1e-12)
    still = [[9, 1], [1, 2], [0, 0], [0, 0]]
    for components in (None, 1, 2, 4):
        assert similarities(gram(still), components).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="at least one component, found components=0"):
        server_of(2, [[0.0]], components=0)


def gram(vectors):
    return np.array(vectors, dtype=np.float64) @ np.array(vectors, dtype=np.float64).T


def test_all_components_have_the_cosines_of_the_updates_themselves():
    products = gram(np.random.default_rng(0).standard_normal((6, 40)))
    np.testing.assert_allclose(similarities(products, 6), similarities(products), rtol=1e-9, atol=1e-12)
    assert not np.allclose(similarities(products, 2), similarities(products), atol=1e-2)


def test_the_literal_formula_centres_and_adds_the_weights_to_the_model():
    """Model (0, 0), weights (-1, 1), (4, 2): centred by (1, 1) they are (-2, 0), (3, 1), and the model (-1, -1)."""
    server = after([[-1.0, 1.0], [4.0, 2.0]], tau=3.0, literal=True)
    powers = np.exp(3.0 * np.array([0.5**0.5, 0.0]))
    alpha = powers / powers.sum()
    np.testing.assert_allclose(server.shares[0, 0], alpha, rtol=1e-12)
    np.testing.assert_allclose(server.tensors["weight"][0], alpha @ [[-1, 1], [4, 2]], rtol=1e-12)


def test_literally_the_weights_of_institutions_that_agree_double_in_every_round():
    server, weights = server_of(3, [[1.0, -2.0]], literal=True), np.array([[1.0, -2.0]])
    for number in range(4):
        server.aggregate(number, replies_of([weights] * 3))
        weights = server.tensors["weight"].numpy().copy()
    assert weights.tolist() == [[16.0, -32.0]]


@settings(max_examples=60, deadline=None)
@given(
    institutions=st.integers(1, 6),
    folds=st.integers(1, 3),
    tau=st.floats(0, 30),
    components=st.sampled_from([None, 1, 2, 9]),
    literal=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_it_is_the_formula(institutions, folds, tau, components, literal, seed):
    rng = np.random.default_rng(seed)
    start = rng.standard_normal((folds, 5))
    tensors = {"weight": torch.from_numpy(start[:, :4]).reshape(folds, 2, 2), "bias": torch.from_numpy(start[:, 4:])}
    server = SimilarityWeighted(tuple(range(institutions)), tensors, tau, components, literal=literal)
    sent = previous = start
    for number in range(3):
        weights = sent + rng.standard_normal((institutions, folds, 5))
        samples = rng.integers(0, 3, (institutions, folds))
        parts = {
            place: Message(
                {"weight": torch.from_numpy(own[:, :4]).reshape(folds, 2, 2), "bias": torch.from_numpy(own[:, 4:])},
                torch.from_numpy(samples[place]),
            )
            for place, own in enumerate(weights)
        }
        server.aggregate(number, parts)
        new = sent.copy()
        for fold in range(folds):
            present = samples[:, fold] > 0
            expected = np.zeros(institutions)
            if present.any():
                chosen = list(weights[present, fold])
                new[fold], expected[present] = aggregate(
                    chosen, sent[fold], previous[fold], tau, components, literal=literal
                )
            np.testing.assert_allclose(server.shares[number, fold], expected, rtol=1e-6, atol=1e-9)
        sent, previous = new, sent
        found = torch.cat([server.tensors["weight"].flatten(1), server.tensors["bias"]], dim=1).numpy()
        np.testing.assert_allclose(found, sent, rtol=1e-6, atol=1e-7)
        sums = server.shares[number].sum(axis=1)
        np.testing.assert_allclose(sums, (samples > 0).any(axis=0), rtol=1e-12)
        sent = found


def test_without_tau_it_is_federated_averaging():
    rng = np.random.default_rng(1)
    server, averaged = server_of(4, np.zeros((2, 3)), tau=0.0), FedAvg(tuple(range(4)), {"weight": torch.zeros(2, 3)})
    for number in range(3):
        replies = replies_of(rng.standard_normal((4, 2, 3)), [[1, 0], [5, 2], [3, 3], [0, 1]])
        server.aggregate(number, replies)
        averaged.aggregate(number, replies)
        torch.testing.assert_close(server.tensors["weight"], averaged.tensors["weight"].double())


def test_an_institution_without_samples_in_a_fold_weighs_nothing_there():
    server = server_of(3, np.zeros((3, 1)))
    server.aggregate(0, replies_of([[[1.0]] * 3, [[9.0]] * 3, [[5.0]] * 3], [[1, 2, 0], [0, 3, 0], [2, 1, 0]]))
    np.testing.assert_allclose(server.shares[0], [[0.5, 0, 0.5], [1 / 3] * 3, [0, 0, 0]])
    np.testing.assert_allclose(server.tensors["weight"], [[3.0], [5.0], [0.0]])


def test_folds_know_nothing_of_each_other():
    rng = np.random.default_rng(2)
    rounds = rng.standard_normal((3, 4, 2, 5))
    both, alone = server_of(4, np.zeros((2, 5))), server_of(4, np.zeros((1, 5)))
    for number, weights in enumerate(rounds):
        both.aggregate(number, replies_of(weights))
        alone.aggregate(number, replies_of(weights[:, 1:]))
    np.testing.assert_allclose(both.shares[:, 1:], alone.shares)
    torch.testing.assert_close(both.tensors["weight"][1:], alone.tensors["weight"])


def test_the_order_of_institutions_and_a_rotation_of_the_weights_change_no_share():
    rng = np.random.default_rng(3)
    rounds, order = rng.standard_normal((4, 5, 6)), np.array([3, 0, 4, 1, 2])
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    expected = after(*rounds).shares
    assert expected.max() > 0.3
    np.testing.assert_allclose(after(*rounds[:, order]).shares, expected[:, :, order])
    np.testing.assert_allclose(after(*(rounds @ rotation)).shares, expected)
    np.testing.assert_allclose(after(*(7 * rounds)).shares, expected)


def test_those_that_are_not_drawn_weigh_nothing():
    server = server_of(4, np.zeros((1, 1)), selection=lambda number: (number, 3))
    every = replies_of([[[1.0]], [[2.0]], [[4.0]], [[8.0]]])
    for number in range(3):
        assert server.choose(number) == (number, 3)
        server.aggregate(number, {place: every[place] for place in server.choose(number)})
    assert (server.shares > 0).tolist() == [[[place in (number, 3) for place in range(4)]] for number in range(3)]


def test_it_sends_one_model_to_all_and_nothing_before_the_first_round():
    server = server_of(2, np.ones((1, 2)))
    assert server.broadcast(0) == {}
    server.aggregate(0, replies_of([[[1.0, 2.0]], [[3.0, 4.0]]]))
    messages = server.broadcast(1)
    assert set(messages) == {0, 1}
    assert all(message.tensors["weight"].tolist() == [[2.0, 3.0]] for message in messages.values())


def test_a_resumed_server_goes_on_as_if_nothing_had_happened():
    rounds = np.random.default_rng(4).standard_normal((5, 3, 2, 4))
    whole = server_of(3, np.zeros((2, 4)))
    for number, weights in enumerate(rounds):
        whole.aggregate(number, replies_of(weights))
        if number == 2:
            state = {name: array.copy() for name, array in whole.state().items()}
    resumed = server_of(3, np.zeros((2, 4)))
    resumed.load(state)
    for number in (3, 4):
        resumed.aggregate(number, replies_of(rounds[number]))
    assert np.array_equal(resumed.shares, whole.shares)
    assert torch.equal(resumed.tensors["weight"], whole.tensors["weight"])
    assert np.array_equal(server_of(3, np.zeros((2, 4))).shares, np.empty((0, 2, 3)))


def test_the_replies_are_copied_before_the_next_round_overwrites_them():
    server, weights = server_of(1, np.zeros((1, 2))), torch.ones(1, 1, 2, dtype=torch.float64)
    server.aggregate(0, {0: Message({"weight": weights[0]})})
    weights.fill_(9.0)
    assert server.tensors["weight"].tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize(("literal", "remedy"), [(False, "lower learning_rate"), (True, "weights do not double")])
def test_weights_that_are_not_finite_name_their_institution(literal, remedy):
    server = server_of(3, np.zeros((2, 2)), literal=literal)
    weights = np.zeros((3, 2, 2))
    weights[2, 1, 0] = np.inf
    with pytest.raises(UserError, match=rf"institution 2 \(fold 1, round 6\): expected finite weights.*{remedy}"):
        server.aggregate(5, replies_of(weights))


def test_weights_are_a_softmax():
    np.testing.assert_allclose(similarity_weights(np.array([1.0, 0.0]), np.log(3)), [0.75, 0.25])
    np.testing.assert_allclose(similarity_weights(np.array([1.0, 0.0]), 1e6), [1.0, 0.0])


def test_the_mean_of_the_replies_is_the_servers():
    """Sum_j alpha_j w_j with the shares that it reports."""
    rounds = np.random.default_rng(5).standard_normal((2, 3, 1, 4))
    server = server_of(3, np.zeros((1, 4)))
    for number, weights in enumerate(rounds):
        server.aggregate(number, replies_of(weights))
    replies = [{"weight": torch.from_numpy(own)} for own in rounds[1]]
    expected = average(replies, torch.from_numpy(server.shares[1].T.copy()))["weight"]
    torch.testing.assert_close(server.tensors["weight"], expected)
