"""Where may a webhook go? To public addresses, and to those that `CRONQ_WEBHOOK_ALLOW` names.

A URL comes from whoever may ask for a job; the request goes out from inside. So every address that a name
stands for is looked at when it is about to be used, and exactly that address is then connected to: a name
that answers differently a moment later leads nowhere else.
"""

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from cronq.errors import JobRefused, Permanent
from cronq.settings import Network, Settings

LONGEST_URL: Final = 2000
_NAT64: Final = IPv6Network("64:ff9b::/96")


class AddressRefused(Permanent):
    """A webhook's address is not public, and not allowed by `CRONQ_WEBHOOK_ALLOW`; nothing was sent."""

    def __init__(self, host: str, addresses: Sequence[object]) -> None:
        found = ", ".join(map(str, addresses))
        super().__init__(
            f"{host} is {found}, which no webhook may be sent to; nothing was sent. "
            "If it should be, name it in CRONQ_WEBHOOK_ALLOW and send the dead letter back"
        )


def check_callback(url: str, settings: Settings) -> None:
    """Raise `JobRefused` for a callback that could never be sent."""
    check_url(url)
    if settings.webhook_secret is None:
        raise _refused("no webhook can be signed here; set CRONQ_WEBHOOK_SECRET, or leave callback_url out")


def check_url(url: str) -> None:
    """Raise `JobRefused` unless `url` is one that can be sent to."""
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise _refused(
            f"callback_url may have {LONGEST_URL} printable ASCII characters; write others percent-encoded"
        )
    try:
        split = urlsplit(url)
        known = split.scheme in ("http", "https") and bool(split.hostname) and split.port != 0
    except ValueError as error:
        raise _refused(f"callback_url is no URL: {error}") from error
    if not known:
        raise _refused("callback_url must be like https://host/path")
    if "@" in split.netloc:
        raise _refused("callback_url has a user or password in it; webhooks are signed instead")


def _refused(said: str) -> JobRefused:
    return JobRefused(said, field="callback_url")


def port_of(split: SplitResult) -> int:
    """Return the port that a URL leads to."""
    return split.port or (443 if split.scheme == "https" else 80)


def find_addresses(host: str, port: int, allowed: Sequence[Network]) -> list[str]:
    """Return the addresses of `host` that may be sent to; raise `AddressRefused` if there is none."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    found = list(dict.fromkeys(str(answer[4][0]).partition("%")[0] for answer in answers))
    fit = [address for address in found if may_be_sent_to(address, allowed)]
    if not fit:
        raise AddressRefused(host, found)
    return fit


def may_be_sent_to(address: str, allowed: Sequence[Network]) -> bool:
    """Tell whether an IP address is public or allowed, also one that is wrapped in an IPv6 address."""
    given = ip_address(address)
    # An address that is allowed as it is written is allowed; one that wraps another is judged by both.
    if any(given in network for network in allowed):
        return True
    inner = _wrapped(given)
    if inner is not None:
        return may_be_sent_to(str(inner), allowed) and (given.is_global or _is_mapped(given))
    return given.is_global and not given.is_multicast


def _is_mapped(address: IPv4Address | IPv6Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def _wrapped(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    if isinstance(address, IPv4Address):
        return None
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour
