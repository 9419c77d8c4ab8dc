"""A secret in any writing, wherever an attacker puts it: found, cut out, refused; what only looks like one passes."""

from __future__ import annotations

import json

import pytest

from ralph_mission.agents import reading
from ralph_mission.bootstrap.known import known_secrets
from ralph_mission.loop import critique, verdicts
from ralph_mission.loop.model import VERDICT, Event
from ralph_mission.mission import review_text
from ralph_mission.safety.discretion import discreet
from ralph_mission.safety.objections import inspect, verdict
from ralph_mission.safety.secrets import find_secrets, redact, without
from tests.attacks.canaries import CANARY, ENVIRONMENT, PASSPHRASE, TRANSFORMS, left_in
from tests.mission.build import pull
from tests.safety.making import change, patch

KNOWN = tuple(ENVIRONMENT.values())
SURROUNDINGS = ("{}", "see {} there", "a\n\n{}\n\nb", "| a | {} |\n|---|---|", "> {}", "```\n{}\n```", "({})", "x={};")


@pytest.mark.long  # every writing in every place; tests/safety has some of them
@pytest.mark.attack(33)
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("value", KNOWN, ids=["random", "words"])
def test_a_known_value_is_found_in_any_writing_and_nothing_of_it_is_left(value: str, name: str) -> None:
    for around in SURROUNDINGS:
        text = around.format(TRANSFORMS[name](value))
        assert "known-value" in find_secrets(text, KNOWN), text
        assert left_in(redact(text, KNOWN).encode()) == [], text
        assert left_in(without(text, KNOWN).encode()) == [] or "\n" in TRANSFORMS[name](value), text


MANGLED_TWICE = (
    "its beginning dropped", "base64, third alignment", "base64 of base64", "hex of base64", "unicode escapes", "bits",
    "entities twice", "with terminal colours", "with tags", "with comments", "with links", "in wide letters",
)  # fmt: skip  # one list
"""Writings of which a cut leaves what no rule knows: where it counts a text is searched before it is cut."""


@pytest.mark.long  # every writing in every place; tests/safety has some of them
@pytest.mark.attack(33)
@pytest.mark.parametrize("name", [name for name in TRANSFORMS if name not in MANGLED_TWICE])
def test_what_a_cut_left_of_a_value_is_found_by_where_it_was_cut(name: str) -> None:
    echo = f"the value is {TRANSFORMS[name](CANARY)}"
    for length in range(14, len(echo), 3):
        cut = f"{echo[:length]}…"
        assert left_in(redact(cut, KNOWN).encode()) == [], cut


def verdict_of(payload: object) -> str:
    return str(discreet(verdicts.issues(Event(VERDICT, json.dumps(payload))), KNOWN))


BOUNDED = {
    "a call of a tool": (reading.CALL_CHARACTERS, lambda text: discreet((reading.line(text),), KNOWN)[0]),
    "what a reviewer says": (verdicts.LONGEST, lambda text: verdict_of({"issues": [{"message": text}]})),
    "where it says so": (verdicts.LONGEST, lambda text: verdict_of({"issues": [{"message": "a", "file": text}]})),
    "its kind": (100, lambda text: verdict_of({"issues": [{"message": "a", "kind": text}]})),
    "a line of a reviewer": (verdicts.LONGEST, lambda text: verdict_of([text])),
    "a verdict of no form": (200, lambda text: str(discreet(verdicts.issues(Event(VERDICT, text)), KNOWN))),
    "an objection": (critique.LONGEST, lambda text: str(discreet(critique.read(objecting(text), ()), KNOWN))),
    "a critique of no form": (200, lambda text: str(discreet(critique.read(text, ()), KNOWN))),
    "a diff": (review_text.DIFF, lambda text: review_text.material(pull(), None, text, "a" * 40, secrets=KNOWN)),
}
"""Where a text is cut before it is known to hold nothing, how long it may be there, and what is said of it at last."""


def objecting(text: str) -> str:
    return json.dumps({"verdict": "reject", "objections": [text]})


@pytest.mark.attack(33)
@pytest.mark.parametrize("place", BOUNDED)
def test_what_the_bound_of_a_text_leaves_of_a_value_is_not_said(place: str) -> None:
    bound, told = BOUNDED[place]
    for left in (12, 16, 19):
        text = ("tides " * bound)[: bound - left - 1] + f" {CANARY} and more"
        assert left_in(told(text).encode()) == [], left


@pytest.mark.long  # every writing in every place; tests/safety has some of them
@pytest.mark.attack(33, 34)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_change_that_holds_one_is_denied_in_a_line_and_in_a_name(name: str) -> None:
    echo = TRANSFORMS[name](CANARY)
    within = inspect(patch(change(new=f"key = {echo}\n".encode())), secrets=KNOWN)
    assert (next(one.rule for one in within if one.rule == "secret"), verdict(within)) == ("secret", "deny")
    if not set(echo) & set("/\n"):
        named = inspect(patch(change(f"src/{echo}.py", None, b"x\n")), secrets=KNOWN)
        assert "secret" in {one.rule for one in named}


FORMATS = {
    "slack-token": ("xap" + "p-1-" + "A1b2C3d4-" * 3 + "ab", 
        "https://hooks.slack." + "com/services/T0/B0/" + "a1B2" * 6),
    "google-key": ("ya2" + "9." + "a1B2c" * 8, "GOC" + "SPX-" + "a1B2" * 7),
    "model-key": ("gs" + "k_" + "a1B2" * 13, "xa" + "i-" + "a1B2" * 20, 
        "pp" + "lx-" + "a1B2" * 12, "r8" + "_" + "a1B2" * 10),
    "square-token": ("sq0" + "atp-" + "a1B2c3D4e5F6g7H8i9J0kL",),
    "shopify-token": ("shp" + "at_" + "0a1b" * 8,),
    "twilio-key": ("S" + "K" + "0a1b" * 8,),
    "mailchimp-key": ("0a1b" * 8 + "-us" + "12",),
    "discord-token": ("M" + "TIzNDU2Nzg5MDEyMzQ1Njc4" + ".Ga1B2c." + "a1B2" * 7,),
    "twitter-bearer": ("A" * 21 + "Ba1B2c3" + "%3D" + "a1B2c3D4" * 4,),
    "private-key": ("AGE-SECRET-" + "KEY-1" + "A1B2" * 14, "PuTTY-User-" + "Key-File-2: ssh-rsa"),
    "npm-token": ("//registry/:_auth" + "Token=" + "a1B2" * 6,),
    "rubygems-key": ("rubygems" + "_" + "0a1b" * 12,),
    "docker-token": ("dckr" + "_pat_" + "a1B2" * 6,),
    "hugging-face-token": ("h" + "f_" + "a1B2" * 8 + "cD",),
    "sendgrid-key": ("S" + "G." + "a1B2" * 5 + "." + "a1B2" * 10,),
    "azure-key": ("Account" + "Key=" + "a1B2" * 21 + "ab==",),
    "signed-address": ("https://x.example/a?se=1&" + "sig=" + "a1B2" * 11, 
        "https://x.example/a?X-Amz-" + "Signature=" + "0a1b" * 16),
    "digitalocean-token": ("do" + "p_v1_" + "0a1b" * 16,),
    "databricks-token": ("da" + "pi" + "0a1b" * 8,),
    "heroku-key": ("HR" + "KU-" + "a1B2" * 9,),
    "supabase-key": ("sb" + "p_" + "0a1b" * 10, "sb_" + "secret_" + "a1B2" * 6),
    "vault-token": ("hv" + "s." + "a1B2" * 7,),
    "doppler-token": ("dp." + "pt." + "a1B2" * 11,),
    "pulumi-token": ("pu" + "l-" + "0a1b" * 10,),
    "terraform-token": ("a1B2c3D4e5F6g7" + ".atlas" + "v1." + "a1B2" * 16,),
    "1password-token": ("ops_" + "eyJ" + "a1B2" * 16,),
    "grafana-token": ("gl" + "sa_" + "a1B2" * 9,),
    "sentry-token": ("sntry" + "s_" + "a1B2" * 11,),
    "new-relic-key": ("NR" + "AK-" + "A1B2C3D4E" * 3,),
    "sonar-token": ("sq" + "p_" + "0a1b" * 10,),
    "atlassian-token": ("ATA" + "TT3" + "a1B2" * 16,),
    "linear-key": ("lin_" + "api_" + "a1B2" * 10,),
    "notion-token": ("nt" + "n_" + "a1B2" * 11,),
    "authorization": ("Authorization: " + "Basic " + "a1B2" * 6, "authorization: bearer " + "a1B2.c3-4" * 3),
}  # fmt: skip  # one table
TOKENS = [(kind, token) for kind, tokens in FORMATS.items() for token in tokens]


@pytest.mark.attack(33)
@pytest.mark.parametrize(("kind", "token"), TOKENS, ids=[f"{kind}-{number}" for number, (kind, _) in enumerate(TOKENS)])
def test_a_token_of_a_format_that_its_issuer_publishes_is_found_and_cut_out(kind: str, token: str) -> None:
    assert kind in find_secrets(f"a {token} b")
    assert token not in redact(f"a {token} b")


BENIGN = [
    "commit 8f3c1f6c0b7a4d0e9e2f5b6a7c8d9e0f1a2b3c4d",
    "sha256:" + "0f1e2d3c" * 8,
    "integrity sha512-" + "AbCd1234+/" * 8 + "==",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "uuid 123e4567-e89b-12d3-a456-426614174000",
    "The token is read from GITHUB_TOKEN; the secret from `secrets.NPM_TOKEN`.",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer <token>",
    "password = getpass.getpass()",
    "postgresql://user:password@localhost:5432/app",
    "export AWS_SECRET_ACCESS_KEY=...",
    "https://example.org/a/b?sig=short&x=1",
    "class SkipLastThingInTheRow: pass",
    "sk-learn and task-force-members-everywhere",
    "ghp_ is how a token begins; xoxb- and AKIA too",
    "-----BEGIN CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----",
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA",
    "Zürich, Größe, naïve café; 日本語; می‌خواهم",  # as it is written
    "The mast, the kelp and the harbour: ninety ropes in 41 boats.",
    "SELECT token_count, secret_santa FROM parties WHERE api_key_id = 12",
    "cache-key: linux-0123456789abcdef0123456789abcdef",
    "eyJhbGciOiJub25lIn0",
    "key=value; token=abc; secret=none",
    "base64 of words: aGVsbG8gd29ybGQsIHRoaXMgaXMgb3JkaW5hcnk=",
    "hex: 68656c6c6f20776f726c642c20746869732069732066696e65",
    "H4sIAAAAAAAAA8tIzcnJVyjPL8pJAQCFEUoNCwAAAA==",
    "SG is Singapore; hf_ and npm_ are prefixes, r8_ too",
    "M.A. Thesis.Chapter1.TheLongTitleOfAChapterThatGoesOn",
    "dp.pt means deposit paid; pul- is pulling; sq0 nothing",
]


@pytest.mark.benign("secrets")
@pytest.mark.parametrize("text", BENIGN, ids=lambda text: ascii(text[:24]))
def test_what_only_looks_like_a_secret_passes_as_it_is(text: str) -> None:
    assert find_secrets(text, KNOWN) == ()
    assert redact(text, KNOWN) == without(text, KNOWN) == text


NAMED = (
    "HARBOUR_TOKEN",
    "MY_PASSWD",
    "STORE_PASSPHRASE",
    "SIGNING_KEY",
    "SESSION_COOKIE",
    "APP_CREDENTIALS",
    "MYAPIKEY",
    "DB_PASS",
    "SMTP_PASS",
    "MYSQL_PWD",
    "FTP_PW_2",
    "STRIPE_KEY",
    "OPENAI_KEY",
    "BASIC_AUTH",
    "GITLAB_PAT",
    "CLOUD_CREDS",
    "PASS",
)


@pytest.mark.parametrize("name", NAMED)
def test_a_variable_is_known_as_a_secret_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, PASSPHRASE)
    assert PASSPHRASE in known_secrets()


def test_a_variable_is_known_as_a_secret_by_its_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = "http://mara:" + "kelp41harbour" + "@proxy.example:3128"
    monkeypatch.setenv("COMPANY_PROXY", proxy)
    assert proxy in known_secrets()


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("SENTRY_DSN", "https://{}@sentry.example/42"),
        ("REDIS_URL", "redis://:{}@cache.example:6379/0"),
        ("HOOK_URI", "https://hooks.example/a?token={}&x=1"),
        ("STORE_DSN", "host=db.example user=mara password={}"),
        ("CHAT_URL", "https://chat.example/a#{}"),
    ],
)
def test_an_address_with_which_somebody_signs_in_is_one_and_so_is_that_part_alone(
    name: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, address.format(CANARY))
    known = known_secrets()
    assert address.format(CANARY) in known
    assert left_in(redact(f"it is {CANARY} there", known).encode()) == []


@pytest.mark.benign("secrets")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PWD", "/home/mara/no-such-folder"),
        ("OLDPWD", "/home/mara/no-such-folder"),
        ("SSH_AUTH_SOCK", "/run/no-such-socket"),
        ("COMPASS", "north-by-northwest"),
        ("BYPASS_CHECKS", "on-weekends"),
        ("SSH_PUBLIC_KEY", "ssh-ed25519 AAAAC3NzaC1lZDI1 mara"),
        ("NEXT_PUBLIC_MAP_KEY", "pk-0a1b2c3d4e5f"),
        ("CACHE_KEY", "linux-py3.11-0a1b2c3d"),
        ("SORT_KEY", "created-at"),
        ("GPG_KEY", "A035C8C19219BA821ECEA86B64E628F8D684696D"),
        ("BASIC_AUTH", "required"),
        ("KEYBOARD", "querty-uiop"),
        ("APP_URL", "https://tides.example/harbour?lang=en"),
        ("DATA_DSN", "host=db.example user=mara dbname=slackwater"),
        ("STORE_URI", "sqlite:///var/tides.db"),
    ],
)
def test_a_variable_that_lets_nobody_in_is_no_secret(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert value not in known_secrets()


def test_where_a_secret_is_kept_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", __file__)
    assert __file__ not in known_secrets()


@pytest.mark.benign("secrets")
@pytest.mark.parametrize("value", ["postgres", "password", "changeme"])
def test_a_password_that_is_a_word_of_any_text_is_no_secret(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRES_PASSWORD", value)
    assert value not in known_secrets()


def test_a_key_of_many_lines_is_known_by_any_of_them() -> None:
    lines = [
        "-----BEGIN " + "OTHER KEY-----",
        "a1B2c3D4e5F6g7H8i9J0kLmN",
        "o1P2q3R4s5T6u7V8w9X0yZaB",
        "-----END OTHER KEY-----",
    ]
    for line in lines[1:3]:
        assert find_secrets(f"see {line} there", ["\n".join(lines)]) == ("known-value",)
    assert find_secrets("see -----END OTHER KEY----- there", ["\n".join(lines)]) == ()
