"""The coordinator's own certificate: made at the first start, and fit for its address and its key at all later ones."""

import sys
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from brainfed.deployment.flower.certificates import make_certificate, private_key
from brainfed.runtime.errors import UserError


def make_or_check(certificate: Path, key: Path, host: str) -> None:
    """Make the certificate and its key, or check those that are there.

    Args:
        certificate: PEM; every site has a copy.
        key: its private key, PEM.
        host: name or address by which the sites reach the coordinator.

    Raises:
        UserError: one of the files is missing or cannot be read, they are of two pairs, or the certificate is for
            another host.
    """
    if not certificate.exists() and not key.exists():
        make_certificate(certificate, key, [host])
        print(f"made {certificate}: send it to every site", file=sys.stderr)
        return
    anew = (
        f"remove `{certificate.name}` and `{key.name}`, run this again, and send the new `{certificate.name}` to every "
        "site"
    )
    for path, other in ((certificate, key), (key, certificate)):
        if not path.exists():
            raise UserError(f"{path}: expected it beside `{other.name}`, found no file; restore it, or {anew}.")
    try:
        shown = x509.load_pem_x509_certificate(certificate.read_bytes())
        own = private_key(key)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UserError(f"{certificate} and `{key.name}`: expected a certificate and its key; {anew}.") from error
    if shown.public_key() != own.public_key():
        raise UserError(f"{key}: expected the key of `{certificate.name}`, found that of another; {anew}.")
    names = list(_names(shown))
    if host not in names:
        raise UserError(
            f"{certificate}: expected a certificate for {host}, the host of `study.address`, found one for "
            f"{', '.join(names)}; correct the address, or {anew}."
        )


def _names(certificate: x509.Certificate) -> Iterable[str]:
    """The names and addresses that a certificate is for."""
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    yield from found.get_values_for_type(x509.DNSName)
    yield from map(str, found.get_values_for_type(x509.IPAddress))
