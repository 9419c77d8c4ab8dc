"""Names of files and folders that decide what is run, installed, checked, trusted or told to an agent, kind by kind.

All of them are globs in lower case, for a name by itself, as `paths.fold` makes one.
"""

from __future__ import annotations


def _names(kind: str) -> tuple[str, ...]:
    return tuple(kind.split())


AGENT_FOLDERS = frozenset(
    """
    .claude .codex .gemini .cursor .continue .windsurf .aider .roo .clinerules .kiro .amazonq .opencode .agents .junie
    .amp .qwen .kilocode .augment .trae .goose .factory .crush .qodo .tabnine .openhands .copilot .claude-plugin .devin
    .serena .codebuddy .rovodev
    """.split()
)
TOP_GUIDES = frozenset("agent.md warp.md crush.md".split())
"""Guides at the top of a repository, and in capitals anywhere: in small letters they are words of anybody elsewhere."""
AGENT_GUIDES = _names("agents*.md claude*.md gemini*.md qwen.md")
"""Those that say in prose how work is done: part of what is worked on, unlike hooks, servers and permissions."""
AGENT_NAMES = AGENT_GUIDES + _names(
    """
    .mcp.json mcp.json copilot-instructions* *.instructions.md .cursorrules .windsurfrules .clinerules .goosehints
    .aider* .roomodes .roorules* .kilocodemodes .kilocoderules* .augment-guidelines .openhands_instructions .rules
    .crush.json crush.json skill.md opencode.json* .env *.mdc
    .cursorignore .cursorindexingignore .geminiignore .aiexclude .aiignore .codeiumignore .clineignore .rooignore
    """
)
"""Folders and file names that coding agents read by themselves in a repository they work in."""

FOLDERS = AGENT_FOLDERS | frozenset(
    """
    .github .gitlab .gitea .forgejo .circleci .buildkite .woodpecker .teamcity .azure-pipelines .semaphore .harness .ci
    .builds .tekton .azuredevops .pipelines .drone .concourse .travis .appveyor .cirrus .zuul.d zuul.d .prow .evergreen
    .buddy .kokoro .copr .depot .rwx .mergify .allstar .trunk .semgrep
    .gitlab-ci .jenkins .hg
    .husky .githooks .git-hooks .hooks .lefthook
    .vscode .idea .fleet .zed .devcontainer .vs .nova .theia .settings .helix .nvim .vim .emacs.d .nbproject
    nbproject .gitpod
    .ralph .omc .config .mise .hermit .moon .devenv .flox .direnv .fvm
    .cargo .mvn .yarn .bundle node_modules site-packages .storybook .ipython .dvc .paket .luarocks buildsrc
    .ebextensions .platform .upsun .s2i .docker .ssh .gnupg .aws .azure .kube __pycache__
    """.split()
)
"""Folders whose content is configuration of a forge, a CI, a hook, an agent, an editor or a package manager."""

HIDDEN = _names(".*rc .*rc.* .*ignore .*.cjs .*-version")
HIDDEN_DATA = _names(".*.y*ml .*.toml .*.json* .*.ini .*.cfg .*.conf .*.xml*")
"""A hidden file with the name of a setting is one of some program, known or not. What git ignores is not seen."""
SAMPLES = HIDDEN_DATA + _names("auth.json app.json project.json")
"""What nothing reads by itself among the data of tests."""
TEST_FOLDERS = frozenset("test tests testing spec specs __tests__ e2e cypress".split())
FIXTURE_FOLDERS = frozenset("fixture fixtures".split())
DATA_FOLDERS = FIXTURE_FOLDERS | {"data"}
"""What a package of a workspace may be called, too."""
SAMPLE_FOLDERS = frozenset("__fixtures__ testdata test-data test_data".split())

FORGES = _names(
    """
    action.yml action.yaml codeowners owners owners_aliases maintainers dependabot.y*ml .dependabot* renovate.json*
    .gitattributes .gitmodules .gitconfig .gitreview .mailmap .probot bors.toml sweep.yaml license license.* licence
    licence.* copying copying.* ralph.yml ralph.yaml ralph-log.md prd.json prompt.md .last-branch
    """
)
"""What a forge or a bot of its own obeys; licences, too, because no machine changes terms."""

CI = _names(
    """
    *.gitlab-ci.y*ml appveyor.y*ml azure-pipeline* bitbucket-pipelines.y*ml jenkinsfile* *.jenkinsfile .drone.*
    cloudbuild*.y*ml cloudbuild*.json buildspec*.y*ml codemagic.y*ml .cirrus.* wercker.yml circle.yml shippable.yml
    bitrise.y*ml zuul.y*ml packit.y*ml codeship-*.y*ml buddy.yml
    release-please-config.json .release-it.* release-plz.toml cliff.toml dist-workspace.toml
    netlify.toml vercel.json now.json fly.toml render.y*ml railway.* heroku.yml procfile procfile.dev
    amplify.y*ml apprunner.y*ml appspec.y*ml wrangler.toml wrangler.json* firebase.json nixpacks.toml captain-definition
    .htaccess .htpasswd web.config
    """
)
"""What a CI, a release or a hosting service runs."""

HOOKS = _names(
    """
    .env.* *.env .xcode.env* .autoenv* prek.toml lefthook* .lefthook* hk.pkl *simple-git-hooks.* lint-staged.config.*
    captainhook.json .pre-commit-config* .pre-commit-hooks*
    """
)
"""What a shell or git runs by itself."""

EDITORS = _names(
    """
    devcontainer*.json devfile.y*ml devbox.json devenv.y*ml .replit *.code-workspace *.sublime-project *.sublime-build
    *.sublime-workspace *.pbxproj *.xcconfig *.xcscheme *.xcworkspacedata *.iml *.ipr .project .classpath .cproject
    .pydevproject tasks.vs.json launch.vs.json launchsettings.json cppproperties.json coc-settings.json
    .nvim.lua .emacs .dir-locals* .projectile .ycm_extra_conf.py .ccls .clangd compile_flags.txt hie.yaml .merlin
    .editorconfig
    .globalconfig .gdbinit .lldbinit _netrc .bash_profile .bash_login .bash_aliases .profile .zshenv .zprofile
    .iex.exs .ghci
    .ocamlinit .rprofile .renviron jupyter*_config.* .watchmanconfig
    """
)
"""What an editor, a debugger or a shell runs or obeys once somebody opens the folder."""

BUILDS = _names(
    """
    makefile makefile.* gnumakefile bsdmakefile *.mk *.mak *.makefile justfile .justfile *.just taskfile.*y*ml rakefile
    rakefile.rb *.rake gruntfile.* gulpfile.* jakefile* cakefile maskfile.md runfile earthfile magefile.go dodo.py
    pavement.py fabfile.py dockerfile* *.dockerfile containerfile* *.containerfile docker-compose* compose.y*ml
    compose.*.y*ml docker-bake.* *.dockerignore configure configure.ac configure.in configure.am *.m4 autogen.sh
    makefile*.am aminclude*.am common.am common[-_]*.am sconstruct
    sconscript wscript kconfig kbuild tupfile tupfile.* tuprules.tup *.ninja *.gn *.gni .gn cmakelists.txt *.cmake
    cmakepresets.json cmakeuserpresets.json cmakesettings.json meson.build meson_options.txt meson.options *.wrap
    xmake.lua premake*.lua *.qbs build.y*ml *.bazel workspace workspace.json workspace.bzlmod module.bazel* *.bzl
    *.bazelrc .bazelversion *.bazelproject .buckconfig* .buckroot pants.toml pants.*.toml .plzconfig*
    build.rs build.zig* build.xml build.sc build.mill* build.boot build.fsx *.cake snakefile nextflow.config dvc.yaml
    vagrantfile vagrantfile.* tiltfile tilt_config.json skaffold.y*ml helmfile.y*ml kustomization.y*ml devspace.y*ml
    okteto.y*ml garden.y*ml werf.y*ml serverless.y*ml serverless.ts serverless.json samconfig.toml cdk.json pulumi.y*ml
    pulumi.*.y*ml azure.y*ml bicepconfig.json *.tf *.tf.json *.tfvars *.tfvars.json *.hcl terraform.rc ansible.cfg
    dagger.json guardfile capfile thorfile *.thor dangerfile dangerfile.* fastfile appfile matchfile brewfile brewfile.*
    appraisals steepfile puppetfile berksfile berksfile.* robofile.php gqlgen.yml sqlc.y*ml buf.y*ml buf.*.y*ml
    foundry.toml remappings.txt project.godot *.gyp *.gypi *.rsp webpack.*.js webpack.*.[cm]js webpack.*.ts
    config-overrides.js pkgbuild apkbuild *.spec snapcraft.y*ml pluginfile config.ru
    """
)
"""What builds, packs, starts or deploys."""

PACKAGES = _names(
    """
    *.lock *.lockb *.lockfile *.lock.json *.lock.y*ml *-lock.json *-lock.y*ml *.locked *.versions.toml
    verification-metadata.xml
    package.json package.json5 package.y*ml npm-shrinkwrap.json pnpm-workspace.y*ml bunfig.toml deno.json* jsr.json*
    import_map.json .pnpmfile.* .pnp.* bower.json elm.json spago.yaml *.dhall bsconfig.json rescript.json esy.json
    conftest.py sitecustomize.py usercustomize.py *.pth *.egg-link pyvenv.cfg setup.py setup.cfg pyproject.toml
    poetry.toml pdm.toml uv.toml pipfile* pylock*.toml pixi.toml hatch.toml hatch_build.py manifest.in buildout.cfg
    pip.conf pip.ini *requirements*.txt *requirements*.in *requirements*.y*ml constraints*.txt environment.y*ml
    environment[-_.]*.y*ml conda-lock*
    cargo.toml rust-toolchain* go.mod go.sum go.work* gopkg.toml glide.yaml
    gemfile* gems.rb *.gemspec podfile* *.podspec* composer.json cpanfile cpanfile.* build.pl dist.ini
    minil.toml alienfile *.rproj
    mix.exs rebar.* gleam.toml package.swift package@*.swift package.resolved cartfile* mintfile pubspec*.y*ml pubspec.*
    melos.yaml
    *.gradle *.gradle.kts *.gradle.dcl gradle.properties gradlew* gradle-wrapper.* pom.xml mvnw* ivy.xml ivysettings.xml
    *.sbt build.properties .sbtopts .jvmopts project.clj deps.edn bb.edn shadow-cljs.edn *.csproj *.fsproj *.vbproj
    *.vcxproj* *.esproj *.pyproj *.sqlproj *.wixproj *.proj *.props *.targets *.sln *.slnx *.slnf *.nuspec
    packages.config nuget.config global.json dotnet-tools.json paket.dependencies paket.references paket.template
    *.cabal cabal.project* stack.yaml* *.opam opam dune dune-project dune-workspace flake.nix *.nix guix.scm
    manifest.scm chart.yaml jsonnetfile.json vendir.yml
    vcpkg*.json conanfile.* project.toml manifest.toml manifest-v*.toml juliaproject.toml juliamanifest.toml
    localpreferences.toml shard.yml dub.json dub.sdl dub.selections.json *.nimble *.nims nim.cfg *.rockspec v.mod
    fpm.toml alire.toml *.gpr scarb.toml typst.toml wally.toml aftman.toml rokit.toml foreman.toml lerna.json nx.json
    turbo.json rush.json moon.y*ml angular.json nest-cli.json ember-cli-build.js nodemon.json
    .python-versions .ruby-gemset .tool-versions .prototools mise.toml mise.*.toml aqua.y*ml
    """
)
"""What is installed, in which version and from where; lock files too."""

CHECKS = _names(
    """
    tox.ini noxfile.py pytest.ini pytest.toml codecov.y*ml sonar-project.properties .sonarcloud.properties .snyk
    trivy.yaml osv-scanner.toml .secrets.baseline audit-ci.json* deny.toml .tflint.hcl .whitesource
    *.config.js *.config.cjs *.config.mjs *.config.ts *.config.mts *.config.cts *.config.json vitest.workspace.*
    .xo-config* .size-limit* lighthouserc.* .flowconfig wdio.conf.* protractor.conf.* cypress.json webpack.mix.*
    karma.conf.* tslint*.json tsconfig*.json jsconfig*.json biome.json*
    jest.setup.* vitest.setup.* setuptests.* spec_helper.rb rails_helper.rb test_helper.rb test_helper.exs
    mkdocs.y*ml book.toml _config.y*ml mypy.ini pyrightconfig.json pyrefly.toml ruff.toml .flake8 pylintrc .bandit
    .style.yapf .pydocstyle*
    .pycodestyle .pep8 .pyre_configuration* .importlinter clippy.toml rustfmt.toml tarpaulin.toml nextest.toml
    .rspec .rubocop .reek .simplecov
    phpstan*.neon* phpunit*.xml* psalm*.xml* phpcs*.xml* .php-cs-fixer* .php_cs* pint.json grumphp.y*ml infection.json*
    .busted stylua.toml selene.toml .formatter.exs .credo.exs *.ruleset *.runsettings .swiftformat
    analysis_options*.yaml dart_test.yaml .ocamlformat .clang-format .clang-tidy .yamllint* .markdownlint* .ansible-lint
    _typos.toml typos.toml cspell.json cspell.*.json
    """
)
"""What tests, checkers and formatters look at, and what they overlook."""

NAMES = AGENT_NAMES + HIDDEN + FORGES + CI + HOOKS + EDITORS + BUILDS + PACKAGES + CHECKS
"""File names that decide what is run, installed, checked, ignored or told to an agent."""
TOP_NAMES = TOP_GUIDES | {"cross.toml"}
"""Names that mean something at the top of a repository, and elsewhere with a capital, as their programs write them."""
GIT_HOOKS = _names(
    """
    applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit
    pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update
    reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman
    """
)
PLACES = _names(
    "requirements/*.txt requirements/*.in renv/activate.r debian/rules doc/conf.py docs/conf.py source/conf.py"
) + tuple(f"{folder}/{hook}" for folder in _names("hooks githooks git-hooks git_hooks") for hook in GIT_HOOKS)
"""Names that mean something in a folder of one name alone."""
CAPITALS = frozenset({"BUCK", "BUILD", "DEPS", "DESCRIPTION", "TARGETS"})
"""The same of names that are ordinary words in small letters, as `scripts/build` is."""
