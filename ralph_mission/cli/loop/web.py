"""`ralph ui --web`: the page of what runs here, in a browser on this machine.

The server listens on loopback only. Its address contains a secret, so neither another user of the machine nor a web
page can read it or send requests, and there is no cookie that another port could receive. What agents say is text,
never markup.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

import click
from markupsafe import Markup

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.report.html_page import Child, document, element, harmless, join, section, table
from ralph_mission.adapters.storage.loop import live
from ralph_mission.adapters.storage.loop.inbox import LENGTH, Guide
from ralph_mission.cli.loop.runs import COLUMNS, describe_commits, event_line, run_cells
from ralph_mission.errors import UserError
from ralph_mission.loop.model.spec import HoldOrder

ORDERS: dict[str, HoldOrder] = {"pause": "pause", "resume": "", "stop": "stop"}
LINES = 400  # of a run's steps on the page
LARGEST = LENGTH * 12  # bytes of a request's body: guidance in UTF-8, percent-encoded
PATIENCE = 10  # seconds for a browser to send its request
SCRIPT = """(async function refresh() {
  const old = document.getElementById("live"), gone = document.getElementById("gone");
  try {
    const answer = await fetch(location.href);
    if (answer.redirected) return location.replace(answer.url);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("live");
    gone.hidden = true; document.title = page.title;
    if (fresh.innerHTML !== old.innerHTML && !getSelection().toString()) old.replaceWith(fresh);
  } catch { gone.hidden = false; }
  setTimeout(refresh, 1000);
})();"""
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    f"script-src 'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'"
)
STYLE = """.steps{max-height:60vh;overflow:auto;display:flex;flex-direction:column-reverse}
form{display:flex;flex-wrap:wrap;gap:.6rem;align-items:center;margin:.8rem 0}
button,input{font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:8px;
padding:.45rem .9rem}input{flex:1 1 14rem}button{cursor:pointer}button:hover{border-color:var(--accent)}
input::placeholder{color:var(--quiet);opacity:1}td a{white-space:nowrap}"""


class RunsServer(ThreadingHTTPServer):
    """The page of the runs in `git`'s repository, at `address` until it is closed."""

    daemon_threads = True

    def __init__(self, git: Git) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.git, self.home, self.token = git, git.state_dir, secrets.token_urlsafe(24)
        self._commits: dict[tuple[str, str], str] = {}

    def commits_since(self, run: live.LiveRecord) -> str:
        """What was committed since `run` began; git looks once at each commit, as it may take seconds."""
        key = run.began, self.git.resolve("HEAD")
        if key not in self._commits:
            self._commits = {key: describe_commits(self.git, run)}
        return self._commits[key]

    @property
    def address(self) -> str:
        """The page's URL, which is also the permission to use it."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def handle_error(self, *_: object) -> None:
        """A browser that closes its connection early is nothing to report."""


class _Handler(BaseHTTPRequestHandler):
    server: RunsServer
    timeout = PATIENCE

    def do_GET(self) -> None:
        """A run's page. Any other address leads to the newest run's, so that no page is of two runs in turn."""
        if (name := self._asked_for()) is None:
            return
        known = live.list_runs(self.server.home)
        record = next((one for one in known if one.id == name), None)
        newest = next((one for one in reversed(known) if one.alive), known[-1] if known else None)
        if record is None and newest is not None:
            return self._lead(HTTPStatus.FOUND, f"/{self.server.token}/{quote(newest.id, safe='')}")
        diff = "diff" in parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        self._answer(HTTPStatus.OK, _page(self.server, known, record, diff))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """A request of a person: pause, resume or stop a run, or guidance."""
        if (name := self._asked_for()) is None:
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST:
            return self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the guidance is too long")
        try:
            form = parse_qs(self.rfile.read(int(length)).decode(errors="replace"), max_num_fields=4)
            _obey(self.server.home, name, form)
        except (UserError, OSError, ValueError) as error:
            return self._refuse(HTTPStatus.BAD_REQUEST, str(error), element("a", "back", href=quote(name, safe="")))
        self._lead(HTTPStatus.SEE_OTHER, self.path)  # so that reloading the page repeats nothing

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the terminal shows the address, which must not scroll away."""

    def _asked_for(self) -> str | None:
        """The run's id in the path, "" for none; answers and returns None without permission."""
        _, _, rest = self.path.partition("/")
        token, _, name = urlsplit(f"/{rest}").path[1:].partition("/")
        hosts = (f"127.0.0.1:{self.server.server_port}", f"localhost:{self.server.server_port}")
        known = hmac.compare_digest(token.encode(), self.server.token.encode())
        if known and self.headers.get("Host") in hosts:  # a foreign name that was pointed at this machine is refused
            return unquote(name)
        self._refuse(HTTPStatus.FORBIDDEN, "open the address that `ralph ui --web` printed")
        return None

    def _refuse(self, status: HTTPStatus, words: str, *more: Child) -> None:
        self._answer(status, document("ralph", element("h1", words), *more, policy=POLICY))

    def _lead(self, status: HTTPStatus, where: str) -> None:
        self.send_response(status)
        self.send_header("Location", where)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, status: HTTPStatus, page: str) -> None:
        body = page.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
            "Cache-Control": "no-store",
            "Referrer-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _obey(home: Path, name: str, form: dict[str, list[str]]) -> None:
    """Raises UserError, also for a run that is over, and OSError."""
    run = next((one for one in live.list_runs(home) if one.alive and one.id == name), None)
    order = ORDERS.get("".join(form.get("order", [])))
    if run is None:
        raise UserError(f"{name or 'nothing'} no longer runs here", "open the page of one that runs")
    if "say" in form:
        Guide(home).say(form["say"][0])
    elif order is not None:
        live.give_order(home, run, order)


def _page(server: RunsServer, known: Sequence[live.LiveRecord], record: live.LiveRecord | None, diff: bool) -> str:
    place = server.home.parent.name
    if record is None:
        return document(f"ralph in {place}", _live(element("h1", "Nothing has run here yet")), _script(), policy=POLICY)
    rows = [
        (
            element("a", one.id, href=quote(one.id, safe=""), aria_current="true" if one == record else None),
            _state(server, one),
            *rest,
        )
        for one in reversed(known)
        for _, _, *rest in [run_cells(one)]
    ]
    steps = server.commits_since(record) if diff else "\n".join(_steps(server.home, record.id))
    whole = Markup("\n").join(harmless(line) for line in steps.split("\n"))
    other = ("steps", quote(record.id, safe="")) if diff else ("diff", f"{quote(record.id, safe='')}?diff")
    return document(
        f"{record.id} {record.state}",
        element("p", f"ralph in {place}", class_="above"),
        element("h1", record.id),
        _form(record, *(element("button", word, name="order", value=word) for word in ORDERS)),
        _form(
            record,
            element("input", name="say", required="", maxlength=LENGTH, aria_label="guidance",
                    placeholder="what the next session has to know"),
            element("button", "Send guidance"),
        ),
        _live(
            section("Runs", table(COLUMNS, rows, numbers=(2, 3, 4), texts=5)),
            section(
                "Commits since it began" if diff else "Steps",
                element("p", element("a", other[0], href=other[1])),
                element("div", element("pre", whole), class_="steps", role="region", tabindex=0, aria_label="steps"),
            ),
        ),
        _script(),
        style=STYLE,
        policy=POLICY,
    )  # fmt: skip  # one page


def _state(server: RunsServer, run: live.LiveRecord) -> str:
    """Its state, and what it was asked for but has not done yet."""
    order = live.read_order(server.home / live.FOLDER / run.id) if run.alive else ""
    return f"{run.state}, {order} asked for" if order and not (order == "pause" and run.paused) else run.state


def _form(record: live.LiveRecord, *parts: Child) -> Markup:
    return element("form", *parts, method="post", action=quote(record.id, safe=""))


def _live(*parts: Child) -> Markup:
    """The part of the page that its script replaces."""
    gone = element("p", "The server has ended: ralph ui --web", id="gone", role="status", hidden="")
    return join(gone, element("div", *parts, id="live"))


def _script() -> Markup:
    return Markup('<script>{}</script><noscript><meta http-equiv="refresh" content="5"></noscript>').format(
        Markup(SCRIPT)
    )


def _steps(home: Path, id: str) -> list[str]:
    events = live.last_events(home, id, live.CAP)
    lines = [line for event in events for line in event_line(event).split("\n") if line]
    return lines[-LINES:]


def serve_runs(repo: Path) -> None:
    """Until Ctrl-C. Raises UserError outside of a repository."""
    with RunsServer(Git.open(repo)) as server, suppress(KeyboardInterrupt):
        click.echo(f"{server.address}\n  for you alone; Ctrl-C closes it, and runs continue")
        server.serve_forever()
