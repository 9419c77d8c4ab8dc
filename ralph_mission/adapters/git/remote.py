"""The repository on its server, by git over HTTP. Repository and token come from the environment alone.

The token is only in git's environment: never in a URL, an argument, a configuration file or a log. Nothing is forced: a
branch moves from the named commit to a descendant, or not at all. Files of a pull request that would instruct agents
are replaced in its commit before agents see it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from ralph_mission.adapters import files
from ralph_mission.adapters.git.git import TIMED_OUT, Git, GitError
from ralph_mission.errors import UserError
from ralph_mission.safety.patch import GITLINK
from ralph_mission.safety.paths import steers_agents
from ralph_mission.values import compile_regex, dataclass

PUBLIC_API = "https://api.github.com"
Credential = str | Callable[[], str]
"""A token, or a function that returns the current one (an app's expires after an hour) and may raise UserError."""
REPOSITORY = compile_regex(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class RepositoryPlace:
    """A repository on a GitHub server. URLs have no trailing slash and no token."""

    repository: str  # owner/name
    api: str
    server: str
    credential: Credential = field(repr=False)

    @property
    def of_app(self) -> bool:
        """Whether an app signs in (a workflow's own token is one too), not a person."""
        return not isinstance(self.credential, str) or self.credential.startswith("ghs_")

    @property
    def git_url(self) -> str:
        """Its URL for git."""
        return f"{self.server}/{self.repository}.git"

    @property
    def page(self) -> str:
        """Its URL for people."""
        return f"{self.server}/{self.repository}"


def place(environ: Mapping[str, str]) -> RepositoryPlace:
    """The repository named by GITHUB_REPOSITORY and GITHUB_API_URL, with the sign-in: a GitHub App (GITHUB_APP_ID and
    GITHUB_APP_PRIVATE_KEY), else GITHUB_TOKEN. Raises UserError (usage).
    """
    repository = environ.get("GITHUB_REPOSITORY", "")
    if not REPOSITORY.fullmatch(repository) or repository.endswith("/.."):
        problem = f"GITHUB_REPOSITORY is {repository!r}" if repository else "GITHUB_REPOSITORY is not set"
        raise UserError(problem, "set it to owner/name", usage=True)
    api = _address("GITHUB_API_URL", environ.get("GITHUB_API_URL") or PUBLIC_API)
    server = environ.get("GITHUB_SERVER_URL") or (
        "https://github.com" if api == PUBLIC_API else api.removesuffix("/api/v3")
    )
    return RepositoryPlace(
        repository, api, _address("GITHUB_SERVER_URL", server), _credential(environ, api, repository)
    )


def _credential(environ: Mapping[str, str], api: str, repository: str) -> Credential:
    app, key = environ.get("GITHUB_APP_ID", ""), environ.get("GITHUB_APP_PRIVATE_KEY", "")
    if app and key:
        from ralph_mission.adapters.git.app_token import app_token

        return app_token(api, repository, app, key)
    if app or key:  # with another identity we would not recognise our own threads
        problem = f"GITHUB_APP_{'PRIVATE_KEY' if app else 'ID'} is not set, and an app needs both"
        raise UserError(problem, "give the inputs app-id and private-key, or neither", usage=True)
    token = environ.get("GITHUB_TOKEN", "")
    if not token or not token.isprintable() or " " in token:
        problem = "GITHUB_TOKEN is not set" if not token else "GITHUB_TOKEN holds a space or a line break"
        raise UserError(problem, "give it in the environment: the action does, from its input github-token", usage=True)
    return token


def current_token(credential: Credential) -> str:
    """The current token, or "". Raises UserError if an app gets none."""
    return credential if isinstance(credential, str) else credential()


SPOKEN = ("issues", "issue_comment", "pull_request", "pull_request_review")
"""The events by which a person's word starts a run of the workflow."""


def acts_on_github(environ: Mapping[str, str]) -> bool:
    """Whether this runs in a GitHub workflow."""
    return environ.get("GITHUB_ACTIONS") == "true"


def _address(name: str, url: str) -> str:
    parts = urlsplit(url)
    loopback = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.username or not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and loopback)):
        raise UserError(
            f"{name} is not an https address", f"set it to one, such as {PUBLIC_API}, without a user name", usage=True
        )
    return url.rstrip("/")


def read_shared(folder: Path, repository: str, commit: str, path: str) -> bytes | None:
    """A file of any repository (owner/name) on our server at a commit, or None. Raises UserError.

    Public ones need no token. It is fetched once, as a commit never changes: files are cached below `folder`, a git
    common directory.
    """
    name = hashlib.sha256(f"{repository}\n{commit}\n{path}".encode()).hexdigest()[:32]
    cached = folder / "ralph" / "shared" / name
    with suppress(OSError):
        return cached.read_bytes()
    signed_in = any(os.environ.get(name) for name in ("GITHUB_TOKEN", "GITHUB_APP_ID"))
    environ = {"GITHUB_TOKEN": "none", **os.environ, "GITHUB_REPOSITORY": repository}
    control = os.environ.get("RALPH_CONTROL_TOKEN", "")
    if control and repository == os.environ.get("RALPH_CONTROL_REPOSITORY"):  # a job's own token opens no other one
        environ |= {"GITHUB_TOKEN": control, "GITHUB_APP_ID": "", "GITHUB_APP_PRIVATE_KEY": ""}
    where = place(environ)
    with Remote.without_clone(where if signed_in else replace(where, credential="")) as remote:
        content = remote.peek_at(commit, path, f"--filter=blob:limit={MAX_SHARED}")
    if content is not None:
        with suppress(OSError):  # it is asked again
            files.write(files.own(cached.parent) / name, content)
    return content


MAX_SHARED = 256 * 1024  # bytes: what settings may have
HEADS = "refs/heads/"
PEELED = "^{}"  # after a tag's name: what the tag itself is of
FETCHED_REFS = "refs/ralph/remote/"  # refs that keep what was fetched
PATIENCE = 300.0  # seconds for a transfer
PASSED_ON = tuple(
    (
        "http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY SSL_CERT_FILE SSL_CERT_DIR"
        " GIT_SSL_CAINFO"
    ).split()
)
LOST_RACE = (
    "stale info",
    "fetch first",
    "non-fast-forward",
    "reference already exists",
    "cannot lock ref",
    "incorrect old value",
    "failed to update ref",
)
DIVERTING = r"^(url\..*\.(push)?insteadof|http\.(.*\.)?(proxy|sslverify|sslca.*|curloptresolve))$"
"""Settings of a clone that redirect requests, and the token with them; an earlier job may have left them."""
_ERROR_PREFIX = compile_regex(r"^(?:remote: )?(?:error|fatal)?:? ?", re.IGNORECASE)


class Denied(Exception):
    """The server refused a push: `what` it refused, and the `setting` a person must change.

    `lasting` is False if the same push may succeed later.
    """

    def __init__(self, what: str, setting: str, lasting: bool = True) -> None:
        super().__init__(f"{what}: {setting}")
        self.what, self.setting, self.lasting = what, setting, lasting


DENIALS: tuple[tuple[str, str, str], ...] = (
    (
        r"GH013.*signed|must have verified signatures|commits must be signed",
        "{branch} takes signed commits only",
        "exempt ralph/** and the memory branch from `Require signed commits` in Settings, Rules",
    ),
    (
        r"without `workflows?` (?:scope|permission)",
        "the token may not change files below .github/workflows",
        "use a token with the `workflow` permission, or make this change by hand",
    ),
    (
        r"GH006|GH013|protected branch|repository rule violations",
        "{branch} is protected",
        "let the account of the token push to ralph/** and the memory branch in Settings, Rules (or Branches)",
    ),
    (
        r"Authentication failed|could not read Username|(?:error:|HTTP) 401",
        "the token is not valid",
        "give GITHUB_TOKEN one that is",
    ),
    (r"archived|read-only", "the repository is archived", "unarchive it, or take ralph out of it"),
    (
        r"Permission to .* denied|Write access to repository not granted|(?:error:|HTTP) 403",
        "the token may not push",
        "give the job `permissions: contents: write`",
    ),
)
"""GitHub's messages for refused pushes (regular expressions), and the setting behind each."""


@dataclass(frozen=True, slots=True)
class Remote:
    """The server's copy of the repository that `git` is a clone of. Without `keep` no ref is written here."""

    git: Git
    url: str
    credential: Credential = field(default="", repr=False)
    keep: bool = True
    patience: float = PATIENCE
    _present_refs: set[tuple[str, str]] = field(default_factory=set, repr=False, compare=False)  # cached: asked often

    @staticmethod
    @contextmanager
    def without_clone(place: RepositoryPlace) -> Iterator[Remote]:
        """The server's repository through a temporary empty clone."""
        with tempfile.TemporaryDirectory(prefix="ralph-remote-") as folder:
            here = Git(Path(folder), Path(folder), None)
            here.run("init", "--quiet", "--bare", folder)
            yield Remote(here, place.git_url, place.credential, keep=False)

    def heads(self, *names: str) -> dict[str, str]:
        """Branches by name (globs allowed; all by default) with their commits. Raises UserError."""
        found = self.commits(*([HEADS + name for name in names] or [f"{HEADS}*"]))
        return {ref.removeprefix(HEADS): oid for ref, oid in found.items() if ref.startswith(HEADS)}

    def commits(self, *refs: str) -> dict[str, str]:
        """Refs by full name (globs allowed) with their commits, also those of annotated tags. Raises UserError."""
        lines = self._ask("ls-remote", "--quiet", self.url, *refs).decode("utf-8", "surrogateescape").split("\n")
        pairs = (line.partition("\t")[::2] for line in lines)  # a name may contain other line separators
        found = {ref: oid for oid, ref in pairs if ref}
        return {ref: found.get(f"{ref}{PEELED}", oid) for ref, oid in found.items() if not ref.endswith(PEELED)}

    def head(self, branch: str) -> str:
        """The commit a branch points at, or "". Raises UserError."""
        return self.heads(branch).get(branch, "")

    def newest_pulls(self, most: int) -> tuple[int, ...]:
        """The highest numbers of pull requests, open or closed, highest first. Raises UserError."""
        lines = self._ask("ls-remote", "--quiet", self.url, "refs/pull/*/head").decode("ascii", "replace")
        numbers = sorted((int(number) for number in re.findall(r"\trefs/pull/(\d+)/head$", lines, re.M)), reverse=True)
        return tuple(numbers[:most])

    def default(self) -> tuple[str, str]:
        """Name and commit of the default branch. Raises UserError if there is none."""
        lines = self._ask("ls-remote", "--quiet", "--symref", self.url, "HEAD").decode("utf-8", "surrogateescape")
        name = re.search(r"^ref: refs/heads/(.+)\tHEAD$", lines, re.M)
        oid = re.search(r"^([0-9a-f]{40,64})\tHEAD$", lines, re.M)
        if not name or not oid:
            raise UserError("the repository on the server has no commits", "push a first commit, then run again")
        return name[1], oid[1]

    def has(self, oid: str) -> bool:
        """Whether a commit is here already."""
        return bool(oid) and self.git.resolve(oid) == oid

    def fetch(self, refs: Mapping[str, str]) -> None:
        """Fetch commits: ref on the server (`refs/heads/x`, `refs/pull/7/head`) -> commit it was seen at.

        Commits that are here already are not fetched again. Raises UserError.
        """
        refs = {ref: oid for ref, oid in refs.items() if not self._holds(ref, oid)}
        missing = [ref for ref, oid in refs.items() if not self.has(oid)]
        if missing:
            specs = [f"+{ref}:{_kept_ref(ref)}" if self.keep else ref for ref in missing]
            self._ask(
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--no-auto-maintenance",
                "--no-recurse-submodules",
                self.url,
                *specs,
            )
        elif self.keep:
            self._hold(refs.items())

    def peek(self, branch: str, path: str) -> bytes | None:
        """A file of a branch's head, without history; None if there is no such file."""
        return self.peek_at(HEADS + branch, path)

    def peek_at(self, ref: str, path: str, *options: str) -> bytes | None:
        """The same for a full ref name, or a commit."""
        self._ask("fetch", "--quiet", "--depth=1", "--no-tags", "--no-auto-maintenance", *options, self.url, ref)
        name = f"FETCH_HEAD:{path}"
        return self.git.blobs([name]).get(name)

    def push(self, branch: str, new: str, old: str) -> str:
        """Move `branch` from commit `old` ("": none) to `new`; returns its new commit, or "" if it was elsewhere.

        Raises Denied if the server refuses for good, UserError if the result is in doubt.
        """
        return new if self._move(branch, new, old) else ""

    def delete(self, branch: str, old: str) -> bool:
        """Delete `branch` while it is at `old`; False if it was elsewhere. Raises Denied, UserError."""
        return self._move(branch, "", old)

    def _move(self, branch: str, new: str, old: str) -> bool:
        ref = HEADS + branch
        try:
            with _as_user_errors(self.url):
                self._run("push", "--quiet", "--no-verify", f"--force-with-lease={ref}:{old}", self.url, f"{new}:{ref}")
        except UserError:
            if self.head(branch) != new:  # the answer may get lost after the push
                raise
        except GitError as error:
            return self._refused(branch, new, error)
        if self.keep and new:
            self._hold([(ref, new)])
        return True

    def _refused(self, branch: str, new: str, error: GitError) -> bool:
        for pattern, what, setting in DENIALS:
            if re.search(pattern, error.detail, re.IGNORECASE | re.DOTALL):
                raise Denied(what.format(branch=branch), setting)
        if any(sign in error.detail for sign in LOST_RACE):
            return self.head(branch) == new
        what = f"the server refused the push to {branch} ({_reason(error.detail)})"
        raise Denied(what, "look at its rules and hooks", lasting=not BUSY.search(error.detail))

    def _holds(self, ref: str, oid: str) -> bool:
        """Whether what is kept of a ref is right already; git is asked once."""
        if self.keep and (ref, oid) not in self._present_refs and self.git.resolve(_kept_ref(ref)) == oid:
            self._present_refs.add((ref, oid))
        return (ref, oid) in self._present_refs

    def _hold(self, references: Iterable[tuple[str, str]]) -> None:
        for ref, oid in references:
            self.git.run("update-ref", "--no-deref", _kept_ref(ref), oid)
            self._present_refs.add((ref, oid))

    def _ask(self, *arguments: str) -> bytes:
        try:
            with _as_user_errors(self.url):
                return self._run(*arguments)
        except GitError as error:
            raise _not_readable(self.url, error) from None

    def _run(self, *arguments: str) -> bytes:
        if settings := self.git.try_text("config", "--name-only", "--get-regexp", DIVERTING):
            what = f"the clone's own configuration sets {settings.splitlines()[0]}, which may lead the token elsewhere"
            raise UserError(what, "take it out of .git/config; proxies and certificates come from the environment")
        return self.git.run(*arguments, env=self._environment(), timeout=self.patience)

    def _environment(self) -> dict[str, str]:
        server = urlsplit(self.url)
        pins = {
            f"protocol.{server.scheme}.allow": "always",
            "credential.helper": "",
            "core.askPass": "",
            "http.followRedirects": "false",
            "push.followTags": "false",
            "push.gpgSign": "false",
            "http.lowSpeedLimit": "1000",
            "http.lowSpeedTime": "60",
        }
        if token := current_token(self.credential):
            secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
            pins[f"http.{server.scheme}://{server.netloc}/.extraHeader"] = f"Authorization: Basic {secret}"
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        keys = {f"GIT_CONFIG_KEY_{place}": key for place, key in enumerate(pins)}
        values = {f"GIT_CONFIG_VALUE_{place}": value for place, value in enumerate(pins.values())}
        return {**passed, **keys, **values, "GIT_CONFIG_COUNT": str(len(pins))}


def _kept_ref(ref: str) -> str:
    # Without slashes: refs `main` and `main/next` cannot coexist.
    return FETCHED_REFS + ref.removeprefix("refs/").replace("%", "%25").replace("/", "%2F")


UNREACHABLE = (
    "Could not resolve host",
    "Failed to connect",
    "Connection refused",
    "Connection reset",
    "timed out",
    "Empty reply",
    "RPC failed",
    "unexpected disconnect",
    "early EOF",
    "SSL",
    "Recv failure",
    "HTTP 5",
    "The requested URL returned error: 5",
    "hung up unexpectedly",
)


BUSY = compile_regex(
    r"returned error: 4(?!0[134])\d\d"
)  # an HTTP status not about permissions or rules: a limit, a conflict
TURNED_AWAY = compile_regex(r"(?:HTTP|returned error:) 4\d\d|Authentication failed|could not read Username")


@contextmanager
def _as_user_errors(url: str) -> Iterator[None]:
    """Turn network failures into one-line UserErrors."""
    try:
        yield
    except GitError as error:
        if TURNED_AWAY.search(error.detail):
            raise  # the server answered
        if error.code == TIMED_OUT or any(sign in error.detail for sign in UNREACHABLE):
            what = f"git cannot reach {urlsplit(url).netloc} ({_reason(error.detail)})"
            raise UserError(what, "nothing was lost; the next wake tries again", who="network") from None
        raise


def _not_readable(url: str, error: GitError) -> UserError:
    if re.search(r"Authentication failed|could not read Username|error: 40[13]|not found", error.detail):
        what = f"{urlsplit(url).netloc} does not let this token read {urlsplit(url).path.strip('/')}"
        return UserError(what, "give GITHUB_TOKEN `contents: read` for it (and check GITHUB_REPOSITORY)", who="forge")
    return UserError(
        f"git cannot read {urlsplit(url).path.strip('/')}: {_reason(error.detail)}",
        "look at the repository's settings",
        who="forge",
    )


def _reason(detail: str) -> str:
    lines = [_ERROR_PREFIX.sub("", line).strip() for line in detail.splitlines() if line.strip()]
    informative = [line for line in lines if not line.startswith(("To ", "hint:", "! ["))]
    return (informative or lines or ["no reason given"])[0][:160]


EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def without_steering(git: Git, base: str, head: str, steers: Callable[[str], bool] = steers_agents) -> str:
    """A commit with the files of `head`, except those that instruct agents, which are as at `base`.

    No ref points at it; it is `head` itself if nothing differs. Raises UserError if git cannot create it.
    """
    try:
        paths = [path for path in git.paths_between(base, head) if steers(path)]
        if not paths:
            return head
        before = {entry.path: entry for entry in git.listing(base, *paths) if entry.mode != GITLINK}
        contents = git.blobs(entry.oid for entry in before.values())
        back = {path: (entry.mode, contents[entry.oid]) for path, entry in before.items()}
        changes = dict.fromkeys((path for path in paths if path not in back), None) | back  # deletions first
        return git.commit_tree(git.write_tree(head, changes), [head], "What steers agents is as on the base\n", EPOCH)
    except GitError as error:
        what = f"what steers agents cannot be put back: {error.detail.strip()}"
        raise UserError(what, "a person reviews this one") from None
