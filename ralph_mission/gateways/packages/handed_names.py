"""Settings of package managers that lead nowhere, run nothing and write nowhere else: all others are refused.

Addresses among them are judged apart. Names as people write them; `-`, `_` and capitals make no difference.
"""

from __future__ import annotations

KNOWN = frozenset(
    # npm and pnpm
    """registry save-exact save-prefix engine-strict legacy-peer-deps strict-peer-deps strict-peer-dependencies fund
    audit audit-level package-lock lockfile loglevel progress update-notifier ignore-scripts always-auth email access
    color unicode message tag lockfile-version install-links install-strategy prefer-dedupe prefer-offline offline
    strict-ssl fetch-retries fetch-retry-factor fetch-retry-maxtimeout fetch-retry-mintimeout fetch-timeout maxsockets
    before min-release-age sign-git-tag provenance omit include workspaces include-workspace-root auto-install-peers
    shamefully-hoist hoist hoist-pattern public-hoist-pattern node-linker link-workspace-packages catalog catalogs
    prefer-workspace-packages shared-workspace-lockfile save-workspace-protocol resolution-mode prefer-frozen-lockfile
    dedupe-peer-dependents dedupe-direct-deps exclude-links-from-lockfile inject-workspace-packages side-effects-cache
    enable-pre-post-scripts package-manager-strict package-manager-strict-version manage-package-manager-versions
    packages overrides package-extensions peer-dependency-rules allowed-deprecated-versions only-built-dependencies
    never-built-dependencies ignored-built-dependencies allow-builds strict-dep-builds minimum-release-age
    minimum-release-age-exclude supported-architectures ignored-optional-dependencies catalog-mode
    cleanup-unused-catalogs block-exotic-subdeps peers-suffix-max-length network-concurrency
    child-concurrency reporter recursive-install ignore-workspace-root-check disallow-workspace-cycles
    """
    # yarn, 1 and later; its path of another yarn is switched off in the environment
    """yarn-path ignore-path ignore-engines network-timeout disable-self-update-check last-update-check version-git-tag
    version-git-message version-tag-prefix npm-registry-server npm-publish-registry npm-audit-registry npm-always-auth
    npm-auth-token npm-auth-ident npm-publish-access npm-publish-provenance npm-scopes npm-registries
    npm-minimal-age-gate npm-preapproved-packages unsafe-http-whitelist compression-level default-protocol
    default-semver-range-prefix default-language-name defer-version-folder enable-colors enable-constraints-checks
    enable-global-cache enable-hardened-mode enable-hyperlinks enable-immutable-cache enable-immutable-installs
    enable-inline-builds enable-inline-hunks enable-message-names enable-mirror enable-network enable-progress-bars
    enable-scripts enable-strict-ssl enable-telemetry enable-timers enable-transparent-workspaces http-retry
    http-timeout init-scope init-fields log-filters nm-hoisting-limits nm-mode nm-self-references pnp-mode
    pnp-fallback-mode pnp-ignore-patterns pnp-enable-esm-loader pnp-enable-inlining prefer-aggregate-cache-info
    prefer-deferred-versions prefer-interactive prefer-truncated-lines prefer-reuse progress-bar-style
    checksum-behavior cache-migration-mode immutable-patterns changeset-base-refs changeset-ignore-patterns
    telemetry-interval ts-enable-auto-types win-link-type
    """
    # uv
    """index index-url extra-index-url find-links no-index sources workspace package managed dev-dependencies
    override-dependencies constraint-dependencies build-constraint-dependencies exclude-dependencies environments
    required-environments conflicts default-groups dependency-groups dependency-metadata required-version resolution
    prerelease fork-strategy index-strategy exclude-newer exclude-newer-package no-build no-build-package
    no-build-isolation no-build-isolation-package no-binary no-binary-package no-sources link-mode compile-bytecode
    python-preference python-downloads preview pip build-backend cache-keys native-tls system-certs concurrent-downloads
    concurrent-builds concurrent-installs reinstall reinstall-package config-settings extra-build-dependencies
    publish-url check-url trusted-publishing add-bounds torch-backend allow-insecure-host""".split()
)
