"""The Dockerfiles: what they build from, what they copy, and who the processes are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.deploy.composition import DEPLOY, ROOT

DOCKERFILES = sorted(DEPLOY.rglob("Dockerfile"))
IGNORE = DEPLOY / "Dockerfile.dockerignore"


def instructions(dockerfile: Path) -> list[tuple[str, str]]:
    """Instruction and arguments of each logical line."""
    text = re.sub(r"^\s*#.*\n", "", dockerfile.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [
        (word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines) if word
    ]


def arguments(dockerfile: Path, instruction: str) -> list[str]:
    """The arguments of every use of one instruction."""
    return [rest for word, rest in instructions(dockerfile) if word == instruction]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: str(path.relative_to(DEPLOY)))
class TestEachImage:
    def test_is_built_from_pinned_images_of_no_particular_registry(self, dockerfile: Path) -> None:
        for source in arguments(dockerfile, "FROM"):
            image = source.split()[0]
            assert image == "scratch" or re.fullmatch(r"[a-z]+:\d+(\.\d+)?-[a-z]+", image)

    def test_runs_as_a_number_that_is_not_root(self, dockerfile: Path) -> None:
        user = arguments(dockerfile, "USER")[-1]
        assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)

    def test_starts_its_process_without_a_shell(self, dockerfile: Path) -> None:
        assert re.fullmatch(r'\["[^"]+"\]', arguments(dockerfile, "ENTRYPOINT")[-1])

    def test_copies_only_from_stages_that_were_built_before(self, dockerfile: Path) -> None:
        stages: set[str] = set()
        for word, rest in instructions(dockerfile):
            if word == "FROM" and " AS " in rest:
                stages.add(rest.rpartition(" ")[2])
            if word == "COPY" and (stage := re.match(r"--from=(\S+)", rest)):
                assert stage[1] in stages

    def test_copies_only_what_is_in_the_repository(self, dockerfile: Path) -> None:
        for rest in arguments(dockerfile, "COPY"):
            if not rest.startswith("--from"):
                assert all((ROOT / source).exists() for source in rest.split()[:-1])


class TestTheImageOfStoa:
    def test_sends_the_builder_nothing_but_what_is_copied(self) -> None:
        lines = IGNORE.read_text(encoding="utf-8").splitlines()
        allowed = {line[1:].rstrip("/") for line in lines if line.startswith("!")}
        copied = {
            source.split("/")[0]
            for rest in arguments(DEPLOY / "Dockerfile", "COPY")
            if not rest.startswith("--from")
            for source in rest.split()[:-1]
        }
        assert "**" in lines
        assert allowed == copied

    def test_installs_only_what_the_lock_has_a_hash_for(self) -> None:
        for rest in arguments(DEPLOY / "Dockerfile", "RUN"):
            for install in re.findall(r"pip install ([^&]*)", rest):
                assert "--require-hashes" in install or "--no-deps" in install
