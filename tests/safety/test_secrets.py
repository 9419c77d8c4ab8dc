"""Secrets in every disguise that an agent under foreign control might try. No literal here looks like one."""

from __future__ import annotations

import base64
import gzip
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.safety.secret_parts import credentials, only_names
from ralph_mission.safety.secrets import find_secrets, redact

KNOWN = "zq" + "x_" + "Qx7Rt2Lm9ZpW4vKd8NsB3y"
RAW = KNOWN.encode()
DISGUISES = {
    "plain": KNOWN,
    "upper case": KNOWN.upper(),
    "prefix dropped": KNOWN[4:],
    "end dropped": KNOWN[:-5],
    "reversed": KNOWN[::-1],
    "base64": base64.b64encode(RAW).decode(),
    "base64, second alignment": base64.b64encode(b"a" + RAW + b"bc").decode(),
    "base64, third alignment": base64.b64encode(b"ab" + RAW + b"c").decode(),
    "url-safe base64": base64.urlsafe_b64encode(b"a" + RAW).decode(),
    "base64 in lines": "\n".join(base64.b64encode(RAW).decode()[n : n + 8] for n in range(0, 40, 8)),
    "base64 of the reverse": base64.b64encode(RAW[::-1]).decode(),
    "reversed base64": base64.b64encode(b"a" + RAW).decode()[::-1],
    "reversed base32": base64.b32encode(RAW).decode()[::-1],
    "reversed hex": RAW.hex()[::-1],
    "hex": RAW.hex(),
    "upper hex": RAW.hex().upper(),
    "hex with spaces": RAW.hex(" "),
    "hex with escapes": "".join(f"\\x{octet:02x}" for octet in RAW),
    "hex numbers": ", ".join(f"0x{octet:02x}" for octet in RAW),
    "unicode escapes": "".join(f"\\u{octet:04x}" for octet in RAW),
    "url-encoded": "".join(f"%{octet:02X}" for octet in RAW),
    "partly url-encoded": quote(KNOWN).replace("Q", "%51").replace("7", "%37"),
    "half url-encoded": "".join(f"%{o:02X}" if n % 2 else chr(o) for n, o in enumerate(RAW)),
    "entities": "".join(f"&#{octet};" for octet in RAW),
    "spaces": " ".join(KNOWN),
    "newlines": "\n".join(KNOWN),
    "zero-width": "\u200b".join(KNOWN),
    "two strings": f'"{KNOWN[:9]}" + "{KNOWN[9:]}"',
    "dashes": "-".join(KNOWN[n : n + 4] for n in range(0, len(KNOWN), 4)),
    "terminal colours": "\x1b[31m".join((KNOWN[:5], KNOWN[5:])),
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
@pytest.mark.parametrize("disguise", DISGUISES)
def test_c33_a_known_secret_is_found_in_every_disguise(disguise: str) -> None:
    assert "known-value" in find_secrets(f"see {DISGUISES[disguise]} there", [KNOWN])


@pytest.mark.attack(33)
@pytest.mark.parametrize("disguise", DISGUISES)
def test_c33_a_redacted_text_holds_no_disguise(disguise: str) -> None:
    safe = redact(f"see {DISGUISES[disguise]} there", [KNOWN])
    assert find_secrets(safe, [KNOWN]) == ()
    assert KNOWN[4:12] not in safe


@pytest.mark.attack(33)
@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_of_a_common_format_is_found(kind: str) -> None:
    assert kind in find_secrets(f"x {TOKENS[kind]} y")


@pytest.mark.attack(33)
@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_split_by_zero_width_characters_is_found(kind: str) -> None:
    token = TOKENS[kind]
    assert kind in find_secrets(token[:9] + "\u200b" + token[9:])


@pytest.mark.attack(33)
@pytest.mark.parametrize("kind", TOKENS)
def test_a_redacted_token_is_gone_and_the_rest_stays(kind: str) -> None:
    safe = redact(f"before {TOKENS[kind]} after")
    assert TOKENS[kind] not in safe
    assert safe.startswith("before ") and safe.endswith(" after")


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


def test_a_short_known_value_is_found_reversed() -> None:
    assert find_secrets("x h9fE" + "d3bA y", ["Ab3d" + "Ef9h"]) == ("known-value",)


def test_a_known_value_without_letters_is_found() -> None:
    assert find_secrets("x !@#$%^&*() y", ["!@#$%^&*()"]) == ("known-value",)


@pytest.mark.attack(33)
def test_the_password_of_a_known_url_is_a_secret_too() -> None:
    url = "postgres://app:" + "s3cr3tPassw0rd" + "@db/app"
    assert find_secrets("psql -W " + "s3cr3tPassw0rd", [url]) == ("known-value",)


@pytest.mark.attack(33)
@pytest.mark.parametrize("pair", ["mara:{}", "neo4j/{}", "Basic {}", "token  {}"])
def test_the_password_behind_a_user_is_a_secret_too(pair: str) -> None:
    assert find_secrets("psql -W " + "kelp4111", [pair.format("kelp" + "4111")]) == ("known-value",)


@pytest.mark.benign("secrets")
@pytest.mark.parametrize("value", ["neo4j/password", "created_at:descending", "db.example:54321", "tides:harbour"])
def test_what_stands_behind_a_name_is_none_where_anybody_says_it(value: str) -> None:
    assert find_secrets("descending to 54321, the password of the harbour", [value]) == ()


INSIDE = "Zx81LmQ0pRt5" + "vWn3Kd7H"
ADDRESSES = {
    "a value of its query": "https://chat.example.com/v1/spaces/AAA/messages?key=abc&token={}",
    "a value that is only random": "https://chat.example.com/v1/spaces/AAA/messages?a=1&b={}",
    "its fragment": "https://hooks.example.com/a#{}",
    "the middle of its path": "https://hooks.example.com/services/{}/messages",
    "its user": "https://{}@hooks.example.com/messages",
    "its user beside a common password": "https://{}:x-oauth-basic@hooks.example.com/messages",
    "its user who is the password": "https://{0}:{0}@hooks.example.com/messages",
    "its password in signs": "postgres://app:%5A{}@db.example.com/app",
    "what follows a semicolon": "sqlserver://db.example.com:1433;user=app;password={}",
    "one address within another": "jdbc:postgresql://db.example.com/app?user=app&password={}",
}
SETTINGS = {
    "a connection string": "Server=db.example.com;User=application;Password={};Timeout=30",
    "settings with spaces": "host=db.example.com user=application password={} connect_timeout=10",
    "a document": '{{"type": "service_account", "auth_uri": "https://auth.example.com/messages", "token": "{}"}}',
    "a cookie": "session={}; theme=midnight",
    "a user and a password": "application:{}",
    "a kind and a password": "Bearer {}",
}


@pytest.mark.attack(33)
@pytest.mark.parametrize("held", [*ADDRESSES, *SETTINGS])
def test_what_is_secret_in_a_known_value_is_a_secret_by_itself(held: str) -> None:
    known = (ADDRESSES | SETTINGS)[held].format(INSIDE)
    assert find_secrets(f"the key is {INSIDE} there", [known]) == ("known-value",)
    assert INSIDE[:10] not in redact(f"the key is {INSIDE} there", [known])


@pytest.mark.benign("secrets")
@pytest.mark.parametrize("held", [*ADDRESSES, *SETTINGS])
def test_what_any_text_may_say_of_a_known_value_is_no_secret(held: str) -> None:
    text = "messages in spaces: services of hooks.example.com, db.example.com:1433, the application at midnight, "
    text += "x-oauth, sqlserver, connect_timeout=10, service_account, https://auth.example.com/messages"
    known = (ADDRESSES | SETTINGS)[held].format(INSIDE)
    assert find_secrets(text, [known]) == ()


@pytest.mark.benign("secrets")
@pytest.mark.parametrize(
    ("known", "text"),
    [
        (
            "mongodb://db.example.com/tides?authMechanism=SCRAM-SHA-256&authSource=slackwater",
            "SCRAM-SHA-256, slackwater",
        ),
        (
            "postgres://mara@db.example.com/tides?sslmode=verify-full&sslkey=/etc/tides/client.key",
            "/etc/tides/client.key",
        ),
        ("postgres://slackwater-app@db.example.com/tides", "slackwater-app"),
        (
            f"https://mara:{INSIDE}@hooks.example.com/api/v2/harbours/4711081512345678/notifications?wait=true",
            "api harbours notifications",
        ),
        ("Endpoint=sb://bus.example.com/;SharedAccessKeyName=RootManageSharedAccessKey", "RootManageSharedAccessKey"),
        ("user=harbourmaster;password=password", "the harbourmaster says password"),
    ],
)
def test_names_and_settings_in_a_known_value_are_no_secrets(known: str, text: str) -> None:
    assert find_secrets(text, [known]) == ()


@pytest.mark.benign("secrets")
def test_the_address_of_a_known_url_is_no_secret() -> None:
    url = "https://discord.example/api/webhooks/123456789012345678/" + "Zz9Yy8Xx7Ww6Vv5Uu4"
    assert find_secrets("see https://discord.example/api/webhooks/ for more", [url]) == ()


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("postgres://postgres:postgres@localhost:5432/slackwater", "postgres keeps slackwater/tides.py"),
        ("postgres://slackwater:slackwater@localhost/slackwater_test", "src/slackwater/tides.py, slackwater_test"),
        ("mysql://root:changeme@localhost/tide-tables", "docs/tide-tables.md: changeme"),
        ("postgres://postgres@localhost:5432/slackwater_test1", "the tests make slackwater_test1"),
        ("ssh://git@forge.example/Mara/Slackwater2.git", "clone https://forge.example/Mara/Slackwater2.git"),
        ("https://mara@forge.example/Mara/_git/Slackwater-tides2", "Mara/_git/Slackwater-tides2"),
        (f"https://mara:{INSIDE}@forge.example/Mara/Slackwater2.git", "see Mara/Slackwater2.git"),
    ],
)
def test_a_database_of_the_project_s_name_makes_that_name_no_secret(address: str, named: str) -> None:
    assert find_secrets(named, [address]) == ()
    assert "known-value" in find_secrets(f"{named} {address}", [address])


@pytest.mark.attack(33)
@pytest.mark.parametrize("address", ["https://ntfy.example/harbourlights", "discord://4711/" + "Zz9Yy8Xx7Ww6Vv5Uu4"])
def test_what_a_hook_s_address_ends_with_is_a_secret(address: str) -> None:
    assert find_secrets(f"it is {address.rpartition('/')[2]} now", [address]) == ("known-value",)


@pytest.mark.attack(33)
@given(before=st.text(max_size=20), after=st.text(max_size=20))
def test_no_surroundings_hide_a_known_secret(before: str, after: str) -> None:
    assert "known-value" in find_secrets(f"{before} {KNOWN} {after}", [KNOWN])


@pytest.mark.attack(33)
@given(st.binary(max_size=5), st.binary(max_size=5))
def test_no_alignment_hides_a_secret_in_base64(before: bytes, after: bytes) -> None:
    assert "known-value" in find_secrets(base64.b64encode(before + RAW + after).decode(), [KNOWN])


@given(st.text(max_size=60))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text, [KNOWN])
    assert redact(once, [KNOWN]) == once


@pytest.mark.attack(33)
def test_what_unpacks_to_more_than_we_read_is_no_way_out() -> None:
    packed = base64.b64encode(gzip.compress(bytes(1_100_000) + RAW)).decode()
    assert find_secrets(f"see {packed} there", [KNOWN]) == ("packed-data",)
    assert redact(f"see {packed} there", [KNOWN]) == "see [redacted: packed-data]"


@pytest.mark.attack(33)
@pytest.mark.parametrize("length", range(8, len(KNOWN)))
def test_what_a_cut_left_of_a_known_value_is_no_less_secret(length: int) -> None:
    short = "".join(letter for letter in KNOWN if letter.isalnum())[:length]
    assert redact(f"see {short}… there", [KNOWN]).startswith("see [redacted: known-value]")
    assert redact(f"see {short} … there", [KNOWN]).startswith("see [redacted: known-value]")


@pytest.mark.benign("secrets")
def test_a_cut_far_from_the_beginning_of_a_known_value_is_only_a_cut() -> None:
    text = f"see {KNOWN[:10]} and so on… there"
    assert redact(text, [KNOWN]) == text


HOSTILE = {
    "cuts": KNOWN[:12] + "…",
    "nothing but cuts": "…",
    "one word": f"{KNOWN},",
    "packed": base64.b64encode(gzip.compress(bytes(1_000_000))).decode().rstrip("=") + " ",
}


@pytest.mark.attack(15)
@pytest.mark.parametrize("part", HOSTILE)
def test_no_text_takes_long_to_search(part: str) -> None:
    text = (HOSTILE[part] * 200_000)[:200_000]
    begun = time.process_time()
    redact(text, [KNOWN])
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("part", ["A1b2", "a.b", "#kelpharbour", "linux-"])
def test_no_value_takes_long_to_be_judged(part: str) -> None:
    value = (part * 1_000_000)[:1_000_000]
    begun = time.process_time()
    credentials(value)
    only_names(value, "[:-]+")
    assert time.process_time() - begun < 4
