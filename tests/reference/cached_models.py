"""The paper's scoring of GCFL and GCFL+ as a server would do it that keeps models while it trains."""


def best_of_cache(partitions, accuracies):
    """The best test accuracy of each institution among the models that the server kept.

    A round trains, cuts clusters and then evaluates: at a cut the accuracies at hand are those of the round before.

    Args:
        partitions: after every round, a list of sets of institutions.
        accuracies: after every round, institution -> test accuracy.
    """
    cache = []
    current, at_hand = partitions[0], accuracies[0]
    for after, evaluated in zip(partitions[1:], accuracies[1:], strict=True):
        cut = [cluster for cluster in current if cluster not in after]
        cache += [{member: at_hand[member] for member in cluster} for cluster in cut]
        current, at_hand = after, evaluated
    cache += [{member: at_hand[member] for member in cluster} for cluster in current]
    best = {}
    for model in cache:
        for member, accuracy in model.items():
            best[member] = max(accuracy, best.get(member, 0.0))
    return best
