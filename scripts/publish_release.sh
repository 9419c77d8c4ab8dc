#!/usr/bin/env bash
# Release what is in dist/ on GitHub under the tag that was pushed, with what the changelog says of it, and let v1
# follow. v1 is the newest v1.x.y: neither a candidate nor a fix of an older version moves it. `ralph init` writes
# commits, which nobody can move.
set -euo pipefail

# newest PREFIX: the newest version among the tags that begin so, candidates left out.
newest() {
  gh api --paginate "repos/$GITHUB_REPOSITORY/git/matching-refs/tags/$1" --jq '.[].ref | ltrimstr("refs/tags/")' |
    grep -xE 'v[0-9]+([.][0-9]+){2}' | sort -V | tail -n 1
}

kind=--latest=false major="${GITHUB_REF_NAME%%.*}"
if [ "$(newest v)" = "$GITHUB_REF_NAME" ]; then kind=--latest; fi
if ! grep -qxE 'v[0-9]+([.][0-9]+){2}' <<<"$GITHUB_REF_NAME"; then kind=--prerelease; fi
sed -n "/^## \[${GITHUB_REF_NAME#v}\]/,/^## \[/{/^## \[/!p;}" CHANGELOG.md |
  gh release create "$GITHUB_REF_NAME" dist/* --verify-tag --notes-file - "$kind"

if [ "$(newest "$major.")" = "$GITHUB_REF_NAME" ]; then
  gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/git/refs/tags/$major" -f "sha=$GITHUB_SHA" -F force=true ||
    gh api --silent "repos/$GITHUB_REPOSITORY/git/refs" -f "ref=refs/tags/$major" -f "sha=$GITHUB_SHA"
fi
