"""Which addresses are the public internet's."""

from __future__ import annotations

import pytest

from app.outbound import is_public


class TestPublic:
    @pytest.mark.parametrize(
        "address",
        [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00:1450:4001:81b::200e",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ],
    )
    def test_addresses_are_asked(self, address: str) -> None:
        assert is_public(address)


class TestNotPublic:
    @pytest.mark.parametrize(
        "address",
        [
            "0.0.0.0",  # noqa: S104 - what is refused
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.0.1",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
        ],
    )
    def test_addresses_of_version_4_are_refused_however_they_are_carried(
        self, address: str
    ) -> None:
        number = int.from_bytes(bytes(map(int, address.split("."))), "big")
        high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
        forms = {
            "plain": address,
            "mapped": f"::ffff:{address}",
            "compatible": f"::{address}",
            "translated": f"::ffff:0:{address}",
            "6to4": f"2002:{high}:{low}::1",
            "NAT64": f"64:ff9b::{high}:{low}",
            "NAT64 within a network": f"64:ff9b:1::{high}:{low}",
            "ISATAP": f"2a00:1450::5efe:{high}:{low}",
            "ISATAP, globally unique": f"2a00:1450::200:5efe:{high}:{low}",
            "Teredo": f"2001:0:{high}:{low}::1",
        }
        assert [name for name, form in forms.items() if is_public(form)] == []

    @pytest.mark.parametrize(
        "address",
        [
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "::8.8.8.8",
            "64:ff9b:1::808:808",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fe80::1%eth0",
            "2606:4700:4700::1111%eth0",
            "fec0::1",
            "ff02::1",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ],
    )
    def test_addresses_of_version_6_are_refused(self, address: str) -> None:
        assert not is_public(address)

    @pytest.mark.parametrize("text", ["", "localhost", "0177.0.0.1", "0x7f000001", "127.1", "1"])
    def test_what_is_no_address_is_not_public(self, text: str) -> None:
        assert not is_public(text)
