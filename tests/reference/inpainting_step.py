"""FedNI's local epoch as the formulas read: plain modules, autograd for everything (FedNI eq. 4 to 12).

The discriminator is torch's own spectral_norm throughout; real and generated features are judged in one
batch, so that its power iteration makes one step an epoch.
"""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss


def plain_losses(generator, discriminator, nodes, masked, k):
    """All losses by name and the generated features, as tensors with their graphs; neighbours are `masked.target`."""
    embedding = generator.encode(nodes.features, masked.propagation)
    share = generator.missing(embedding[masked.visible], masked.degree)
    fake = generator.generate(embedding[masked.parent], masked.noise)
    losses = {
        "count": mse_loss(share, torch.minimum(masked.missing, torch.tensor(float(k))) / k),
        "reconstruction": mse_loss(fake, nodes.features[masked.target]),
    }
    if generator.predicts_phenotypes:
        told = generator.phenotypes(fake)
        sex, age = nodes.phenotype.sex[masked.target], nodes.phenotype.age[masked.target]
        loss = 0.0
        if generator.sex:
            loss = loss + cross_entropy(told[sex >= 0, :2], sex[sex >= 0])
        if generator.age:
            known = ~age.isnan()
            loss = loss + mse_loss(told[known, -1], age[known])
        losses["phenotype"] = loss
    if discriminator is not None:
        real = nodes.features[masked.hidden]
        logits = discriminator(torch.cat([real, fake]))
        taken, caught = logits[: len(real)], logits[len(real) :]
        losses["adversarial"] = binary_cross_entropy_with_logits(caught, torch.ones_like(caught))
        losses["discriminator"] = binary_cross_entropy_with_logits(
            taken, torch.ones_like(taken)
        ) + binary_cross_entropy_with_logits(caught, torch.zeros_like(caught))
    return losses, fake


def gradient_length(loss, fake):
    (gradient,) = torch.autograd.grad(loss, fake, retain_graph=True)
    return float(gradient.norm())


def plain_gradients(generator, discriminator, nodes, masked, settings, k):
    """Fill every `.grad` from the losses; the losses by name as numbers."""
    losses, fake = plain_losses(generator, discriminator, nodes, masked, k)
    squared = losses["reconstruction"] * (1 if settings.reconstruction == "mean" else nodes.features.shape[1])
    shares = {
        "reconstruction": squared,
        **{name: losses[name] for name in ("adversarial", "phenotype") if name in losses},
    }
    lengths = {name: gradient_length(loss, fake) for name, loss in shares.items()}
    by = {"reconstruction": settings.alpha, "adversarial": settings.beta, "phenotype": 1.0}
    if settings.reconstruction == "balanced":
        by = {name: by[name] * (lengths["reconstruction"] / lengths[name] if lengths[name] else 1) for name in shares}
    total = losses["count"] + sum(by[name] * loss for name, loss in shares.items())
    own = [weight for name, weight in generator.named_parameters() if not name.startswith("phenotype")]
    heads = [weight for name, weight in generator.named_parameters() if name.startswith("phenotype")]
    by_generator = torch.autograd.grad(total, own, retain_graph=True)
    by_head = torch.autograd.grad(losses["phenotype"], heads, retain_graph=True) if heads else ()
    judges = [] if discriminator is None else list(discriminator.parameters())
    by_judge = torch.autograd.grad(losses["discriminator"], judges) if judges else []
    for parameter, gradient in zip([*own, *heads, *judges], [*by_generator, *by_head, *by_judge], strict=True):
        parameter.grad = gradient
    entering = {f"{name}_gradient": by[name] * length for name, length in lengths.items()}
    return {name: float(loss.detach()) for name, loss in losses.items()} | entering
