"""What a URL must look like to be asked."""

from __future__ import annotations

import pytest

from app.outbound import Origin, UrlRefused, check_url

NAME_SERVICE = "https://127.0.0.1.nip.io"


class TestAUrlOfThePublicInternet:
    @pytest.mark.parametrize(
        ("url", "asked"),
        [
            ("https://tools.stoa.dev/mcp", "https://tools.stoa.dev/mcp"),
            ("HTTPS://Tools.Stoa.dev:443/mcp?a=b#c", "https://tools.stoa.dev/mcp?a=b"),
            ("https://tools.stoa.dev:8443", "https://tools.stoa.dev:8443"),
            ("https://8.8.8.8/", "https://8.8.8.8/"),
            ("https://[2606:4700:4700::1111]/", "https://[2606:4700:4700::1111]/"),
            ("https://münchen.stoa.dev/ü", "https://xn--mnchen-3ya.stoa.dev/%C3%BC"),
        ],
    )
    def test_is_asked_in_its_plain_spelling(self, url: str, asked: str) -> None:
        assert check_url(url) == asked

    def test_is_judged_by_its_look_only(self) -> None:
        # Where the name leads, which may be anywhere, is looked at when it is connected to.
        assert check_url(NAME_SERVICE) == NAME_SERVICE


class TestAUrlThatIsRefused:
    @pytest.mark.parametrize(
        "url",
        [
            "",
            "tools.stoa.dev",
            "//tools.stoa.dev",
            "/mcp",
            "https://",
            "https:///mcp",
            "http://tools.stoa.dev",
            "ftp://tools.stoa.dev",
            "file:///etc/passwd",
            "gopher://tools.stoa.dev",
            "javascript:alert(1)",
            "https://" + "a" * 2048 + ".dev",
            "https://" + "a." * 130 + "dev",
            "https://" + "a" * 64 + ".dev",
        ],
    )
    def test_is_none_of_the_web(self, url: str) -> None:
        with pytest.raises(UrlRefused):
            check_url(url)

    @pytest.mark.parametrize(
        "url",
        [
            "https://someone@tools.stoa.dev",
            "https://someone:secret@tools.stoa.dev",
            "https://tools.stoa.dev@127.0.0.1",
            "https://tools.stoa.dev\\@127.0.0.1/",
            "https://tools.stoa.dev /",
            "https://tools.stoa.dev/\nHost: inner",
            "https://tools.stoa.dev/\x00",
            "https://tools.stoa.dev\t.evil.dev",
            "https://tools.stoa.dev%2f@evil.dev",
        ],
    )
    def test_hides_something(self, url: str) -> None:
        with pytest.raises(UrlRefused):
            check_url(url)

    @pytest.mark.parametrize("port", [0, 1, 22, 25, 80, 444, 5432, 6379, 8080, 11434, 65536, 99999])
    def test_names_a_port_of_something_else(self, port: int) -> None:
        with pytest.raises(UrlRefused):
            check_url(f"https://tools.stoa.dev:{port}")

    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "017700000001",
            "0x7f000001",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "127.0.0.1.",
            "8.8.8.8.",
            "0",
            "0.0.0.0",  # noqa: S104 - what is refused
            "169.254.169.254",
            "%31%32%37.0.0.1",
            "１２７.0.0.1",  # noqa: RUF001 - digits of full width
            "127。0。0。1",
            "①②⑦.0.0.1",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[fd00:ec2::254]",
            "[fe80::1%25eth0]",
            "[64:ff9b::7f00:1]",
            "[v1.stoa]",
        ],
    )
    def test_is_an_inner_address_however_it_is_spelled(self, host: str) -> None:
        with pytest.raises(UrlRefused):
            check_url(f"https://{host}/")

    @pytest.mark.parametrize(
        "host",
        [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost",
            "localhost.localdomain",
            "ⓛocalhost",
            "printer.local",
            "router.lan",
            "db.internal",
            "metadata.google.internal",
            "host.docker.internal",
            "wiki.corp",
            "nas.home.arpa",
            "service.test",
            "intranet",
            "stoa.dev.",
            "-a.dev",
            "a..dev",
            ".dev",
        ],
    )
    def test_is_an_inner_name(self, host: str) -> None:
        with pytest.raises(UrlRefused):
            check_url(f"https://{host}/")

    def test_is_told_nothing_but_what_is_wrong_with_its_look(self) -> None:
        with pytest.raises(UrlRefused) as refused:
            check_url("https://10.1.2.3/")
        assert refused.value.code == "url_not_allowed"
        assert str(refused.value) == "The address must name a host on the public internet."


class TestHttpWithoutTls:
    def test_is_asked_where_the_caller_says_so(self) -> None:
        assert check_url("http://stoa.dev/a", https_only=False) == "http://stoa.dev/a"

    def test_is_asked_on_its_own_port_only(self) -> None:
        with pytest.raises(UrlRefused):
            check_url("http://stoa.dev:443/a", https_only=False)


class TestAnOriginThatTheOperatorTrusts:
    TRUSTED = frozenset({"http://10.0.0.5:9000", "https://tools.internal"})

    @pytest.mark.parametrize(
        "url",
        ["http://10.0.0.5:9000/mcp", "https://tools.internal/a", "https://tools.internal:443"],
    )
    def test_may_be_anywhere(self, url: str) -> None:
        assert Origin.of(check_url(url, trusted=self.TRUSTED)) in {
            Origin("http", "10.0.0.5", 9000),
            Origin("https", "tools.internal", 443),
        }

    @pytest.mark.parametrize(
        "url",
        [
            "http://10.0.0.5:9001/mcp",
            "https://10.0.0.5:9000/mcp",
            "http://10.0.0.6:9000/mcp",
            "http://tools.internal/",
            "https://tools.internal:8443/",
            "https://a.tools.internal/",
            "http://someone@10.0.0.5:9000/mcp",
        ],
    )
    def test_does_not_stand_for_another(self, url: str) -> None:
        with pytest.raises(UrlRefused):
            check_url(url, trusted=self.TRUSTED)

    @pytest.mark.parametrize(
        ("origin", "text"),
        [
            (Origin("https", "stoa.dev", 443), "https://stoa.dev"),
            (Origin("http", "stoa.dev", 8080), "http://stoa.dev:8080"),
            (Origin("https", "2606:4700::1", 443), "https://[2606:4700::1]"),
        ],
    )
    def test_is_written_as_it_is_read(self, origin: Origin, text: str) -> None:
        assert str(origin) == text
        assert Origin.of(text) == origin
