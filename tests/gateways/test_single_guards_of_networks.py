"""What one guard of reading networks alone holds back."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import requests

from ralph_mission.gateways import networks
from ralph_mission.gateways.networks import Reader
from ralph_mission.gateways.place import place
from ralph_mission.trouble import Trouble
from tests.gateways.web_server import reply, saying, serving

HERE = {"GITHUB_REPOSITORY": "mara/slackwater", "GITHUB_TOKEN": "a-token-of-nobody"}


@pytest.mark.attack(56)
def test_an_answer_that_ends_may_not_be_longer_than_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "MOST", 1_000)
    with serving(saying(reply(b'"' + b"x" * 2_000 + b'"'))) as server, pytest.raises(Trouble, match="no answer"):
        Reader("Discord", 30.0).json(server.url)


@pytest.mark.attack(56)
def test_an_answer_that_ends_may_not_take_longer_than_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 4.0, 8.0, 8.0])
    monkeypatch.setattr(networks, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    pieces = iter([b"1", b"2", b""])
    answer = requests.Response()
    answer.raw = SimpleNamespace(read1=lambda *_, **__: next(pieces), close=lambda: None)
    with pytest.raises(OSError, match="without an end"):
        Reader("Discord", 5.0)._whole(answer)


@pytest.mark.attack(42)
def test_a_login_that_the_machine_keeps_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login mara password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving(saying(reply(b"{}"))) as server:
        Reader("Discord", 30.0).json(server.url)
        assert b"authorization" not in server.asked[0].lower()


@pytest.mark.attack(60)
@pytest.mark.parametrize("url", ["http://api.example.org", "https://mara:hunter2@api.example.org", "ftp://example.org"])
def test_the_token_goes_to_no_address_in_clear_and_to_none_with_a_user(url: str) -> None:
    assert place({**HERE, "GITHUB_API_URL": "http://127.0.0.1:1"}).api == "http://127.0.0.1:1"
    with pytest.raises(Trouble, match="is no https address"):
        place({**HERE, "GITHUB_API_URL": url})


@pytest.mark.attack(45)
@pytest.mark.parametrize("name", ["mara/..", "../mara", "mara/a/b", "mara/a?b", "-mara/a"])
def test_a_repository_is_owner_and_name_and_leads_nowhere(name: str) -> None:
    with pytest.raises(Trouble, match="GITHUB_REPOSITORY is"):
        place({**HERE, "GITHUB_REPOSITORY": name})


@pytest.mark.attack(39)
@pytest.mark.parametrize("token", ["a token", "a\ntoken", "a\r\nX-Header: b"])
def test_a_token_is_one_word(token: str) -> None:
    with pytest.raises(Trouble, match="a space or a line break"):
        place({**HERE, "GITHUB_TOKEN": token})
