"""Files whose content acts later: they decide what runs or who may approve, are run, or steer agents (decision 10)."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from whisper_tui.model.call import AGENT_INSTRUCTIONS

_HOME = r"(?:/home/[^/]+|/Users/[^/]+|/export/home/[^/]+|/root|/var/root|/etc/skel)"
_STARTUP = re.compile(
    _HOME
    + r"/(?:\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|zlogout|"
    r"kshrc|mkshrc|cshrc|tcshrc|login|xprofile|xinitrc|xsession|xsessionrc|pam_environment|inputrc|vimrc|gitconfig|npmrc|"
    r"tmux\.conf|screenrc|gdbinit|pythonrc(?:\.py)?|Rprofile|irbrc)|\.oh-my-zsh/.*|"
    r"\.config/(?:fish|systemd/user|autostart|environment\.d|git|nvim|tmux)/.*|Library/LaunchAgents/.*)\Z"
    r"|/etc/(?:profile(?:\.d/.*)?|bash\.bashrc|bashrc|zsh/.*|zshrc|zshenv|environment|crontab|cron\.[^/]+/.*|sudoers(?:\.d/.*)?|"
    r"ld\.so\.(?:preload|conf(?:\.d/.*)?)|passwd|shadow|group|rc\.local|init\.d/.*|systemd/.*|pam\.d/.*|ssh/.*|hosts|"
    r"xdg/autostart/.*|gitconfig)\Z|/var/spool/cron/.*\Z|/(?:usr/)?lib/systemd/.*\Z",
    re.DOTALL,
)
_OF_THE_SYSTEM = re.compile(r"/etc/(?:sudoers|ld\.so|passwd|shadow|group|pam\.d|ssh|hosts|gitconfig)")
_ANYWHERE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/\.ssh/(?:authorized_keys2?|config|rc|environment|id_[^/]*)\Z"), "keys or settings of ssh"),
    (re.compile(r"/(?:\.claude(?:/(?:settings[^/]*\.json|(?:hooks|commands|skills|agents|plugins|"
                r"workflows|output-styles|rules|agent-memory|scheduled_tasks\.json)(?:/.*)?))?|"
                r"\.claude\.json|\.mcp\.json|\.vscode/mcp\.json|\.github/(?:mcp\.json|(?:hooks|copilot)/.*)|"
                r"\.copilot(?:/.*)?|\.?crush\.json|\.crush(?:/.*)?|\.roo/mcp\.json|\.kiro/(?:hooks|agents|settings)(?:/.*)?|"
                r"\.kimi-code(?:/.*)?|\.kilo(?:code)?(?:/.*)?|kilo\.jsonc?|\.config/kilo(?:/.*)?|"
                r"\.config/goose(?:/.*)?|\.windsurf(?:/.*)?|\.factory(?:/.*)?|\.codex(?:/.*)?|"
                r"\.gemini(?:/.*)?|\.qwen(?:/.*)?|opencode\.jsonc?|\.config/opencode(?:/.*)?|\.opencode(?:/.*)?|"
                r"\.cursor/(?:(?:mcp|hooks|cli|environment)[^/]*\.json|(?:hooks|commands|skills|agents|plugins)(?:/.*)?)"
                r")\Z", re.DOTALL), "the settings of an agent"),
    (re.compile(r"/(?:\.git/(?:hooks(?:/.*)?|config|info/attributes)|\.husky(?:/.*)?|\.githooks/.*)\Z", re.DOTALL),
     "hooks or settings of git"),
    (re.compile(r"/(?:\.whisper-tui(?:/.*)?|\.config/whisper_tui(?:/.*)?|\.local/(?:state|share)/whisper_tui(?:/.*)?)\Z",
                re.DOTALL), "the configuration or the state of whisper_tui"),
)  # fmt: skip
_ANY_OF_THEM = re.compile("|".join(pattern.pattern for pattern, _ in _ANYWHERE), re.DOTALL)
_OWN_KIND = "the configuration or the state of whisper_tui"


def sensitive_kind(path: str, home: str, own: Sequence[str]) -> str | None:
    """Return the kind of a path that controls what runs later or who may approve, or None."""
    return _sensitive(posixpath.normpath(path), home.rstrip("/"), own)


def _sensitive(path: str, home: str, own: Sequence[str]) -> str | None:
    if f"{path}/".startswith(tuple([each.rstrip("/") + "/" for each in own])):
        return _OWN_KIND
    # the pattern knows homes by their usual places; this home may be anywhere
    as_if = "/root" + path[len(home) :] if home and path.startswith(f"{home}/") else path
    if _STARTUP.match(path) or (as_if is not path and _STARTUP.match(as_if)):
        return "a system file" if _OF_THE_SYSTEM.match(path) else "a start-up file"
    # one search for nearly all paths: a preview may have a hundred thousand files
    if _ANY_OF_THEM.search(path) is None:
        return None
    return next(said for pattern, said in _ANYWHERE if pattern.search(path))


PACKAGE_SCRIPTS = "the scripts of package.json"
PYTHON_PROJECT = "the settings of a Python project"
_RUN_LATER: tuple[tuple[str, str], ...] = (
    (PACKAGE_SCRIPTS, "package.json"),
    (PYTHON_PROJECT, "pyproject.toml"),
    (AGENT_INSTRUCTIONS, """
        CLAUDE.md CLAUDE.local.md AGENTS.md AGENTS.override.md AGENT.md GEMINI.md QWEN.md KIMI.md CRUSH.md WARP.md
        CODEX.md OPENCODE.md COPILOT.md SKILL.md *.agent.md *.chatmode.md *.instructions.md *.prompt.md
        .github/copilot-instructions.md .github/instructions/** .github/prompts/** .github/agents/**
        .github/chatmodes/** .github/skills/** .cursorrules .cursor/rules/** .windsurfrules .clinerules
        .clinerules/** .cline/** .roorules* .roomodes .roo/** .kilocoderules* .kilocodemodes .goosehints .goose/**
        .continuerules .continue/** .rules .junie/** .amazonq/** .kiro/** .aiassistant/** .trae/** .augment/**
        .augment-guidelines .openhands/** .agent/** .agents/** .amp/** .idx/airules.md .aider.conf.yml replit.md
        llms-install.md"""),
    ("settings of tests, with code that they run", """
        conftest.py tox.ini tox.toml pytest.ini .pytest.ini .coveragerc .mocharc.* .nycrc* .taprc jasmine.json
        jest.config.json vitest.workspace.* testem.js wallaby.js cypress.json cucumber.js cucumber.json cucumber.yml
        cucumber.yaml .detoxrc* .rspec .rspec-local .simplecov .busted phpunit.xml phpunit.xml.dist .config/nextest.toml
        """),
    ("settings of a linter, with code that it runs", """
        .eslintrc .eslintrc.* .oxlintrc.json .stylelintrc* .prettierrc* .commitlintrc* .markdownlint-cli2.jsonc pylintrc
        .pylintrc pylintrc.toml .pylintrc.toml .flake8 mypy.ini .mypy.ini .gitlint .rubocop.yml .yardopts .golangci.yml
        .golangci.yaml .golangci.toml .golangci.json phpstan.neon phpstan.neon.dist psalm.xml psalm.xml.dist rector.php
        .php-cs-fixer.php .php-cs-fixer.dist.php"""),
    ("a build file", """
        GNUmakefile makefile *.mk Makefile.am Makefile.in Makefile.PL Build.PL configure configure.ac CMakeLists.txt
        *.cmake CMakePresets.json CMakeUserPresets.json meson.build meson_options.txt meson.options =BUILD BUILD.bazel
        =WORKSPACE WORKSPACE.bazel MODULE.bazel *.bzl .bazelrc .bazelversion .bazeliskrc =BUCK .buckconfig* pants.toml
        SConstruct SConscript wscript premake5.lua xmake.lua Earthfile Tiltfile Justfile .justfile *.just Taskfile.yml
        Taskfile.yaml Taskfile.dist.yml Taskfile.dist.yaml maskfile.md Snakefile skaffold.yaml Rakefile Rakefile.rb
        *.rake Thorfile Dangerfile Jakefile build.rs Makefile.toml bacon.toml build.zig Package.swift mix.exs .*.exs
        rebar.config rebar.config.script build.sbt *.sbt build.sc build.mill project.clj build.clj deps.edn bb.edn
        shadow-cljs.edn Setup.hs dune dune-project *.nimble *.nims *.rockspec magefile.go magefiles/** .air.toml
        .goreleaser.yml .goreleaser.yaml buf.gen.yaml gradlew gradlew.bat *.gradle *.gradle.kts gradle.properties
        gradle/wrapper/** buildSrc/** mvnw mvnw.cmd pom.xml .mvn/** *.csproj *.fsproj *.vbxproj Directory.Build.props
        Directory.Build.targets *.targets setup.py setup.cfg noxfile.py tasks.py invoke.yaml fabfile.py dodo.py
        hatch.toml pixi.toml poe_tasks.toml poe_tasks.yaml poe_tasks.json Pipfile conanfile.py ansible.cfg
        terragrunt.hcl Vagrantfile Procfile Procfile.* .cargo/config .cargo/config.toml rust-toolchain
        rust-toolchain.toml gulpfile.* Gruntfile.* webpack.mix.js ember-cli-build.js *.config.js *.config.cjs
        *.config.mjs *.config.ts *.config.cts *.config.mts *.conf.js *.conf.cjs *.conf.mjs *.conf.ts *.conf.cts
        *.conf.mts .*.js .*.cjs .*.mjs .*.ts .*.cts .*.mts .storybook/** .babelrc .babelrc.json babel.config.json
        .postcssrc* .releaserc* nodemon.json nx.json project.json rush.json command-line.json angular.json melos.yaml
        .moon/** moon.yml dprint.json package.json5 package.yaml pnpm-workspace.yaml .yarn/releases/** .yarn/plugins/**
        .yarn/sdks/** .yarnrc .yarnrc.yml bunfig.toml deno.json deno.jsonc composer.json castor.php RoboFile.php
        Gemfile *.gemspec Podfile Fastfile Guardfile Capfile Brewfile flake.nix shell.nix default.nix devenv.nix
        devbox.json"""),
    ("commands or settings that a shell or a package manager loads in its directory", """
        .envrc .autoenv .npmrc .pnpmrc .pypirc uv.toml .tool-versions mise.toml mise.*.toml .mise.toml .mise.*.toml
        mise/config.toml mise/config.*.toml mise/tasks/** mise-tasks/** .mise/** .mise-tasks/** .config/mise/**
        .tmuxinator.yml"""),
    ("code that every program of its language loads", """
        sitecustomize.py usercustomize.py *.pth .Rprofile .Renviron .irbrc .pryrc .pdbrc .pdbrc.py
        .gdbinit .lldbinit .ghci"""),
    ("a program of the project", """
        .venv/bin/** venv/bin/** .venv/Scripts/** venv/Scripts/** node_modules/.bin/** vendor/bin/**"""),
    ("the description of a container", """
        Dockerfile Dockerfile.* *.Dockerfile Containerfile docker-compose.yml docker-compose.yaml
        docker-compose.*.yml docker-compose.*.yaml compose.yml compose.yaml compose.*.yml compose.*.yaml
        docker-bake.hcl"""),
    ("a file of the CI", """
        .github/workflows/** .github/actions/** .gitlab-ci.yml .gitlab/ci/** .circleci/** .travis.yml .drone.yml
        Jenkinsfile azure-pipelines.yml azure-pipelines.yaml bitbucket-pipelines.yml .buildkite/** .woodpecker/**
        .woodpecker.yml .woodpecker.yaml .cirrus.yml appveyor.yml .appveyor.yml .forgejo/workflows/**
        .gitea/workflows/**"""),
    ("hooks of git", """
        .pre-commit-config.yaml .pre-commit-hooks.yaml prek.toml lefthook.* lefthook-local.* .lefthook.*
        .lefthook-local.* .lefthook/** .huskyrc* .lintstagedrc* .simple-git-hooks.* simple-git-hooks.*
        .overcommit.yml"""),
    ("filters and modules of git", ".gitattributes .gitmodules"),
    ("a task of an editor", """
        .vscode/tasks.json .vscode/launch.json .vscode/settings.json .zed/tasks.json .zed/debug.json
        .zed/settings.json .devcontainer/** devcontainer.json .devcontainer.json .idea/runConfigurations/**
        *.code-workspace *.sublime-project .exrc .vimrc .nvimrc .nvim.lua .dir-locals.el"""),
)  # fmt: skip
"""Kinds of files with patterns of their names: `*` is part of a name, `/**` is everything below a directory, and `=`
before a name makes letters matter.

They hold code, or name commands or code that a tool loads. What only names a version (`.nvmrc`) or turns checks on and
off (`ruff.toml`) is none of them; `.tool-versions` may name a directory of programs."""


def _plain_names() -> Iterator[tuple[str, str]]:
    for kind, globs in _RUN_LATER:
        yield from ((glob, kind) for glob in globs.split() if "*" not in glob and "/" not in glob)


def _pattern(globs: str) -> str:
    texts = (re.escape(glob) for glob in globs.split() if "*" in glob or "/" in glob)
    return "|".join(text.replace(r"\*\*", ".*").replace(r"\*", "[^/]*") for text in texts) or r"(?!)"


# Names are looked up, because a preview may have a hundred thousand files. macOS ignores the case of letters.
_NAMES = {name if name.startswith("=") else name.casefold(): kind for name, kind in _plain_names()}
_KINDS = tuple(kind for kind, _ in _RUN_LATER)
_PATTERNS = re.compile(
    "/(?:" + "|".join(f"({_pattern(globs)})" for _, globs in _RUN_LATER) + r")\Z", re.DOTALL | re.IGNORECASE
)


def later_kind(path: str) -> str:
    """Return the kind of a file that an ordinary command of the project runs, or that agents follow. Empty: neither."""
    return _later(posixpath.normpath(path))


def _later(path: str) -> str:
    name = path.rpartition("/")[2]
    if kind := _NAMES.get(name.casefold()) or _NAMES.get(f"={name}"):
        return kind
    found = _PATTERNS.search(path)
    return _KINDS[found.lastindex - 1] if found is not None and found.lastindex else ""


def flagged_kind(path: str, home: str, own: Sequence[str]) -> str:
    """Return the kind of a file whose content acts later in any way. Empty: it is an ordinary file."""
    if "/." in path or "//" in path or path[:1] != "/" or path[-1:] == "/":  # most need no such look
        path = posixpath.normpath(path)
    return _sensitive(path, home.rstrip("/"), own) or _later(path)


def holds_sensitive(path: str, home: str, own: Sequence[str]) -> bool:
    """True if a directory lies above such files, so that extracting or copying a tree there may overwrite them."""
    path = posixpath.normpath(path)
    if path in {"/", "/home", "/etc", "/root", home.rstrip("/")}:
        return True
    below = path.rstrip("/") + "/"
    if any(each.startswith(below) for each in own):
        return True
    # such as ~/.config/fish, of which every file counts, and ~/.ssh
    return any(sensitive_kind(below + name, home, own) is not None for name in ("x", "config"))
