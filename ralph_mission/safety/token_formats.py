"""What tokens and keys look like: formats that their issuers publish (most are in gitleaks' rules, too). Patterns only.

Each begins with letters that nothing else begins with, or stands beside a word that says what it is, so that ordinary
text, hashes, addresses and encoded data hold none.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

_KINDS = {
    "github-token": r"\bgh[pousr]_[A-Za-z0-9]{30,255}|\bgithub_pat_[A-Za-z0-9_]{22,255}",
    "gitlab-token": r"\bgl(?:pat|ptt|dt|rt)-[\w-]{20,}",
    "aws-key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    "slack-token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{20,}"
    r"|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}",
    "google-key": r"\bAIza[0-9A-Za-z_-]{35}|\bya29\.[\w-]{30,}|\bGOCSPX-[\w-]{28}",
    "anthropic-key": r"\bsk-ant-[A-Za-z0-9_-]{16,}",
    "openai-key": r"\bsk-(?!ant-)(?=[\w-]{0,60}[0-9])(?=[\w-]{0,60}[A-Z])[\w-]{20,}",
    "model-key": r"\bgsk_[A-Za-z0-9]{40,}|\bxai-[A-Za-z0-9]{60,}|\bpplx-[A-Za-z0-9]{40,}|\br8_[A-Za-z0-9]{37,}",
    "stripe-key": r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}",
    "square-token": r"\bsq0[a-z]{3}-[\w-]{22,43}",
    "shopify-token": r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b",
    "twilio-key": r"\bSK[0-9a-f]{32}\b",
    "mailchimp-key": r"\b[0-9a-f]{32}-us\d{1,2}\b",
    "telegram-token": r"\b[0-9]{8,10}:AA[\w-]{32,34}(?![\w-])",
    "discord-token": r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,38}(?![\w-])",
    "discord-webhook": r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{15,20}/[\w-]{40,}",
    "twitter-bearer": r"\bA{20,24}[A-Za-z0-9]{2,80}(?:%[0-9A-Fa-f]{2}[A-Za-z0-9]{0,80}){1,9}",
    "private-key": r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|\bPuTTY-User-Key-File-\d"
    r"|\bAGE-SECRET-KEY-1[A-Z0-9]{50,}",
    "jwt": r"\beyJ[\w-]{10,2000}\.eyJ[\w-]{10,2000}\.[\w-]{10,}",
    "npm-token": r"\bnpm_[A-Za-z0-9]{36}|_authToken\s{0,3}=\s{0,3}[A-Za-z0-9][\w./+=-]{15,}",
    "pypi-token": r"\bpypi-[\w-]{70,}",
    "rubygems-key": r"\brubygems_[a-f0-9]{48}\b",
    "docker-token": r"\bdckr_(?:pat|oat)_[\w-]{20,}",
    "hugging-face-token": r"\bhf_[A-Za-z0-9]{34}",
    "sendgrid-key": r"\bSG\.[\w-]{16,64}\.[\w-]{16,}",
    "azure-key": r"\b(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{43,88}={0,2}",
    "signed-address": r"[?&](?:sig=[A-Za-z0-9%+/]{40,}|X-Amz-Signature=[0-9a-f]{64})",
    "digitalocean-token": r"\bdo[opr]_v1_[a-f0-9]{64}\b",
    "databricks-token": r"\bdapi[a-f0-9]{32}\b",
    "heroku-key": r"\bHRKU-[\w-]{30,}",
    "supabase-key": r"\bsbp_[a-f0-9]{40}\b|\bsb_secret_[\w-]{20,}",
    "vault-token": r"\bhv[sbr]\.[\w-]{24,}",
    "doppler-token": r"\bdp\.(?:pt|st|ct|sa)\.[\w.-]{40,}",
    "pulumi-token": r"\bpul-[a-f0-9]{40}\b",
    "terraform-token": r"\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}",
    "1password-token": r"\bops_eyJ[\w+/=-]{60,}",
    "grafana-token": r"\bgl(?:c|sa)_[A-Za-z0-9+/=_-]{32,}",
    "sentry-token": r"\bsntry[su]_[A-Za-z0-9+/=_-]{40,}",
    "new-relic-key": r"\bNRAK-[A-Z0-9]{27}\b",
    "sonar-token": r"\bsq[apu]_[a-f0-9]{40}\b",
    "atlassian-token": r"\bATATT3[\w=-]{60,}|\bATBB[A-Za-z0-9]{28,}",
    "linear-key": r"\blin_api_[A-Za-z0-9]{40}\b",
    "notion-token": r"\bntn_[A-Za-z0-9]{40,}|\bsecret_[A-Za-z0-9]{43}\b",
    "authorization": r"(?i:\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)\s{1,3})[\w+/.~-]{16,}",
}


def _quick(pattern: str) -> str:
    """The same, said so that a search can leap from one place with its first letters to the next."""
    return re.sub(r"\\b([A-Za-z0-9_]+)(?![\w?*+{])", r"\1(?<=\\b\1)", pattern)


FORMATS = {kind: re.compile(_quick(pattern)) for kind, pattern in _KINDS.items()}
HINTS = {
    "github-token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    "gitlab-token": ("glpat-", "glptt-", "gldt-", "glrt-"),
    "aws-key": ("AKIA", "ASIA", "ABIA", "ACCA"),
    "slack-token": ("xox", "xapp-", "hooks.slack.com"),
    "google-key": ("AIza", "ya29.", "GOCSPX-"),
    "anthropic-key": ("sk-ant-",),
    "openai-key": ("sk-",),
    "model-key": ("gsk_", "xai-", "pplx-", "r8_"),
    "stripe-key": ("_live_", "_test_", "whsec_"),
    "square-token": ("sq0",),
    "shopify-token": ("shpat_", "shpca_", "shppa_", "shpss_"),
    "twilio-key": ("SK",),
    "mailchimp-key": ("-us",),
    "telegram-token": (":AA",),
    "discord-webhook": ("/webhooks/",),
    "twitter-bearer": ("AAAAAAAAAAAAAAAAAAAA",),
    "private-key": ("PRIVATE KEY", "PuTTY-User-Key-File-", "AGE-SECRET-KEY-1"),
    "jwt": ("eyJ",),
    "npm-token": ("npm_", "_authToken"),
    "pypi-token": ("pypi-",),
    "rubygems-key": ("rubygems_",),
    "docker-token": ("dckr_",),
    "hugging-face-token": ("hf_",),
    "sendgrid-key": ("SG.",),
    "azure-key": ("AccountKey=", "SharedAccessKey="),
    "signed-address": ("sig=", "X-Amz-Signature="),
    "digitalocean-token": ("_v1_",),
    "databricks-token": ("dapi",),
    "heroku-key": ("HRKU-",),
    "supabase-key": ("sbp_", "sb_secret_"),
    "vault-token": ("hvs.", "hvb.", "hvr."),
    "doppler-token": ("dp.",),
    "pulumi-token": ("pul-",),
    "terraform-token": (".atlasv1.",),
    "1password-token": ("ops_eyJ",),
    "grafana-token": ("glc_", "glsa_"),
    "sentry-token": ("sntry",),
    "new-relic-key": ("NRAK-",),
    "sonar-token": ("sqa_", "sqp_", "squ_"),
    "atlassian-token": ("ATATT3", "ATBB"),
    "linear-key": ("lin_api_",),
    "notion-token": ("ntn_", "secret_"),
}
"""Words without which a text holds nothing of a kind: most texts are searched for words alone, which is much faster."""
PLACEHOLDERS = re.compile(
    r"(?:pass(?:word|wd|phrase)?|secret|changeme|example|user(?:name)?|token|x+|\*+|\.+|postgres|root|admin|test|[<${%\[].*)$",
    re.IGNORECASE,
)
CORES = {
    "discord-token": re.compile(r"\.[\w-]{6}\.[\w-]{27}"),
    "authorization": re.compile("authorization", re.IGNORECASE),
}
"""The same for those without such a word."""
ASSIGNABLE = ("apikey", "api_key", "secret", "token", "passw", "credent", "accesskey", "access_key")
"""The same for what is assigned, in any case."""
URL_PASSWORD = re.compile(
    r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@'\"<>]{0,100}:(?P<value>[^\s/@'\"<>]{3,200})@", re.IGNORECASE
)
ASSIGNED = re.compile(
    r"(?:api_?key|secret|token|passw(?:or)?d|credential|access_?key)[\w-]{0,20}[\"']?\s{0,9}(?::=|[:=])\s{0,9}[\"']?"
    r"(?P<value>[A-Za-z0-9+/_=-]{24,})",
    re.IGNORECASE,
)

Span = tuple[int, int, str]


def find_formats(text: str) -> Iterator[Span]:
    """Where something of a known format stands, and what."""
    for kind, pattern in FORMATS.items():
        if any(hint in text for hint in HINTS[kind]) if kind in HINTS else CORES[kind].search(text):
            yield from ((*match.span(), kind) for match in pattern.finditer(text))
    for match in URL_PASSWORD.finditer(text) if "://" in text else ():
        if not PLACEHOLDERS.match(match["value"]):
            yield (*match.span("value"), "url-password")
    folded = _fold(text)
    for match in ASSIGNED.finditer(text) if any(word in folded for word in ASSIGNABLE) else ():
        if _looks_random(match["value"]):
            yield (*match.span("value"), "assigned-secret")


def _fold(text: str) -> str:
    """As patterns read it that take no notice of case: dotless and dotted letters are the same to them."""
    folded = text.casefold()
    return folded if folded.isascii() else folded.replace("\u0307", "").replace("\u0131", "i")


def _looks_random(value: str) -> bool:
    """Digits and letters in both cases, and more than 3.5 bits a character: no identifier, no path."""
    shares = [count / len(value) for count in Counter(value).values()]
    return is_mixed(value) and -sum(share * math.log2(share) for share in shares) > 3.5


def is_placeholder(value: str) -> bool:
    """Whether it stands for a value that everybody may say: the `postgres` and `password` of a test database."""
    return value.isalnum() and bool(PLACEHOLDERS.match(value))


def is_mixed(value: str) -> bool:
    """Whether there are digits and letters in both cases in it."""
    return all(re.search(group, value) for group in ("[0-9]", "[a-z]", "[A-Z]"))
