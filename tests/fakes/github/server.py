"""The fake as tests hold it: it serves, knows accounts, writes down what it hears, and fails when told."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.fakes.github.bare import Bare
from tests.fakes.github.faults import Fault, Response, Script
from tests.fakes.github.http import Server
from tests.fakes.github.nouns import ACTIONS_LOGIN, App, Request, Token
from tests.fakes.github.people import Person
from tests.fakes.github.stage import FakeRepository
from tests.fakes.github.state import World

USUAL = {
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "actions": "read",
    "checks": "read",
    "statuses": "read",
    "deployments": "read",
}


class FakeGitHub(FakeRepository):
    """A GitHub with one repository on a loopback port; see the package for its whole interface."""

    def __init__(
        self, bare: Path, repository: str = "harbour/slackwater", *, default_branch: str = "main", private: bool = False
    ) -> None:
        self.repository, self.bare = repository, bare
        self.owner, self.name = repository.split("/")
        self.server = Server()
        self.server.fake = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.api_url, self.git_url = f"{self.url}/api/v3", f"{self.url}/{repository}.git"
        self.world = World(self.owner, self.name, default_branch, private, self.url, Bare(bare))
        self.world.heads = self.world.bare.heads()
        self.world.account(self.owner).level = "admin"
        self.script = Script()
        self.journal: list[Request] = []
        self.unknown: list[str] = []
        self.validate = True
        self.closing, self._close = socket.socketpair()
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.005,), daemon=True)

    def __enter__(self) -> FakeGitHub:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close.close()
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()
        self.server.hang_up()
        self.closing.close()
        if self.unknown and kind is None:
            raise AssertionError("asked of the fake GitHub, which does not know it:\n" + "\n".join(self.unknown))

    # --- accounts

    def person(self, login: str, permission: str | None = None) -> Person:
        """A person; the permission is set when given, or when the person is new (then "write")."""
        known = login.lower() in self.world.accounts
        person = Person(self.world, self.world.account(login))
        if permission or not known:
            person.set_permission(permission or "write")
        return person

    def bot(self, login: str) -> Person:
        """An account of type Bot; its login ends in `[bot]`."""
        if not login.endswith("[bot]"):
            raise ValueError(f"a bot's login ends in [bot]: {login}")
        return Person(self.world, self.world.account(login))

    def token(
        self,
        login: str = ACTIONS_LOGIN,
        kind: str | None = None,
        permissions: Mapping[str, str] | None = None,
        scopes: tuple[str, ...] = ("repo", "workflow"),
        repository: str = "",
    ) -> str:
        """A new token of an account, which is made (a person: with write permission) when it is new."""
        account = (self.bot(login) if login.endswith("[bot]") else self.person(login)).login
        kind = kind or ("installation" if login.endswith("[bot]") else "pat")
        if kind not in ("installation", "pat"):
            raise ValueError(f"no such kind of token: {kind}")
        value = {"installation": "ghs_", "pat": "ghp_"}[kind] + secrets.token_hex(18)
        allowed = dict(USUAL if permissions is None else permissions)
        self.world.tokens[value] = Token(
            value, self.world.account(account), kind, allowed, scopes, repository=repository
        )
        return value

    def app(self, login: str, permissions: Mapping[str, str] | None = None, **known: Any) -> tuple[App, str]:
        """A GitHub App whose bot this is, installed here, and its private key (PEM)."""
        private, public = _key_pair()
        account, allowed = (
            self.world.account(self.bot(login).login),
            dict(USUAL if permissions is None else permissions),
        )
        app = App(str(next(self.world.ids)), account, public, allowed, next(self.world.ids), **known)
        self.world.apps[app.id] = app
        return app, private

    def revoke(self, token: str) -> None:
        """From now on 401."""
        del self.world.tokens[token]

    def push(self, branch: str, files: Mapping[str, bytes | None], base: str = "", message: str = "Change") -> str:
        """Somebody's commit on top of a branch, made from base (the default branch) when there is none."""
        return self.person("somebody").push(branch, files, base, message)

    # --- what was received, and what goes wrong

    def received(self, request: Request) -> None:
        """One more line in the journal."""
        with self.world.lock:
            self.journal.append(request)

    def count(
        self,
        transport: str | None = None,
        method: str | None = None,
        below: str | None = None,
        status: int | None = None,
    ) -> int:
        """How many requests were received that are like this; `below` is an fnmatch pattern."""
        return sum(
            (transport in (None, request.transport))
            and (method in (None, request.method))
            and (below is None or fnmatchcase(request.below, below))
            and (status in (None, request.status))
            for request in list(self.journal)
        )

    @property
    def faults(self) -> list[Fault]:
        """The faults that are still to come."""
        return self.script.faults

    def fail(self, kind: str, match: tuple[str, str] = ("POST", "/issues"), times: int = 1, after: int = 0) -> Fault:
        """Let matching requests go wrong."""
        return self.script.add(str(kind), match, times, after)

    def before(self, call: Callable[[Request], object]) -> Callable[[], None]:
        """A hook ahead of every request; returns what removes it."""
        return self.script.before(call)

    def after(self, call: Callable[[Request, Response], object]) -> Callable[[], None]:
        """A hook after every request; returns what removes it."""
        return self.script.after(call)


@cache
def _key_pair() -> tuple[str, str]:
    """A private and its public key as PEM; making one takes long, so all apps of a test run have the same."""
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.TraditionalOpenSSL, forms.NoEncryption())
    public = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()
