"""Commands by name, shared options, errors to sentences by code.

The program's commands by name, and the one place where errors become words.

A command's module is imported when it is run, never to list it. Every error of ours ends
here as one sentence on stderr (or one JSON object, with `--json`) and its exit code; a
traceback is shown only where `REVERIE_DEBUG` is set.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from reverie.errors import NotAvailable, ReverieError, StoreError

if TYPE_CHECKING:
    from reverie.store.project import Project


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is, as `module:name`, and its line in the help."""

    place: str
    about: str

    @property
    def module(self) -> str:
        return self.place.partition(":")[0]

    def is_there(self) -> bool:
        return find_spec(self.module) is not None


HERE = "reverie.apps.cli"
COMMANDS = {
    "chat": LazyCommand(f"{HERE}.chat:chat", "Chat with an agent (the default command)."),
    "demo": LazyCommand(
        f"{HERE}.demo:demo", "Watch each layer at work; needs no key and no network."
    ),
    "sessions": LazyCommand(
        f"{HERE}.sessions:app", "List, show, export, import and prune sessions."
    ),
    "replay": LazyCommand(
        f"{HERE}.replay:replay", "Replay recorded sessions under a policy and measure it."
    ),
    "cache": LazyCommand(
        f"{HERE}.stats:cache", "Show what the prompt cache did, and why it broke."
    ),
    "config": LazyCommand(f"{HERE}.config:app", "Show every setting and where it comes from."),
    "flags": LazyCommand(f"{HERE}.config:flags_app", "Show and set feature flags."),
    "off": LazyCommand(f"{HERE}.install:off", "Switch Reverie off for this project."),
    "on": LazyCommand(f"{HERE}.install:on", "Switch it on again."),
    "trust": LazyCommand(
        f"{HERE}.trust:trust", "Look at a project's local settings and trust them."
    ),
    "doctor": LazyCommand(
        f"{HERE}.stats:doctor", "Check this installation and fix what can be fixed."
    ),
    "memory": LazyCommand(
        f"{HERE}.memory:app", "List, show, edit, search, undo, forget and move memories."
    ),
    "recall": LazyCommand(
        f"{HERE}.recall:recall", "Find the memories that match a query, and show why."
    ),
    "ask": LazyCommand(f"{HERE}.recall:ask", "Answer a question from memories and past sessions."),
    "dream": LazyCommand(
        f"{HERE}.dream:app", "Tidy the memory on a branch, checked before it lands."
    ),
    "stats": LazyCommand(f"{HERE}.stats:stats", "Show how well it works and what it costs."),
    "team": LazyCommand(f"{HERE}.team:app", "Share memory with a team: sync, server, tokens."),
    "web": LazyCommand(f"{HERE}.servers:web", "Open the page: sessions, memories, dreams."),
    "fleet": LazyCommand(
        f"{HERE}.fleet:app", "Run background work over many projects, on one host or many."
    ),
    "mcp": LazyCommand(f"{HERE}.servers:mcp", "Serve a project's memory to MCP clients."),
    "hook": LazyCommand(f"{HERE}.install:hook", "Answer one hook event of Claude Code."),
    "install": LazyCommand(f"{HERE}.install:install", "Set up Claude Code, Codex or opencode."),
    "uninstall": LazyCommand(f"{HERE}.install:uninstall", "Take back what `install` wrote."),
    "proxy": LazyCommand(
        f"{HERE}.servers:proxy", "Give an agent in use memory and context by one URL."
    ),
    "simulate": LazyCommand(f"{HERE}.servers:simulate", "Serve a simulated model provider."),
    "help": LazyCommand(f"{HERE}.app:help_", "Show the help of a command."),
}
DEFAULT = "chat"
OWN_OPTIONS = ("-h", "--help", "--version", "--install-completion", "--show-completion")
CHAT_OPTIONS = (
    ("-p, --print TEXT", "Answer one prompt and exit."),
    ("-c, --continue", "Continue the newest session."),
    ("--resume ID", "Continue this session."),
    ("--model M", "The model to use."),
)
"""What the help of the program itself shows of the default command's options."""


GROUPS = ("memory", "sessions")
"""Where a command is looked for that somebody types without its group."""


class LazyGroup(click.Group):
    """The top group: a command is a name and a line of help until it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [name for name, target in COMMANDS.items() if target.is_there()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """What stands in the list of commands; `load` gives the real one."""
        del ctx
        target = COMMANDS.get(cmd_name)
        return click.Command(cmd_name, short_help=target.about) if target else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a command's name it is `chat` that is meant."""
        first = args[0] if args else ""
        own = first.partition("=")[0] in OWN_OPTIONS
        if not ctx.resilient_parsing and not own and (not first or first.startswith("-")):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, *rest = args
        if name in COMMANDS:
            return name, load(name), rest
        if ctx.resilient_parsing:
            return None, None, rest
        below = " or ".join(f"'{group} {name}'" for group in GROUPS if _holds(group, name))
        if below:
            raise click.UsageError(f"No such command '{name}'. Did you mean {below}?", ctx=ctx)
        raise click.NoSuchCommand(name, possibilities=self.list_commands(ctx), ctx=ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        with formatter.section("Options of chat (`reverie chat --help` has them all)"):
            formatter.write_dl(CHAT_OPTIONS)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run, and leave the process with an exit code."""
        given = cast("Sequence[str] | None", kwargs.get("args", args[0] if args else None))
        words = sys.argv[1:] if given is None else list(given)
        command, as_json = (words or [""])[0], "--json" in words
        try:
            ended = cast("object", super().main(*args, **{**kwargs, "standalone_mode": False}))
            code = ended if isinstance(ended, int) else 0
            sys.stdout.flush()
        except ReverieError as error:
            code = _tell(error, command, as_json)
        except click.ClickException as error:
            code = _report_misuse(error, as_json)
        except click.Abort as error:
            code = _left(error)
        except BrokenPipeError:
            code = _unread()
        except OSError as error:
            told = StoreError(f"The operating system reported an error: {error}")
            code = _tell(told, command, as_json)
        sys.exit(code)


def _holds(group: str, name: str) -> bool:
    found = load(group)
    return isinstance(found, click.Group) and name in found.commands


def load(name: str) -> click.Command:
    """The command of this name, its module imported now."""
    target = COMMANDS[name]
    try:
        return getattr(import_module(target.module), target.place.partition(":")[2])
    except ModuleNotFoundError as error:
        from reverie.providers.connection import install_command

        raise NotAvailable(
            f"`reverie {name}` cannot run: {error.name} is not installed",
            do=f"Install it: {install_command()}",
        ) from error


def _version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    del parameter
    if wanted:
        import reverie

        print(f"reverie {reverie.__version__}")
        context.exit()


def _completion(context: click.Context, parameter: click.Parameter, shell: str | None) -> None:
    if shell is not None:
        from reverie.apps.cli import install as completion

        work = (
            completion.install_completion
            if parameter.name == "install_completion"
            else completion.show
        )
        work(shell)
        context.exit()


def _shell_option(name: str, about: str) -> Any:
    return click.option(
        name,
        is_flag=False,
        flag_value="",
        metavar="[SHELL]",
        is_eager=True,
        expose_value=False,
        callback=_completion,
        help=about,
    )


def build() -> click.Group:
    """The program: every command by name, none of them imported."""

    @click.group("reverie", cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
    @click.option(
        "--version",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_version,
        help="Show the version.",
    )
    @_shell_option("--install-completion", "Install completion for bash, zsh or fish.")
    @_shell_option("--show-completion", "Show that completion, to copy it.")
    def top() -> None:
        """Memory and context for LLM agents.

        Without a command, `reverie chat` is run. Every command accepts `--json`.
        """
        _begin_telemetry()

    return top


def _begin_telemetry() -> None:
    from reverie.settings.sources import environment

    wanted = environment().get("REVERIE_TELEMETRY", "off")
    if wanted not in ("on", "texts"):
        return
    from reverie.providers.connection import extra

    with extra("otel", f"REVERIE_TELEMETRY is {wanted}, but nothing can be told"):
        from reverie.adapters.telemetry import from_environment
    try:
        from_environment(wanted)
    except NotAvailable as error:
        from reverie.apps.cli.output import note

        note(f"reverie: no telemetry: {error}")


def run(args: Sequence[str] | None = None) -> None:
    """Run a command line and exit; inside an agent program that we ask, nothing runs."""
    from reverie.settings.sources import environment

    if environment().get("REVERIE_INSIDE"):
        sys.exit(0)
    build().main(args=args, prog_name="reverie")


# --- how things end


def _tell(error: ReverieError, command: str, as_json: bool) -> int:
    from reverie.settings.sources import environment

    if environment().get("REVERIE_DEBUG"):
        import traceback

        traceback.print_exception(error)
    from reverie.apps.cli.output import HINTS, json_text
    from reverie.text.safety import clean

    if as_json:
        told = {
            "type": type(error).__name__,
            "what": error.what,
            "where": error.where,
            "do": error.do,
            "exit_code": error.exit_code,
        }
        print(json_text({"error": told}))
    if error.do:
        error.do = HINTS.get((type(error), command), error.do)
    print(f"reverie: {clean(str(error))}", file=sys.stderr)
    return error.exit_code


def _report_misuse(error: click.ClickException, as_json: bool) -> int:
    code = error.exit_code
    if as_json:
        text = error.format_message()
        told = {"type": "Usage", "what": text, "where": "", "do": "--help", "exit_code": code}
        print(json.dumps({"error": told}))
    error.show()
    return code


def _left(error: click.Abort) -> int:
    """Whoever was asked left by Ctrl-C or Ctrl-D, or interrupted the work itself."""
    if isinstance(error.__cause__, KeyboardInterrupt):
        return 130
    print("Cancelled: nothing was changed.", file=sys.stderr)
    return 1


def _unread() -> int:
    """Whoever read our output has gone: say nothing more, also not at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


# --- `reverie help COMMAND` is `reverie COMMAND --help`.


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND…]", help="The command. Default: all of them.")
def help_(words: tuple[str, ...]) -> None:
    """Show the help of a command."""
    run([*words, "--help"])


# --- The options that many commands take, and the order in which a group lists its commands.


HOST = "127.0.0.1"
_Function = TypeVar("_Function", bound=Callable[..., Any])


class CommandGroup(click.Group):
    """Commands in the order in which they were written down, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout."
)
folder_option = partial(
    click.option,
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    metavar="PATH",
    help="A folder in the project.",
)


def project_around(context: click.Context, parameter: click.Parameter, folder: Path) -> Project:
    """Return the project around the folder that was given."""
    from reverie.store.project import Project

    del context, parameter
    return Project.at(folder)


project_option = folder_option(callback=project_around)
model_option = click.option("--model", default="", metavar="M", help="The model to use.")
session_files = click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE…",
    help="Session files, folders of them, or session ids.",
)


def port_option(
    default: int, about: str = "0 picks a free port.", *, least: int = 0
) -> Callable[[_Function], _Function]:
    """Where a server listens."""
    return click.option(
        "--port",
        type=click.IntRange(least, 65535),
        metavar="N",
        default=default,
        show_default=True,
        help=about,
    )


def sessions_like(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """For the shell: the sessions whose ids begin like that."""
    from reverie.session.library import SessionLibrary
    from reverie.store.project import Project

    del parameter
    given = context.params.get("project") or Path()
    library = SessionLibrary.find(given if isinstance(given, Project) else Project.at(given))
    found = library.sessions() if library else []
    return [file.id for file in found if file.id.startswith(incomplete)]
