"""A secret in any writing, wherever an attacker puts it: found, cut out, refused; what only looks like one passes."""

from __future__ import annotations

import json
import random
from itertools import product
from string import ascii_lowercase as LETTERS
from string import digits as DIGITS

import pytest

from ralph_mission.adapters.agents import reading
from ralph_mission.app.secrets import environment_secrets
from ralph_mission.loop.model.state import VERDICT, LoopEvent
from ralph_mission.loop.rules import verdicts
from ralph_mission.loop.teams import ralplan
from ralph_mission.mission.reviews import review
from ralph_mission.safety.objections import inspect, verdict
from ralph_mission.safety.secrets import find_secrets, redact, redact_record, without
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
        assert left_in(without(text, KNOWN).encode()) == [], text


@pytest.mark.long  # every writing in every place; tests/safety has some of them
@pytest.mark.attack(33)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_a_cut_left_of_a_value_is_found_by_where_it_was_cut(name: str) -> None:
    echo = f"the value is {TRANSFORMS[name](CANARY)}"
    for length in range(26, len(echo), 3):
        cut = f"{echo[:length]}…"
        assert left_in(redact(cut, KNOWN).encode()) == [], cut


def verdict_of(payload: object) -> str:
    return str(redact_record(verdicts.parse_issues(LoopEvent(VERDICT, json.dumps(payload))), KNOWN))


BOUNDED = {
    "a call of a tool": (reading.CALL_CHARACTERS, lambda text: redact_record((reading.line(text),), KNOWN)[0]),
    "what a reviewer says": (verdicts.LONGEST, lambda text: verdict_of({"issues": [{"message": text}]})),
    "where it says so": (verdicts.LONGEST, lambda text: verdict_of({"issues": [{"message": "a", "file": text}]})),
    "its kind": (100, lambda text: verdict_of({"issues": [{"message": "a", "kind": text}]})),
    "a line of a reviewer": (verdicts.LONGEST, lambda text: verdict_of([text])),
    "a verdict of no form": (
        200,
        lambda text: str(redact_record(verdicts.parse_issues(LoopEvent(VERDICT, text)), KNOWN)),
    ),
    "an objection": (
        ralplan.LONGEST,
        lambda text: str(redact_record(ralplan.parse_critique(objecting(text), ()), KNOWN)),
    ),
    "a critique of no form": (200, lambda text: str(redact_record(ralplan.parse_critique(text, ()), KNOWN))),
    "a diff": (review.DIFF, lambda text: review.review_material(pull(), None, text, "a" * 40, secrets=KNOWN)),
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
    "PASS",
    "DBPASS",
)

NAMED_KEYS = (
    "STRIPE_KEY", "OPENAI_KEY", "BASIC_AUTH", "GITLAB_PAT", "CLOUD_CREDS", "BASICAUTH", "SESSION_KEYS", "DEPLOY_PATS",
    "CLOUD_CREDS_JSON", "STORE_KEY_B64",
)  # fmt: skip  # one list
"""Names whose values have to look like a key."""

SHAPES = {
    "words": PASSPHRASE,
    "letters and digits": CANARY,
    "base32": "mfrggzdfmztwq2lknnwg23tpobyx" + "e43uov3ho6dzpjrgy5d2onsxg4lb",
    "base36": "k3v9q0zt1m8x2r7b",
    "hexadecimal": "3f9a1c7be2d04586",
    "capitals": "Q7XK2MZT5RWJ4VNB",
    "two cases": "hTqWzRbNcLpXvKdJmGyFsAeU",
    "small letters": "qzxkvwmtrpljhgbndfscyaoeuiqzxkvw",
    "base64": "Zq9x/Rt2L+m7ZpW4v/Kd8NsB",
    "signs": "k9*/w2&m(q7x)!z4",
    "few signs": "a9$k2!m@p#z",
    "groups": "A1B2-C3D4-E5F6-G7H8",
}
"""What the makers of keys make."""
KEYS = [shape for shape in SHAPES if shape != "words"]


@pytest.mark.attack(33)
@pytest.mark.parametrize(("name", "shape"), [*product(NAMED, SHAPES), *product(NAMED_KEYS, KEYS)])
def test_a_variable_is_known_as_a_secret_by_its_name(name: str, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, SHAPES[shape])
    assert SHAPES[shape] in environment_secrets()


KINDS = {
    "a token of 52 letters": ("AZURE_DEVOPS_EXT_PAT", LETTERS + "234567", 52),
    "a key of 43 letters": ("NUGET_KEY", LETTERS + "234567", 43),
    "32 letters and digits": ("STORE_KEY", LETTERS + DIGITS, 32),
    "20 letters and digits": ("STORE_KEY", LETTERS + DIGITS, 20),
    "16 letters and digits": ("STORE_KEY", LETTERS + DIGITS, 16),
    "16 hexadecimal digits": ("STORE_KEY", DIGITS + "abcdef", 16),
    "16 capitals and digits": ("STORE_KEY", LETTERS.upper() + "234567", 16),
    "16 of both cases": ("STORE_KEY", LETTERS + LETTERS.upper() + DIGITS, 16),
    "22 of base64": ("STORE_KEY", LETTERS + LETTERS.upper() + DIGITS + "+/", 22),
    "50 with signs": ("DJANGO_KEY", LETTERS + DIGITS + "!@#$%^&*(-_=+)", 50),
    "an id of 16 hexadecimal digits": ("VAULT_SECRET_ID", DIGITS + "abcdef", 16),
}
"""A name, what its value is made of, and how long it is."""


@pytest.mark.attack(33)
@pytest.mark.parametrize("kind", KINDS)
def test_nearly_all_that_a_machine_makes_is_known_as_a_secret(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, letters, length = KINDS[kind]
    source, known = random.Random(kind), 0
    for _ in range(100):
        monkeypatch.setenv(name, value := "".join(source.choices(letters, k=length)))
        known += value in environment_secrets()
    assert known >= 90


def test_a_variable_is_known_as_a_secret_by_its_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = "http://mara:" + "kelp41harbour" + "@proxy.example:3128"
    monkeypatch.setenv("COMPANY_PROXY", proxy)
    assert proxy in environment_secrets()


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("REDIS_URL", "redis://:{}@cache.example:6379/0"),
        ("DATABASE_URL", "postgres://mara:{}@db.example/tides"),
        ("PROXY", "http://mara:{}@proxy.example:3128"),
    ],
)
def test_an_address_with_a_password_is_one_and_so_is_the_password_alone(
    name: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, address.format(CANARY))
    known = environment_secrets()
    assert address.format(CANARY) in known
    assert left_in(redact(f"it is {CANARY} there", known).encode()) == []


COMMIT = "2d711642b726b04401627ca9fbac32f5c8530fb1"


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
        ("COMPASS", "North-by-Northwest-2"),
        ("SONAR_PROJECT_KEY", "Harbour2_tide-tables"),
        ("JIRA_PROJECT_KEY", "SLACKWATER"),
        ("ISSUE_KEY", "TIDE-12345"),
        ("S3_KEY", "docs/README.md"),
        ("HARBOUR_HOST_KEY", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk3 mara"),
        ("LOOKUP_KEY", "createdAt"),
        ("LOCK_KEY", "tides:harbour:v2"),
        ("SHORTCUT_KEY", "Ctrl+Shift+K"),
        ("GIT_CONFIG_KEY_1", "http.https://forge.example/.extraheader"),
        ("TEST_PAT", r"^test_[a-z]+\.py$"),
        ("LOGIN_AUTH", "https://login.example:8443/oauth2/authorize"),
        ("CLOUD_CREDS", "secrets/cloud-1.json"),
        ("OVERPASS", "https://overpass.example/api/interpreter"),
        ("MULTIPASS", "Ubuntu-24.04"),
        ("HIGHPASS", "200Hz-12dB"),
        ("SSH_ASKPASS", "/usr/lib/no-such-program"),
        ("UPLOAD_KEY", "Releases/v2/tides.tar.gz"),
        ("EXCLUDE_PAT", "**/node_modules/**"),
        ("IDEMPOTENCY_KEY", "Nightly-2024"),
        ("CURRENT_KEY", "Linux-x64"),
        ("SSH_PUB_KEY", "ssh-ed25519 AAAAC3NzaC1lZDI1 mara"),
        ("STRIPE_PUBLISHABLE_KEY", "pk-51HxABCDEFGHIJKLMNOP"),
        ("TURNSTILE_SITE_KEY", "1x00000000000000000000AA"),
        ("NODE_AUTH", "Required"),
        ("REGISTRY_AUTH", "registry.example:5000"),
        ("GIT_URL", "ssh://git@forge.example/Mara/Slackwater2.git"),
        ("REPO_URL", "https://git@forge.example/Mara/Slackwater2.git"),
        ("AZURE_URL", "https://slackwater-organisation@forge.example/mara/_git/tides"),
        ("PG_URL", "postgres://postgres@localhost/slackwater_test1"),
        ("WIKI_URL", "https://forge.example/mara/webhook-notes/" + "0a1b2c3d" * 5),
        ("SIGN_IN_TOKEN_URL", "https://login.example/oauth/token"),
        ("SECRET_NAME", "harbour-secrets"),
        ("MAX_OUTPUT_TOKENS", "100000000"),
        ("TOKENIZERS_PARALLELISM", "disabled"),
        ("COOKIECUTTER_CONFIG", "tides-template"),
        ("SSH_KEY", "~/.ssh/id_ed25519"),
        ("FIELD_KEY", "customer:billingAddress"),
        ("LOOKUP_KEY", "resource:Dockerfile"),
        ("MESSAGE_KEY", "errors:notFound"),
        ("GROUP_KEY", "group:README.md"),
        ("TRANSLATION_KEY", "common:buttonSave"),
        ("JOB_KEY", "build (ubuntu-24.04, 3.12)"),
        ("GROUP_KEY", "mara/tide-tables#123"),
        ("HARBOUR_HOST_KEY", "forge.example ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk3"),
        ("HARBOUR_HOST_KEY", "|1|kelpharbour41=|slack/water+42= ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk3"),
        ("HARBOUR_HOST_KEY", "[fe80::1%eth0]:22 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk3"),
        ("RESTORE_KEY", "Linux-node-" + "0a1b2c3d" * 8),
        ("RESTORE_KEY", "Windows-x64-node-20-pnpm-v9-" + "0a1b2c3d" * 8),
        ("COMMIT_KEY", COMMIT),
    ],
)
def test_a_variable_that_lets_nobody_in_is_no_secret(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_SHA", COMMIT)
    monkeypatch.setenv(name, value)
    assert value not in environment_secrets()


RUNNERS = """
CI=true
GITHUB_ACTION=__mara_tides
GITHUB_ACTION_PATH=/opt/runner/_jobs/_actions/mara/tides/v1
GITHUB_ACTOR=mara-of-the-harbour
GITHUB_API_URL=https://api.github.com
GITHUB_ENV=/opt/runner/_jobs/_temp/_runner_file_commands/set_env_87406d6e-4979-4d42-98e1-3dab1f48b13a
GITHUB_GRAPHQL_URL=https://api.github.com/graphql
GITHUB_REF=refs/heads/main
GITHUB_REPOSITORY=Harbour2/tide-tables
GITHUB_REPOSITORY_ID=123456789
GITHUB_RUN_ID=9876543210
GITHUB_SERVER_URL=https://github.com
GITHUB_SHA=0123456789abcdef0123456789abcdef01234567
GITHUB_WORKFLOW_REF=Harbour2/tide-tables/.github/workflows/ralph.yml@refs/heads/main
GITHUB_WORKSPACE=/opt/runner/_jobs/tide-tables/tide-tables
RUNNER_NAME=GitHub Actions 1000000123
RUNNER_TRACKING_ID=github_2b8f3b2a-7c1f-4a8e-9d1c-0e2f3a4b5c6d
RUNNER_TOOL_CACHE=/opt/hostedtoolcache
ACTIONS_RUNTIME_URL=https://pipelines.actions.githubusercontent.com/9TfFqOaXBqmiDeadBeef12345Zx9QwErTyUiOp/
ACTIONS_RESULTS_URL=https://results-receiver.actions.githubusercontent.com/
ACTIONS_ID_TOKEN_REQUEST_URL=https://run-actions-1.actions.githubusercontent.com/68//idtoken/6d3f8f2b-2a6c-4c0e-9d5a-1f2a3b4c5d6e/0b8a9f7c-1234-4abc-8def-0123456789ab?api-version=2.0
ACTIONS_ORCHESTRATION_ID=6d3f8f2b-2a6c-4c0e-9d5a-1f2a3b4c5d6e.ralph.__default
ACTIONS_RUNNER_HOOK_JOB_STARTED=/opt/runner/Hooks2/started.sh
JAVA_HOME_21_X64=/usr/lib/jvm/temurin-21-jdk-amd64
ImageVersion=20250907.24.1
CHROMEWEBDRIVER=/usr/local/share/chromedriver-linux64
POWERSHELL_DISTRIBUTION_CHANNEL=GitHub-Actions-ubuntu24
INVOCATION_ID=8e1f0d2d4f5e4c1a9c2b3d4e5f607182
JOURNAL_STREAM=9:12345678
CREDENTIALS_DIRECTORY=/run/credentials/actions.runner.Harbour2-tides.service
DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus
LS_COLORS=rs=0:di=01;34:ln=01;36:mh=00:pi=40;33
SSH_AUTH_SOCK=/run/ssh-XXXXaB12/agent.1
GPG_KEY=E3FF2839C048B25C084DEBE9B26995E310250568
PYTHON_GET_PIP_URL=https://github.com/pypa/get-pip/raw/def4aec84b261b939137dd1c69eff0aabb4a7bf4/public/get-pip.py
PYTHON_SHA256=8fb5f9fbc7609fa822cb31549884575db7fd9657cbffb89510b5d7975963a83a
PIP_INDEX_URL=https://packages.example/simple
HTTP_PROXY=http://proxy.example:3128
SONAR_PROJECT_KEY=Harbour2_tide-tables
STORE_KEY=tide-tables
GOOGLE_APPLICATION_CREDENTIALS=./gha-creds-0a1b2c3d.json
GIT_CREDENTIAL_HELPER=manager-core
GIT_CONFIG_KEY_0=user.useConfigOnly
CI_JOB_URL=https://forge.example/mara/tides/-/jobs/1234567890
BUILD_URL=https://build.example/job/main/123456789/?session=develop
REDIRECT_URL=http://localhost:3000/callback
PWD=/opt/runner/_jobs/tide-tables/tide-tables
"""


@pytest.mark.benign("secrets")
def test_nothing_ordinary_in_a_runner_s_environment_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = dict(line.split("=", 1) for line in RUNNERS.split("\n") if line)
    monkeypatch.setattr("os.environ", variables | {"HARBOUR_TOKEN": CANARY})
    assert environment_secrets() == (CANARY,)


@pytest.mark.benign("secrets")
@pytest.mark.parametrize("value", ["Harbour2_tide-tables", "tide-tables", "harbour2/TIDE-TABLES"])
def test_the_repository_s_own_name_is_no_secret_whatever_holds_it(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_REPOSITORY", "Harbour2/tide-tables")
    monkeypatch.setenv("DATABASE_PASSWORD", value)
    assert value not in environment_secrets()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BASICAUTH", "mara:kelp4111"),
        ("BASIC_AUTH", "mara:Kelp-Harbour!"),
        ("BASIC_AUTH", "mara:kelpharbour"),
        ("SMTP_CREDS", "mara:Kelp-Harbour"),
        ("STORE_KEY", "kelp#4111harbour"),
        ("STORE_KEY", "0a1b2c3d" * 5),
        ("STORE_KEY", "key-" + "0a1b2c3d" * 4),
        ("STORE_KEY", "sk-or-v1-" + "0a1b2c3d" * 8),
        ("STORE_KEY", "Linux-Xq9zRt7LpW2k-" + "0a1b2c3d" * 8),
        ("BACKUP_S3_KEY", CANARY),
        ("OBJECT_KEY", CANARY),
        ("STORE_AUTH", "Bearer kelpharbour4111"),
        ("SESSION_KEYS", "aB1cD2eF3,gH4iJ5kL6"),
        ("VAULT_SECRET_ID", "6d3f8f2b-2a6c-4c0e-9d5a-abcdef4c5d6e"),
        ("APP_KEY", "base64:" + "Ab3+/Ef9hJkLmN" * 3 + "="),
        ("PROJECT_STRIPE_KEY", CANARY),
        ("X_AUTH", "ubuntu-5f4dcc3b5aa765d61d8327deb882cf99"),
    ],
)
def test_what_looks_like_a_key_is_one_where_the_name_says_so(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert value in environment_secrets()


def test_where_a_secret_is_kept_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", __file__)
    assert __file__ not in environment_secrets()


@pytest.mark.benign("secrets")
@pytest.mark.parametrize("value", ["postgres", "password", "changeme"])
def test_a_password_that_is_a_word_of_any_text_is_no_secret(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRES_PASSWORD", value)
    assert value not in environment_secrets()
