"""Known values and tokens are found, cut out, and nothing else is. No literal here looks like a secret."""

from __future__ import annotations

import base64
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.loop.model.state import HatOutput, LoopEvent, ReviewIssue
from ralph_mission.mission.model.mission import Status
from ralph_mission.safety.secrets import (
    find_secrets,
    redact,
    redact_record,
    secret_values,
    strip_known,
    texts,
    without,
)
from ralph_mission.safety.text import sanitise

KNOWN = "zq" + "x_" + "Qx7Rt2Lm9ZpW4vKd8NsB3y"
RAW = KNOWN.encode()
SIGNS = "k9*w2&m(q7x)" + "!z4 tide"
WRITINGS = {
    "plain": KNOWN,
    "base64": base64.b64encode(RAW).decode(),
    "base64, second alignment": base64.b64encode(b"a" + RAW + b"bc").decode(),
    "base64, third alignment": base64.b64encode(b"ab" + RAW + b"c").decode(),
    "base64 for addresses": base64.urlsafe_b64encode(b"a" + RAW).decode(),
    "base64 within more of it": base64.b64encode(b"user:" + RAW + b" and what follows").decode(),
    "signs": SIGNS,
    "signs as an address quotes them": quote(SIGNS, safe=""),
    "signs in base64": base64.b64encode(SIGNS.encode()).decode(),
}
TOKENS = {
    "github-token": "gh" + "p_" + "a1B2" * 9,
    "gitlab-token": "gl" + "pat-" + "a1B2c3D4e5F6g7H8i9J0",
    "aws-key": "AK" + "IA" + "ABCDEFGH2345WXYZ",
    "slack-token": "xo" + "xb-" + "1234567890-abcdefghij",
    "google-key": "AI" + "za" + "a1B2c" * 7,
    "anthropic-key": "sk-" + "ant-" + "api03-" + "a1B2" * 8,
    "openai-key": "sk-" + "proj-" + "a1B2" * 8,
    "stripe-key": "sk_" + "live_" + "a1B2" * 6,
    "telegram-token": "123456789:" + "AA" + "a1B2c3D4" * 4 + "x",
    "discord-webhook": "https://discord." + "com/api/webhooks/" + "1" * 18 + "/" + "a1B2" * 17,
    "private-key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "jwt": "ey" + "J" + "hbGciOiJIUzI1" + ".ey" + "J" + "zdWIiOiIxMjM0" + "." + "a1B2c3D4e5F6",
    "npm-token": "np" + "m_" + "a1B2" * 9,
    "pypi-token": "py" + "pi-" + "a1B2" * 20,
    "url-password": "postgres://app:" + "hunter2zz" + "@db.internal/app",
    "assigned-secret": "api_key = '" + "aB3dE5gH7jK9mN1pQ2rS4tU6" + "'",
}
HARMLESS = [
    "An ordinary sentence about tokens, keys and secrets.",
    "def get_token(): return os.environ['GITHUB_TOKEN']",
    "postgres://user:password@localhost/db",
    "https://${USER}:${TOKEN}@github.com",
    "https://example.org/a:b@c/d",
    "sha256:" + "ab12" * 16,
    "commit " + "0123456789abcdef" * 2,
    "class='sk-fading-circle-before-the-thing'",
    "secret = None",
    "password: str",
    "token_count_for_the_whole_context = 12",
    "the risk-averse-people-everywhere",
    "eyJ",
    "12:30:45",
    "AKIA",
]


@pytest.mark.attack(33)
@pytest.mark.parametrize("writing", WRITINGS)
def test_c33_a_known_value_is_found_and_cut_out(writing: str) -> None:
    text = f"see {WRITINGS[writing]} there"
    assert find_secrets(text, [KNOWN, SIGNS]) == ("known-value",)
    assert redact(text, [KNOWN, SIGNS]) == "see [redacted: known-value] there"
    assert without(text, [KNOWN, SIGNS]) == "see [redacted: known-value] there"


@pytest.mark.attack(33)
@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_of_a_common_format_is_found(kind: str) -> None:
    assert kind in find_secrets(f"x {TOKENS[kind]} y")


@pytest.mark.attack(33)
@pytest.mark.parametrize("kind", TOKENS)
def test_a_redacted_token_is_gone_and_the_rest_stays(kind: str) -> None:
    safe = redact(f"before {TOKENS[kind]} after")
    assert TOKENS[kind] not in safe
    assert safe.startswith("before ") and safe.endswith(" after")


@pytest.mark.attack(33)
@pytest.mark.parametrize("between", ["\x1b[31m", "\u200b", "\u202e", "\x07"], ids=ascii)
@pytest.mark.parametrize("value", [KNOWN, TOKENS["github-token"]], ids=["known", "token"])
def test_what_every_sink_takes_out_hides_nothing(value: str, between: str) -> None:
    for text in (f"see {between}{value} there", f"see {value[:9]}{between}{value[9:]} there"):
        assert find_secrets(text, [KNOWN])
        assert value not in sanitise(redact(text, [KNOWN]), "log")


@pytest.mark.attack(33)
def test_an_entity_hides_nothing() -> None:
    coded = "".join(f"&#{octet};" for octet in RAW)
    assert redact(f"see {coded} there", [KNOWN]) == "see [redacted: known-value] there"


@pytest.mark.benign("secrets")
@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_holds_no_secret(text: str) -> None:
    assert find_secrets(text, [KNOWN]) == ()
    assert redact(text, [KNOWN]) == text


def test_the_answer_never_holds_the_secret() -> None:
    assert KNOWN not in str(find_secrets(KNOWN, [KNOWN]))


@pytest.mark.benign("secrets")
def test_a_short_known_value_is_no_secret() -> None:
    assert find_secrets("the word is main", ["main", ""]) == ()


@pytest.mark.parametrize("value", ["slackwater", "SLACKWATER", "2026.11.22"])
def test_what_any_prompt_may_say_stays_there_and_goes_from_what_is_posted(value: str) -> None:
    assert without(f"see {value} there", [value]) == f"see {value} there"
    assert redact(f"see {value} there", [value]) == "see [redacted: known-value] there"


@pytest.mark.attack(33)
def test_the_password_of_a_known_address_is_a_secret_too() -> None:
    password = "s3cr3t%2F" + "Passw0rd"
    address = f"postgres://app:{password}@db/app"
    for said in (password, password.replace("%2F", "/")):
        assert find_secrets(f"psql -W {said}", [address]) == ("known-value",)


@pytest.mark.benign("secrets")
@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("postgres://postgres:postgres@localhost:5432/slackwater", "postgres keeps slackwater/tides.py"),
        ("postgres://slackwater:slackwater@localhost/slackwater_test", "src/slackwater/tides.py, slackwater_test"),
        ("mysql://root:changeme@localhost/tide-tables", "docs/tide-tables.md: changeme"),
        ("https://[broken:Password1@x", "see Password1 there"),
    ],
)
def test_names_and_ordinary_words_in_an_address_are_no_secrets(address: str, named: str) -> None:
    assert find_secrets(named, [address]) == ()
    assert "known-value" in find_secrets(f"{named} {address}", [address])


def test_a_key_of_many_lines_is_known_by_any_of_them() -> None:
    lines = [
        "-----BEGIN " + "OTHER KEY-----",
        "a1B2c3D4e5F6g7H8i9J0kLmN",
        "o1P2q3R4s5T6u7V8w9X0yZaB",
        "-----END KEY-----",
    ]
    for line in lines[1:3]:
        assert find_secrets(f"see {line} there", ["\n".join(lines)]) == ("known-value",)
    assert find_secrets("see -----END KEY----- there", ["\n".join(lines)]) == ()


@pytest.mark.attack(33)
@given(before=st.text(max_size=20), after=st.text(max_size=20))
def test_no_surroundings_hide_a_known_value(before: str, after: str) -> None:
    assert "known-value" in find_secrets(f"{before} {KNOWN} {after}", [KNOWN])


@pytest.mark.attack(33)
@given(st.binary(max_size=5), st.binary(max_size=5))
def test_no_alignment_hides_a_known_value_in_base64(before: bytes, after: bytes) -> None:
    assert "known-value" in find_secrets(base64.b64encode(before + RAW + after).decode(), [KNOWN])


@given(st.text(max_size=60))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text, [KNOWN])
    assert redact(once, [KNOWN]) == once


@pytest.mark.attack(33)
@pytest.mark.parametrize("length", range(8, len(KNOWN)))
@pytest.mark.parametrize("writing", ["plain", "base64"])
def test_what_a_cut_left_of_a_known_value_is_no_less_secret(length: int, writing: str) -> None:
    assert redact(f"see {WRITINGS[writing][:length]}…", [KNOWN]) == "see [redacted: known-value]…"


@pytest.mark.benign("secrets")
def test_a_cut_far_from_the_beginning_of_a_known_value_is_only_a_cut() -> None:
    text = f"see {KNOWN[:10]} and so on… there"
    assert redact(text, [KNOWN]) == text


@pytest.mark.attack(15)
@pytest.mark.parametrize("part", [KNOWN[:12] + "…", "…", f"{KNOWN},", WRITINGS["base64"], "A"])
def test_no_text_takes_long_to_search(part: str) -> None:
    text = (part * 200_000)[:200_000]
    begun = time.process_time()
    redact(text, [KNOWN])
    assert time.process_time() - begun < 10


# --- records ---------------------------------------------------------------------------


@pytest.mark.attack(33)
def test_no_text_of_a_record_keeps_it_however_deep_it_lies() -> None:
    issue = ReviewIssue(message=f"it says {KNOWN}")
    event = LoopEvent("review.verdict", f"see {KNOWN} there", issues=(issue,))
    kept = redact_record(HatOutput("reviewer", 3, event, f"I found {KNOWN}.", calls=(f"Bash echo {KNOWN}",)), (KNOWN,))
    assert KNOWN not in str(kept)
    assert (kept.hat, kept.iteration, kept.event and kept.event.topic) == ("reviewer", 3, "review.verdict")


def test_what_holds_nothing_is_the_same() -> None:
    record = HatOutput("builder", 1, LoopEvent("build.done", "done"), "It is there.")
    assert redact_record(record, (KNOWN,)) == record
    assert strip_known(record, (KNOWN,)) is record


@pytest.mark.attack(33)
@pytest.mark.parametrize("form", [KNOWN, WRITINGS["base64"]])
def test_a_known_value_goes_from_every_kind_of_container(form: str) -> None:
    value = ({"a": [f"one {form}", 2]}, frozenset({f"two {form}"}), LoopEvent("x", f"3 {form}"), Status.PLANNED, b"4")
    kept = strip_known(value, (KNOWN,))
    assert not any(form in text for text in texts(kept))
    assert kept[0]["a"][1] == 2 and kept[3] is Status.PLANNED and kept[4] == b"4"
    assert [type(one) for one in kept] == [type(one) for one in value]


def test_a_text_that_stood_before_stays_as_it_was() -> None:
    old, new = f"an old {KNOWN}", f"a new {KNOWN}"
    assert strip_known((old, new), (KNOWN,), {old}) == (old, "a new [redacted: known-value]")


def test_the_value_of_a_secret_is_one_line_that_is_looked_for_elsewhere() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nab\n-----END PRIVATE KEY-----"
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    text = f"{key}\nx = '{token}'\npostgres://mara:monkey7@db/x"
    assert secret_values(text) == {
        ("private-key", "MIIEvQIBADANBgkqhkiG9w0"),
        ("github-token", token),
        ("url-password", ":monkey7@"),
    }
