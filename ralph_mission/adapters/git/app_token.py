"""The token of a GitHub App: PyGithub finds the app's installation, and renews the token before it expires after an
hour.

Its retry waits for limits and retries failures, here also of POST: creating a token twice does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ralph_mission.errors import UserError
from ralph_mission.extras import require_extra

if TYPE_CHECKING:
    from github import GithubException
    from github.Auth import AppInstallationAuth

NAMES = ("GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY")
TRIES, PATIENCE = 3, 120.0  # after the first attempt; seconds to wait for a rate limit


class AppToken:
    """An app's sign-in for a repository; call it to get the current token. No error contains its key."""

    def __init__(self, api: str, repository: str, app: str, key: str) -> None:
        self._api, self._repository, self._app, self._key = api, repository, app, key
        self._auth: AppInstallationAuth | None = None
        self.permissions: Mapping[str, str] = {}  # of the installation, once a token was asked for

    def __call__(self) -> str:
        """A token that stays valid for a while. Raises UserError."""
        require_extra("app", "a GitHub App needs")
        from github import GithubException

        try:
            self._auth = self._auth or self._sign_in()
            return self._auth.token
        except GithubException as error:
            self._auth = None  # it may be installed again
            raise self._refusal(error) from None
        except OSError as error:  # from requests; its text may contain anything
            what = f"cannot reach {urlsplit(self._api).netloc} for the app's token ({type(error).__name__})"
            raise UserError(what, "nothing was lost; the next wake tries again", who="network") from None

    def forget(self) -> None:
        """Sign in again for the next request: GitHub refused the present token, which may have been revoked."""
        self._auth = None

    def _sign_in(self) -> AppInstallationAuth:
        from github import Auth, GithubIntegration, GithubRetry
        from jwt import PyJWTError

        app = Auth.AppAuth(self._app, self._key)
        try:
            app.create_jwt()
        except (PyJWTError, ValueError, TypeError):
            what = f"{NAMES[1]} (the input private-key) is not a private key"
            raise UserError(what, "give the whole text of the app's .pem file", usage=True) from None
        integration = GithubIntegration(
            auth=app,
            base_url=self._api,
            retry=GithubRetry(total=TRIES, backoff_factor=1, max_rate_limit_wait=PATIENCE),
            seconds_between_requests=None,
            seconds_between_writes=None,
        )
        with integration:
            found = integration.get_repo_installation(*self._repository.split("/"))
        self.permissions = dict(found.raw_data.get("permissions") or {})
        return app.get_installation_auth(found.id, requester=integration.requester)

    def _refusal(self, error: GithubException) -> UserError:
        if error.status == 401:
            what = f"GitHub does not accept the key of the app {self._app}"
            return UserError(what, f"look at {' and '.join(NAMES)}, and at this machine's clock")
        if error.status == 404:
            what = f"the GitHub App {self._app} is not installed in {self._repository}"
            return UserError(what, "install it: the app's page on GitHub, Install App")
        if error.status == 403:
            what = f"GitHub gives the app {self._app} no token for {self._repository} (is it suspended?)"
            return UserError(what, "look at its installation: Settings → GitHub Apps")
        what = f"GitHub answers {error.status} when the app asks for its token"
        return UserError(what, "nothing was lost; the next wake tries again", who="forge")


@cache
def app_token(api: str, repository: str, app: str, key: str) -> AppToken:
    """This process's app token: `ralph watch` runs for weeks and asks every minute."""
    return AppToken(api, repository, app, key.replace("\\n", "\n"))  # a file of NAME=value has it on one line
