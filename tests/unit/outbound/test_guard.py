"""The address that was checked is the address that is connected to."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from app.outbound import Unreachable, UrlRefused
from app.outbound.addresses import Address
from app.outbound.guard import Guard

PUBLIC, OTHER = "93.184.215.14", "2606:4700:4700::1111"


class Names:
    """Says something else with each question, the last answer for good."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, name: str) -> Sequence[Address]:
        self.asked.append(name)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [ip_address(each) for each in answer]


class Network:
    """Remembers what was dialled; some addresses do not answer."""

    def __init__(self, *silent: str) -> None:
        self.dialled: list[str] = []
        self.silent = silent

    async def dial(self, address: str, seconds: float) -> str:
        assert seconds > 0
        self.dialled.append(address)
        if address in self.silent:
            raise ConnectionRefusedError(f"{address} refused")
        return f"connection to {address}"


async def connecting(guard: Guard, network: Network, host: str, port: int = 443) -> str:
    return await guard.connect(host, port, network.dial, (ConnectionRefusedError,))


class TestAName:
    async def test_is_connected_to_at_the_address_that_was_checked(self) -> None:
        names, network = Names([PUBLIC]), Network()
        assert await connecting(Guard(resolve=names), network, "stoa.dev") == (
            f"connection to {PUBLIC}"
        )
        assert (names.asked, network.dialled) == (["stoa.dev"], [PUBLIC])

    async def test_that_says_something_else_later_is_checked_anew_for_each_connection(
        self,
    ) -> None:
        names, network = Names([PUBLIC], ["127.0.0.1"]), Network()
        guard = Guard(resolve=names)
        await connecting(guard, network, "stoa.dev")
        with pytest.raises(Unreachable):
            await connecting(guard, network, "stoa.dev")
        assert network.dialled == [PUBLIC]

    @pytest.mark.parametrize("inner", ["127.0.0.1", "::1", "169.254.169.254", "fd00:ec2::254"])
    async def test_one_of_whose_addresses_is_inside_is_not_connected_to_at_all(
        self, inner: str
    ) -> None:
        network = Network()
        with pytest.raises(Unreachable):
            await connecting(Guard(resolve=Names([PUBLIC, inner])), network, "stoa.dev")
        assert network.dialled == []

    async def test_whose_last_of_many_addresses_is_inside_is_not_connected_to(self) -> None:
        network = Network()
        many = [f"93.184.215.{number}" for number in range(60)]
        with pytest.raises(Unreachable):
            await connecting(Guard(resolve=Names([*many, "10.0.0.1"])), network, "stoa.dev")
        assert network.dialled == []

    async def test_is_reached_at_the_next_address_where_one_does_not_answer(self) -> None:
        network = Network(PUBLIC)
        await connecting(Guard(resolve=Names([PUBLIC, OTHER])), network, "stoa.dev")
        assert network.dialled == [PUBLIC, OTHER]

    async def test_is_tried_at_few_of_many_addresses(self) -> None:
        many = [f"93.184.215.{number}" for number in range(60)]
        network = Network(*many)
        with pytest.raises(Unreachable):
            await connecting(Guard(resolve=Names(many)), network, "stoa.dev")
        assert network.dialled == many[:4]


class TestWhatIsSaidOfAFailure:
    @pytest.mark.parametrize(
        ("addresses", "silent"),
        [([], ()), (["10.0.0.1"], ()), ([PUBLIC], (PUBLIC,))],
        ids=["no address", "inner address", "nobody answers"],
    )
    async def test_is_the_same_whatever_it_was(
        self, addresses: list[str], silent: tuple[str, ...]
    ) -> None:
        with pytest.raises(Unreachable) as failure:
            await connecting(Guard(resolve=Names(addresses)), Network(*silent), "stoa.dev")
        assert str(failure.value) == "The server could not be reached."
        told = "".join(traceback.format_exception(failure.value))
        assert not any(address in told for address in addresses)


class TestAnAddress:
    async def test_is_checked_without_asking_for_a_name(self) -> None:
        names, network = Names([PUBLIC]), Network()
        with pytest.raises(Unreachable):
            await connecting(Guard(resolve=names), network, "169.254.169.254")
        assert (names.asked, network.dialled) == ([], [])


class TestATrustedOrigin:
    GUARD = Guard(trusted=frozenset({"http://inner:9000"}), resolve=Names(["10.0.0.1"]))

    async def test_is_connected_to_by_its_name_wherever_it_is(self) -> None:
        network = Network()
        await connecting(self.GUARD, network, "inner", 9000)
        assert network.dialled == ["inner"]

    async def test_lets_nobody_to_another_port_of_its_host(self) -> None:
        network = Network()
        with pytest.raises(Unreachable):
            await connecting(self.GUARD, network, "inner", 9001)
        assert network.dialled == []


class TestAGuardForOneOrigin:
    GUARD = Guard(only="https://stoa.dev/mcp")

    def test_lets_requests_to_it_through(self) -> None:
        self.GUARD.check("https://stoa.dev/elsewhere")

    @pytest.mark.parametrize("url", ["https://other.dev/mcp", "https://stoa.dev:8443/mcp"])
    def test_holds_back_those_to_another(self, url: str) -> None:
        with pytest.raises(Unreachable):
            self.GUARD.check(url)

    def test_holds_back_those_without_tls(self) -> None:
        with pytest.raises(UrlRefused):
            self.GUARD.check("http://stoa.dev/mcp")
