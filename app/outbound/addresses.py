"""Which addresses are on the public internet. Pure.

Written out, since what Python's ``is_global`` says differs between its versions, and says nothing
of an IPv4 address inside an IPv6 one. From IANA's special-purpose registries.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_REFUSED_4 = tuple(
    IPv4Network(net)
    for net in (
        "0.0.0.0/8",  # this network, unspecified
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by a carrier's customers; metadata of some clouds
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a cloud's host, by an address that looks public
        "169.254.0.0/16",  # link-local; metadata of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; metadata of some clouds
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_UNICAST_6 = IPv6Network("2000::/3")
_REFUSED_6 = tuple(
    IPv6Network(net)
    for net in (
        "2001::/23",  # protocol assignments, Teredo, ORCHID
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_6TO4 = IPv6Network("2002::/16")
_ISATAP = 0x00005EFE
_ISATAP_GLOBAL_BIT = 0x02000000


def is_public(address: Address | str) -> bool:
    """Whether this is an address of the public internet; text that is no address is not.

    An IPv6 address that carries an IPv4 address is as public as that one.
    """
    if isinstance(address, str):
        try:
            address = ip_address(address)
        except ValueError:
            return False
    if isinstance(address, IPv4Address):
        return not any(address in net for net in _REFUSED_4)
    if address.scope_id is not None:
        return False
    carried = _carried(address)
    if carried is not None and not is_public(carried):
        return False
    if address in _NAT64:
        return True
    return address in _UNICAST_6 and not any(address in net for net in _REFUSED_6)


def _carried(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a packet to this one would end at."""
    if address in _6TO4:
        return IPv4Address(int(address) >> 80 & 0xFFFFFFFF)
    is_isatap = (int(address) >> 32 & 0xFFFFFFFF) & ~_ISATAP_GLOBAL_BIT == _ISATAP
    if address in _NAT64 or is_isatap:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None
