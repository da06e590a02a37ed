"""A webhook goes to public addresses only, unless a setting allows another."""

import socket
from ipaddress import ip_network
from typing import Any

import pytest

from cronq.errors import JobRefused
from cronq.settings import Settings
from cronq.webhooks.address import AddressRefused, check_callback, check_url, find_addresses, may_be_sent_to

PUBLIC = ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]
REFUSED = [
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fd00:ec2::254",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "2001:0:0:0:0:0:5601:5601",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_sent_to(address):
    assert may_be_sent_to(address, [])


def test_a_public_address_in_the_mapped_form_may_be_sent_to():
    assert may_be_sent_to(f"::ffff:{PUBLIC[0]}", [])


@pytest.mark.parametrize("address", REFUSED)
def test_an_inner_address_may_not_in_whatever_form(address):
    assert not may_be_sent_to(address, [])


def test_what_is_allowed_may_be_sent_to_and_its_neighbour_may_not():
    allowed = [ip_network("10.1.0.0/16")]
    assert may_be_sent_to("10.1.2.3", allowed)
    assert may_be_sent_to("::ffff:10.1.2.3", allowed)
    assert not may_be_sent_to("10.2.0.1", allowed)


def answers(*addresses: str) -> Any:
    return lambda *_args, **_kwargs: [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses
    ]


def test_of_a_names_addresses_only_those_that_may_be_are_used(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", answers("127.0.0.1", PUBLIC[0], "10.0.0.1"))
    assert find_addresses("mixed.example", 80, []) == [PUBLIC[0]]
    monkeypatch.setattr(socket, "getaddrinfo", answers("127.0.0.1", "10.0.0.1"))
    with pytest.raises(AddressRefused, match=r"CRONQ_WEBHOOK_ALLOW"):
        find_addresses("inner.example", 80, [])


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "example.org",
        "https://",
        "https:///path",
        "https://me:pw@example.org/",
        "https://example.org:0/",
        "https://example.org:99999/",
        "https://[broken/",
        "https://example.org/a b",
        "https://example.org/\r\nX: y",
        "https://exämple.org/",
        "https://example.org/" + "x" * 2000,
    ],
)
def test_a_url_that_cannot_be_sent_to_is_refused_at_once(url):
    with pytest.raises(JobRefused, match="callback_url"):
        check_url(url)


def test_without_a_secret_no_callback_is_taken():
    with pytest.raises(JobRefused, match="CRONQ_WEBHOOK_SECRET"):
        check_callback("https://example.org/", Settings())
