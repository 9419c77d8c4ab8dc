"""A server's certificate that is trusted for one test."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph_mission.adapters.http.client import trusted_certificates


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ssl.SSLContext]:
    """A server's certificate for secure.example, which this machine trusts for the time being."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout {key} -out {certificate} -subj /CN=x"
    subprocess.run([*made.split(), "-addext", "subjectAltName=DNS:secure.example"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    trusted_certificates.cache_clear()
    yield context
    trusted_certificates.cache_clear()
