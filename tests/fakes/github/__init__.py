"""GitHub on loopback: its REST API (version 2022-11-28) and smart HTTP over one real bare repository.

    with FakeGitHub(bare, "harbour/slackwater") as fake:        # bare: a Path to an existing bare repository
        token = fake.token()                                     # github-actions[bot], id 41898282
        mara = fake.person("mara")                               # may write
        ...                                                      # GITHUB_API_URL=fake.api_url, and fake.url
    # leaving raises AssertionError when anything was asked that the fake does not know (`fake.unknown`)

`FakeGitHub(bare, repository="harbour/slackwater", *, default_branch="main", private=False)`

Addresses
    fake.url              http://127.0.0.1:P; the API answers below it too
    fake.api_url          http://127.0.0.1:P/api/v3
    fake.git_url          http://127.0.0.1:P/OWNER/NAME.git: Basic (any user name, the token as password) or bearer
    fake.repository, fake.owner, fake.name, fake.default_branch, fake.bare

Time
    fake.clock.now        settable, UTC; starts at 2026-05-04 12:00:00. Every mutation happens at
                          max(clock.now, the last one + 1 s), in whole seconds; `Date` tells the same clock.
    fake.clock.advance(seconds)

Accounts. Each `Person` has login, id, `actor` (ralph_mission.mission.model.mission.Actor) and, applied at once, without
HTTP and without a line in the journal:
    create_issue(title, body="", labels=()) -> number        open_pull(head, base, title, body="") -> number
    comment(number, text) -> id                              label / unlabel(number, labels) -> number
    review(number, state, text="") -> id                     approved | changes_requested | commented
    dismiss(number, review_id=None, message="") -> id        None: the newest review of that pull
    close_issue(number, reason="") -> number                 completed (default) | not_planned
    close_pull(number) -> number                             reopen(number) -> number
    merge(number, method="squash") -> sha                    edit_issue(number, title=None, body=None)
    edit_comment(id, text), delete_comment(id)               delete_issue(number)
    push(branch, files, base="") -> sha
    set_permission(level)                                    rename(login)
    fake.person(login, permission="write")     none read triage write maintain admin; the same login is the same
                                               person; the permission is set when given, or when the person is new
    fake.bot(login)                            a Person of type Bot; write the `[bot]` yourself
    fake.token(login="github-actions[bot]", kind=None, permissions=None, scopes=("repo", "workflow"),
               repository="") -> str
        kind: "installation" (a [bot] login's default) or "pat" (everybody else's). An installation has `permissions`
        ({"contents": "write", ...}; default: contents, issues, pull_requests write; actions, checks, statuses,
        deployments read; "metadata" is always readable), whatever the visibility; a PAT has the rights of its person.
        repository: another one that it is good for alone; nothing here is open to it, and of that one only the runs of
        its workflows are there (they are `fake.workflow_run`'s).
    fake.app(login, permissions=None, *, lives=1 h, installed=True, suspended=False) -> App, its private key as PEM
        A GitHub App: by a JWT (checked by this machine's clock) it is told its installation and given tokens, of which
        one that lives 20 s or less is over when the next is made.
    fake.revoke(token)

The repository
    fake.push(branch, files, base="", message="Change") -> sha   somebody's commit on top of the branch, which is made
        from base ("": the default branch) when there is none; None removes a file. Who moves refs in `bare` directly
        is noticed too.
    fake.branch(name) -> sha or ""
    fake.check(sha, name, conclusion, required=False)      a check run; conclusion None: still in progress; required:
                                                           also demanded by the default branch's protection
    fake.status(sha, context, state)                       a commit status
    fake.protect(branch, *, required_reviews=0, required_checks=(), required_signatures=False,
                 restrict_pushes=False, strict=False, dismiss_stale=False, enforce_admins=True)
        Pushing is refused with GH006 (GH013 for signatures), merging with 405; `strict`: the head must be up to date.
    fake.unprotect(branch)
    fake.ruleset(*branches, required_reviews=None, required_checks=(), required_signatures=False, strict=False,
                 dismiss_stale=False, merge_queue=False, forbidden=()) -> id
        One more active ruleset, bypassed by nobody, for the branches that a pattern covers: a name, "~ALL",
        "~DEFAULT_BRANCH", or GitHub's wildcards ("ralph/*", "**/*"). required_reviews: changes come by a pull with so
        many approvals, 0 for a pull alone; forbidden: creation, update, deletion, non_fast_forward. Told by
        /rules/branches/NAME, whether NAME is there or not. Pushing is refused with GH013, merging with 405; a branch
        that it covers is `protected`. Where signatures are required, only the author
        of a pull may squash it, and a merge commit takes signed commits alone. `fake.world.rulesets` is their list.
        merge_queue: changes come by a queue alone: PUT merge is 405, `enqueuePullRequest` puts them in.
    fake.leave_queue(number, reason="")   the queue merged a pull, or removed it for a reason
    fake.rename_default(new)   by the owner: open pulls onto it and its protection follow, open pulls from it close
    fake.settings          actions_can_create_pulls=True, allow_squash_merge, allow_merge_commit =True,
                           has_issues=True, archived=False, disabled=False
    fake.workflow(path, name=None, state="active")
    fake.workflow_run(id, status, conclusion=None, event="schedule", created_at=None, run_started_at=None,
                      path=".github/workflows/ralph-loop.yml", head_sha=None, head_branch=None,
                      attempt=1, from_fork=False, repository="")   again: replaced
    fake.workflow_job(run, name, conclusion="failure", steps=(), log=None, attempt=1) -> id
        `steps` are (name, conclusion); a log of None is gone. Logs and archives are served below /_stored/, where a
        token in a request is an error.
    fake.artifact(run, name, content, expired=False) -> id
    fake.issue(number) / fake.pull(number) -> Thread, fake.threads     what is really there, for asserting on
    fake.labels, fake.comments, fake.dispatches: [Dispatch(event_type, client_payload, at, login)]

What was received
    fake.journal           [Request(method, path, query, status, login, conditional, transport, body)] in the order
                           of arrival. `path` is without /api/v3 and query; `status` is 0 when the connection was
                           dropped; `transport` is rest | graphql | git; `body` is the parsed JSON or None.
                           `request.below` is the path below the repository: "/issues/3", "/info/refs".
    fake.count(transport=None, method=None, below=None, status=None) -> int      `below` is an fnmatch pattern
    fake.unknown           [str] what was asked or answered wrongly: unknown path, method, query or body key (all 501),
                           media type, API version, GraphQL query; with `fake.validate` also replies of the fake's own
                           that GitHub's description does not allow. What broke inside the fake stands here too.
    fake.validate          default True: replies are parsed with the models generated from GitHub's description

What goes wrong
    fake.fail(kind, match=("POST", "/issues"), times=1, after=0)     -> Fault, `fault.used` counts
        match: method ("*": any) and an fnmatch pattern on what is below the repository: "/issues" is the creation
        of an issue, "/issues/*/comments" that of a comment; outside of it the whole path ("/user"). For git:
        "/info/refs?service=git-receive-pack", "/git-receive-pack", "/git-upload-pack". A commit by GraphQL
        (`createCommitOnBranch`) moves a branch as a push does: it is "/git-receive-pack" too, with transport graphql.
        times: how often; after: let so many that match pass first. The first fault that matches is taken.
        kinds, of which nothing is applied unless the name says so:
            401 403 404 409 422 500 | 502_applied 502_not_applied
            timeout_applied timeout_not_applied      no answer until the client leaves
            reset_applied reset_not_applied          the connection is closed without an answer
            rate_primary                             403, x-ratelimit-remaining: 0, x-ratelimit-reset
            rate_secondary rate_secondary_429        403 or 429, Retry-After: 60
            garbage                                  applied, 200, no JSON
            redirect                                 301 (307 for what is no GET) to /repositories/ID/..., which works
    fake.faults            the faults that are still to come; .clear() forgets them
    fake.before(call)      call(request) ahead of everything else; may raise Crash: dropped, nothing applied
    fake.after(call)       call(request, response) before the answer is sent; may raise Crash: applied, answer lost
                           response has status, headers, payload. Both return a function that removes them.
    fake.list_lag = 0      so many list requests do not show an issue, comment, pull or event made from now on
    fake.mergeable_lag = 0 so many GETs of a pull say `mergeable: null` after it was made or its head moved
    fake.page_size_cap = 100

Where it differs from GitHub, or is stricter
    A permission that an installation lacks is refused for a public repository too. Nothing answers without a token,
    but for reading by git. Every answer by git closes its connection, because git's HTTP library silently repeats a
    request that got no answer on a connection that was used before. Merging by rebase, search, milestones, review
    comments, forks, drafts made ready and everything else that is not listed in `validation.REPLIES` is unknown;
    so is a text with NUL or a lone surrogate, as nobody could say what GitHub makes of it. There are no events for
    cross-references; `mentioned` and `subscribed` are there. `closed_by` is told by the single issue only.
    A branch's old name is 404 after it was renamed, where GitHub redirects readers of the API.
"""

from tests.fakes.github.faults import Crash, Fault
from tests.fakes.github.nouns import Dispatch, Request, Thread
from tests.fakes.github.people import Person
from tests.fakes.github.server import FakeGitHub

__all__ = ["Crash", "Dispatch", "FakeGitHub", "Fault", "Person", "Request", "Thread"]
