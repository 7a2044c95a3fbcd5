"""The server's objectives from their formulas: one fold, sample, model and node after the other.

A graph has the right models and the global one as its nodes and no others; each fold has a network and an optimiser
of its own. Gradients are torch's.
"""

import torch


def softmax(logits):
    """Probabilities of one sample's logits."""
    largest = max(value.item() for value in logits)
    powers = [torch.exp(value - largest) for value in logits]
    return [power / sum(powers) for power in powers]


def cross_entropy(logits, label):
    """-log of the labelled class' probability."""
    return -torch.log(softmax(logits)[label])


def kl(teacher, student):
    """KL(teacher || student) of two models' logits."""
    pairs = zip(softmax(teacher.detach()), softmax(student), strict=True)
    return sum(known * torch.log(known / found) for known, found in pairs)


def entropy(logits):
    """Entropy of one sample's probabilities."""
    return -sum(share * torch.log(share) for share in softmax(logits))


def predicts(logits, label):
    """Whether the largest logit is the label's."""
    return int(logits.argmax()) == int(label)


def samples_of(batch, fold):
    """Positions of the fold's samples without padding."""
    return [place for place in range(batch.labels.shape[1]) if batch.weight[fold, place] > 0]


def present_teachers(batch, fold, place):
    """Logits of one sample by the models of the institutions that took part."""
    return [batch.teachers[k, fold, place] for k in range(len(batch.teachers)) if batch.present[k, fold]]


def right_teachers(batch, fold, place):
    """Those that predict the label."""
    return [one for one in present_teachers(batch, fold, place) if predicts(one, batch.labels[fold, place])]


class Pool:
    """Logits by (fold, row), and the two readings of when a sample is right and for how long it counts."""

    def __init__(self, momentum, when="step", lifetime="training"):
        self.momentum, self.when, self.lifetime, self.kept = momentum, when, lifetime, {}
        self.right_as_the_round_began, self.visits, self.taught = {}, {}, {}

    def begin(self, fold, logits, labels):
        """A round of one fold begins; logits of all its public samples, without dropout."""
        self.visits[fold] = self.taught[fold] = 0
        if self.lifetime == "round":
            self.kept = {key: each for key, each in self.kept.items() if key[0] != fold}
        if self.when == "round":
            for row, (own, label) in enumerate(zip(logits, labels, strict=True)):
                self.right_as_the_round_began[fold, row] = predicts(own, label)
                if predicts(own, label):
                    self.take_up((fold, row), own)

    def part(self, key, logits, label):
        """`right`, `forgotten` or `never`."""
        right = predicts(logits, label) if self.when == "step" else self.right_as_the_round_began[key]
        return "right" if right else "forgotten" if key in self.kept else "never"

    def visit(self, key, part, logits):
        """Called after the loss of a sample."""
        if part == "right" and self.when == "step":
            self.take_up(key, logits)

    def count(self, fold, taught):
        self.visits[fold] = self.visits.get(fold, 0) + 1
        self.taught[fold] = self.taught.get(fold, 0) + bool(taught)

    def take_up(self, key, logits):
        logits = logits.detach().clone()
        if key in self.kept:
            logits = self.momentum * self.kept[key] + (1 - self.momentum) * logits
        self.kept[key] = logits


class Network:
    """GAHFL's graph convolutional network of one fold."""

    def __init__(self, start, fold):
        self.parameters = {name: each[fold].clone().requires_grad_() for name, each in start.items()}
        self.adam = torch.optim.Adam(self.parameters.values(), lr=1e-3)

    def weights(self, logits, teachers):
        """Softmax over the teachers of the products of their embeddings with the global model's."""
        nodes = [logits.detach(), *teachers]
        entropies = [entropy(each) for each in nodes]
        adjacency = [[torch.exp(-abs(one - other)) for other in entropies] for one in entropies]
        degrees = [sum(row) for row in adjacency]
        hidden = [torch.relu(each) for each in self._layer(adjacency, degrees, nodes, 0)]
        embedding = self._layer(adjacency, degrees, hidden, 1)
        return softmax([torch.dot(embedding[0], each) for each in embedding[1:]])

    def step(self, loss):
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()

    def _layer(self, adjacency, degrees, features, layer):
        weight, bias = self.parameters[f"weight_{layer}"], self.parameters[f"bias_{layer}"]
        found = []
        for j in range(len(features)):
            mixed = 0
            for k in range(len(features)):
                mixed = mixed + adjacency[j][k] / torch.sqrt(degrees[j] * degrees[k]) * features[k]
            found.append(mixed @ weight + bias)
        return found


class GAHFL:
    """Eq. 4 to 7, with the ablations of Table IV."""

    def __init__(
        self, start, drop="none", gcna_training="labels", beta=1, gamma=10, epsilon=0.5, xi=0.4, momentum=0.8,
        self_evaluation="step", lifetime="training",
    ):  # fmt: skip
        self.beta, self.gamma, self.epsilon, self.xi = beta, gamma, epsilon, xi
        self.drop, self.training = drop, gcna_training
        self.pool = Pool(momentum, self_evaluation, lifetime)
        self.networks = [Network(start, fold) for fold in range(len(start["bias_0"]))]

    def loss(self, batch):
        return torch.stack([self._loss(batch, fold) for fold in range(len(batch.labels))])

    def _loss(self, batch, fold):
        samples, total, own = samples_of(batch, fold), 0.0 * batch.logits[fold].sum(), []
        for place in samples:
            logits, label = batch.logits[fold, place], int(batch.labels[fold, place])
            key = (fold, int(batch.rows[fold, place]))
            labelled = cross_entropy(logits, label)
            part, teachers = self.pool.part(key, logits, label), []
            if part == "right":
                total = total + (0 if self.drop == "bce" else labelled)
            elif part == "forgotten" and self.drop != "sd":
                recalled = kl(self.pool.kept[key], logits)
                total = total + self.beta * (self.epsilon * labelled + (1 - self.epsilon) * recalled)
            elif self.drop != "wd":
                taught = 0.0
                teachers = [] if self.drop == "teachers" else right_teachers(batch, fold, place)
                if teachers:
                    weights = self.networks[fold].weights(logits, teachers)
                    for weight, teacher in zip(weights, teachers, strict=True):
                        taught = taught + weight.detach() * kl(teacher, logits)
                    own.append(self._own_loss(weights, teachers, logits, label))
                total = total + self.gamma * (self.xi * labelled + (1 - self.xi) * taught)
            self.pool.visit(key, part, logits)
            self.pool.count(fold, teachers)
        if own:
            self.networks[fold].step(sum(own) / len(samples))
        return total / max(len(samples), 1)

    def _own_loss(self, weights, teachers, logits, label):
        pairs = list(zip(weights, teachers, strict=True))
        if self.training == "labels":
            return -torch.log(sum(weight * softmax(teacher)[label] for weight, teacher in pairs))
        return sum(weight * kl(teacher, logits).detach() for weight, teacher in pairs)


class FedGEMS:
    """FedGEMS eq. 1 to 5."""

    def __init__(self, ensemble="all", epsilon=0.5, xi=0.4, self_evaluation="step", lifetime="training"):
        self.ensemble, self.epsilon, self.xi = ensemble, epsilon, xi
        self.pool = Pool(0, self_evaluation, lifetime)

    def loss(self, batch):
        return torch.stack([self._loss(batch, fold) for fold in range(len(batch.labels))])

    def _loss(self, batch, fold):
        samples, total = samples_of(batch, fold), 0.0 * batch.logits[fold].sum()
        for place in samples:
            logits, label = batch.logits[fold, place], int(batch.labels[fold, place])
            key = (fold, int(batch.rows[fold, place]))
            labelled = cross_entropy(logits, label)
            part, teachers = self.pool.part(key, logits, label), []
            if part == "right":
                total = total + labelled
            elif part == "forgotten":
                total = total + self.epsilon * labelled + (1 - self.epsilon) * kl(self.pool.kept[key], logits)
            else:
                chosen = present_teachers if self.ensemble == "all" else right_teachers
                teachers = chosen(batch, fold, place)
                total = total + self.xi * labelled
                if teachers:
                    weights = softmax([1 / entropy(each) for each in teachers])
                    mixed = sum(weight * each for weight, each in zip(weights, teachers, strict=True))
                    total = total + (1 - self.xi) * kl(mixed, logits)
            self.pool.visit(key, part, logits)
            self.pool.count(fold, teachers)
        return total / max(len(samples), 1)


class FedET:
    """Labels, consensus and dissent."""

    def __init__(self, consensus=1.0, diversity=0.05):
        self.consensus, self.diversity = consensus, diversity

    def loss(self, batch):
        return torch.stack([self._loss(batch, fold) for fold in range(len(batch.labels))])

    def _loss(self, batch, fold):
        samples, total = samples_of(batch, fold), 0.0 * batch.logits[fold].sum()
        for place in samples:
            logits, label = batch.logits[fold, place], int(batch.labels[fold, place])
            total = total + cross_entropy(logits, label)
            teachers = present_teachers(batch, fold, place)
            if teachers:
                consensus = mean_by_variance(teachers)
                total = total + self.consensus * kl(consensus, logits)
                others = [each for each in teachers if not predicts(each, int(consensus.argmax()))]
                if others:
                    total = total + self.diversity * kl(mean_by_variance(others), logits)
        return total / max(len(samples), 1)


def mean_by_variance(teachers):
    """Logits weighted by their variance over the classes."""
    variances = [float(((each - each.mean()) ** 2).mean()) for each in teachers]
    return sum(share * each for share, each in zip(variances, teachers, strict=True)) / sum(variances)
