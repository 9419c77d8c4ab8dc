"""What a registry says of a package is of that package alone, and what cannot be read costs its own answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from ralph_mission.adapters.http.guard import CAP, NONE, WebAnswer
from ralph_mission.adapters.packages.model import Release
from ralph_mission.adapters.packages.registries import AnswerCache, Registries, RegistryQuestion, ReleaseAnswers

BASE = "https://registry.example.org"
BUOY = RegistryQuestion("PyPI", BASE, "buoy")
PAGE = "text/html"
JSON = "application/vnd.pypi.simple.v1+json"


@dataclass
class Saying:
    """A registry with one answer to everything."""

    content: bytes
    content_type: str

    def get(
        self, url: str, *, etag: str = "", modified: str = "", headers: Mapping[str, str] = NONE, cap: int = CAP
    ) -> WebAnswer:
        return WebAnswer(url, 200, self.content, self.content_type, "", "")

    def post(self, url: str, body: bytes, *, headers: Mapping[str, str] = NONE, cap: int = CAP) -> WebAnswer:
        raise AssertionError("nothing is sent")


def read_answer(content: bytes, content_type: str) -> ReleaseAnswers:
    web = Saying(content, content_type)
    return Registries(web, AnswerCache(None), datetime(2030, 6, 1, tzinfo=UTC), timedelta(0), 5.0, 5).tell([BUOY])


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b'<a href="/f/buoy-1.4.3.tar.gz">x</a><a href="/f/buoyancy-9.0.tar.gz">y</a>', PAGE),
        (b'<a href="buoy-1.4.3-py3-none-any.whl">x</a><a href="knots-9.0-py3-none-any.whl">y</a>', PAGE),
        (b'{"files": [{"filename": "Buoy-1.4.3.tar.gz"}, {"filename": "knots-9.0.tar.gz"}]}', JSON),
    ],
)
def test_files_of_other_packages_are_no_releases_of_this_one(content: bytes, content_type: str) -> None:
    assert read_answer(content, content_type).releases == {BUOY: (Release("1.4.3"),)}


@pytest.mark.parametrize(("content", "content_type"), [(b"<![x[y]]>", PAGE), (b"[" * 100_000, JSON)])
def test_an_answer_that_is_garbled_is_the_failure_of_one_package(content: bytes, content_type: str) -> None:
    seen = read_answer(content, content_type)
    assert not seen.releases and seen.failed == {BUOY: "what the registry says of buoy cannot be read"}
