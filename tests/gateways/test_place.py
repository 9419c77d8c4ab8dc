from __future__ import annotations

import pytest

from ralph_mission.gateways.place import place
from ralph_mission.trouble import UserError

HERE = {"GITHUB_REPOSITORY": "mara/slackwater", "GITHUB_TOKEN": "a-token-of-nobody"}


@pytest.mark.attack(60)
@pytest.mark.parametrize("url", ["http://api.example.org", "https://mara:hunter2@api.example.org", "ftp://example.org"])
def test_the_token_goes_to_no_address_in_clear_and_to_none_with_a_user(url: str) -> None:
    assert place({**HERE, "GITHUB_API_URL": "http://127.0.0.1:1"}).api == "http://127.0.0.1:1"
    with pytest.raises(UserError, match="is no https address"):
        place({**HERE, "GITHUB_API_URL": url})


@pytest.mark.attack(45)
@pytest.mark.parametrize("name", ["mara/..", "../mara", "mara/a/b", "mara/a?b", "-mara/a"])
def test_a_repository_is_owner_and_name_and_leads_nowhere(name: str) -> None:
    with pytest.raises(UserError, match="GITHUB_REPOSITORY is"):
        place({**HERE, "GITHUB_REPOSITORY": name})


@pytest.mark.attack(39)
@pytest.mark.parametrize("token", ["a token", "a\ntoken", "a\r\nX-Header: b"])
def test_a_token_is_one_word(token: str) -> None:
    with pytest.raises(UserError, match="a space or a line break"):
        place({**HERE, "GITHUB_TOKEN": token})
