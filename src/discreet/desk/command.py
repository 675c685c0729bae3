"""`discreet serve`: the release desk in a browser."""

from __future__ import annotations

import getpass
import ipaddress
import secrets
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from discreet.words.errors import DataError, PlanError
from discreet.words.extras import needs

if TYPE_CHECKING:
    from discreet.desk.desk import Desk


def serve(
    folder: Annotated[Path | None, typer.Argument(help="Folder of the desk; it holds desk.toml.")] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Make a desk on simulated data, in FOLDER or a new one.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen on. Other than loopback needs accounts.")] = "127.0.0.1",
    name: Annotated[
        list[str] | None, typer.Option(help="A name under which browsers ask for the desk; may be repeated.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the desk in a browser.")] = True,
    add_account: Annotated[
        str | None, typer.Option(metavar="NAME", help="Add a person or change one, then end; asks for the password.")
    ] = None,
    disable_account: Annotated[
        str | None, typer.Option(metavar="NAME", help="End a person's access at once, then end.")
    ] = None,
    enable_account: Annotated[
        str | None, typer.Option(metavar="NAME", help="Let a disabled person in again, then end.")
    ] = None,
    remove_account: Annotated[
        str | None, typer.Option(metavar="NAME", help="End a person's access at once and for good, then end.")
    ] = None,
    role: Annotated[str, typer.Option(help="With --add-account: analyst, reviewer or administrator.")] = "analyst",
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate, in PEM.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key, in PEM.")] = None,
    behind_tls: Annotated[
        bool, typer.Option("--behind-tls", help="A proxy speaks TLS for the desk, and the desk answers only to it.")
    ] = False,
    proxy: Annotated[
        list[str] | None,
        typer.Option(help="With --behind-tls: an address of the proxy, loopback if none is given; may be repeated."),
    ] = None,
) -> None:
    """Open the release desk: prepare plans, see their error before paying, have them approved, run them, publish.

    A desk is a folder with desk.toml (docs/how-to/desk.md). Without accounts it answers on this machine only. It
    prints a link that works once.

    Example: `discreet serve --demo`
    """
    with needs("web", "The release desk"):
        import uvicorn

        from discreet.desk.app import LOOPBACK, create
        from discreet.desk.connections import FromProxies, Timed
        from discreet.desk.desk import Desk
        from discreet.desk.hosts import own_name

    desk = _example(folder) if demo else Desk.open(folder or Path())
    if add_account is not None:
        _add(desk, add_account, role)
        return
    for name_of, word in ((disable_account, "disable"), (enable_account, "enable"), (remove_account, "remove")):
        if name_of is not None:
            _change(desk, name_of, word)
            return
    host = host.strip().removeprefix("[").removesuffix("]")
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
    proxies = _proxies(desk, behind_tls=behind_tls, proxy=proxy, name=name, certificate=certificate)
    entrance = _entrance(desk, host)
    names = [own_name(each) for each in (*(name or []), *([] if host in everywhere else [host]))]
    app = create(desk, entrance=entrance, hosts=[*LOOPBACK, *names], proxies=proxies)
    config = uvicorn.Config(
        app,
        http=FromProxies if proxies else Timed,
        host=host,
        port=port,
        log_level="critical",  # it would write tracebacks; the desk logs only the kind of a fault
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=3,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    listening = config.bind_socket()
    scheme = "https" if certificate else "http"
    shown = names[0] if names else everywhere[host]
    address = f"https://{shown}/" if proxies else f"{scheme}://{shown}:{listening.getsockname()[1]}/"
    link = address if entrance is None else f"{address}enter?token={entrance}"
    typer.echo(f"The desk {desk.settings.title!r} in {desk.folder} is open. Ctrl-C closes it.")
    typer.echo(f"Open {link}" + ("" if entrance is None else "   (works once)"))
    if proxies:
        at = "{}:{}".format(*listening.getsockname()[:2])
        typer.echo(f"The proxy finds the desk at {at}; others are not answered.")
    sys.stdout.flush()
    if browser:
        webbrowser.open(link)
    uvicorn.Server(config).run(sockets=[listening])


def _example(folder: Path | None) -> Desk:
    from discreet.desk import example

    place = folder or Path(tempfile.mkdtemp(prefix="discreet-desk-"))
    with Console(stderr=True).status("simulating data for the desk, and a first release"):
        desk = example.make(place)
        if not desk.settings.accounts:
            example.furnish(desk)
        return desk


def _entrance(desk: Desk, host: str) -> str | None:
    """The token of the link for a desk without accounts, or a refusal to show such a desk to others."""
    from discreet.desk.accounts import has_accounts
    from discreet.desk.store import DeskStore

    if not desk.settings.accounts:
        if host != "localhost" and not _is_loopback(host):
            raise PlanError(
                f"--host {host} was asked for a desk without accounts.",
                "Without them it answers to this machine only.",
                "Set accounts = true in desk.toml and add people with `discreet serve --add-account NAME --role ROLE`.",
                about="host",
            )
        return secrets.token_urlsafe(24)
    store = DeskStore(desk.database)
    try:
        if not has_accounts(store):
            raise PlanError(
                "The desk has accounts = true and nobody has one.",
                "Somebody must be able to log in.",
                "Add a person with `discreet serve --add-account NAME --role administrator`.",
                about="accounts",
            )
    finally:
        store.close()
    return None


def _proxies(
    desk: Desk, *, behind_tls: bool, proxy: list[str] | None, name: list[str] | None, certificate: Path | None
) -> list[str]:
    """The addresses that are believed about their clients; none where the desk is not behind a proxy."""
    from discreet.desk.proxies import LOOPBACK, networks

    if not behind_tls:
        if proxy:
            raise PlanError(
                f"--proxy {proxy[0]} was given without --behind-tls.",
                "The desk trusts a proxy only if it speaks TLS for the desk.",
                "Give both, or neither.",
                about="proxy",
            )
        return []
    if certificate is not None:
        raise PlanError(
            "--behind-tls was given with --certificate.",
            "TLS is spoken by the proxy or by the desk.",
            "Leave one out.",
            about="behind_tls",
        )
    if not name:
        raise PlanError(
            "--behind-tls was given without --name.",
            "The desk answers under the name that browsers use for the proxy.",
            "Give it, for example --name desk.agency.example.",
            about="behind_tls",
        )
    if not desk.settings.accounts:
        raise PlanError(
            "--behind-tls was asked for a desk without accounts.",
            "Without them it answers to this machine only.",
            "Set accounts = true in desk.toml and add people with `discreet serve --add-account NAME --role ROLE`.",
            about="behind_tls",
        )
    found = proxy or list(LOOPBACK)
    networks(found)
    return found


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _add(desk: Desk, name: str, role: str) -> None:
    from discreet.desk.accounts import add_account, local_name
    from discreet.desk.store import DeskStore

    if sys.stdin.isatty():
        password = getpass.getpass(f"Password of {name}: ")
        if getpass.getpass("The same again: ") != password:
            raise DataError(
                "The two passwords differ.", "They must be the same.", "Run the command again.", about="password"
            )
    else:
        password = sys.stdin.readline().rstrip("\n")
    store = DeskStore(desk.database)
    try:
        add_account(store, name, role, password, by=local_name())
    finally:
        store.close()
    typer.echo(f"{name} is {role} of {desk.settings.title!r}.")
    if not desk.settings.accounts:
        typer.echo("The desk has no accounts yet: set accounts = true in desk.toml to use them.")


SAID = {
    "disable": "{} has no access to {!r} any longer. --enable-account lets the same person in again.",
    "enable": "{} has access to {!r} again, with the same role and password.",
    "remove": "{} has no access to {!r} any longer. The name is not given again.",
}


def _change(desk: Desk, name: str, word: str) -> None:
    from discreet.desk import accounts
    from discreet.desk.store import DeskStore

    change = {
        "disable": accounts.disable_account,
        "enable": accounts.enable_account,
        "remove": accounts.remove_account,
    }
    store = DeskStore(desk.database)
    try:
        change[word](store, name, by=accounts.local_name())
    finally:
        store.close()
    typer.echo(SAID[word].format(name, desk.settings.title))
