"""The coordinator's own certificate: made at the first start, and fit for its address and its key at all later ones."""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
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
            another host or has ended.
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
    except (ValueError, TypeError, UnsupportedAlgorithm, UserError) as error:
        raise UserError(
            f"{certificate} and `{key.name}`: expected a certificate and its key as this command makes them, found "
            f"others; {anew}."
        ) from error
    if shown.public_key() != own.public_key():
        raise UserError(f"{key}: expected the key of `{certificate.name}`, found that of another; {anew}.")
    if (end := shown.not_valid_after_utc) <= datetime.now(UTC):
        raise UserError(f"{certificate}: expected a valid certificate, found one that ended on {end:%d %B %Y}; {anew}.")
    names = list(_names(shown))
    if host.lower() not in map(str.lower, names):
        raise UserError(
            f"{certificate}: expected a certificate for {host}, the host of `study.address`, found one for "
            f"{', '.join(names) or 'no host'}; correct the address, or {anew}."
        )


def _names(certificate: x509.Certificate) -> Iterable[str]:
    """The names and addresses that a certificate is for."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    yield from found.get_values_for_type(x509.DNSName)
    yield from map(str, found.get_values_for_type(x509.IPAddress))
