"""The desk behind nginx as the how-to page sets it up: log-in, forms, whose address counts, nobody past the proxy."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet.desk.accounts import add_account
from discreet.desk.attempts import TRIES
from discreet.desk.command import serve as command
from discreet.desk.desk import Desk
from discreet.desk.proxies import BehindTLS, networks
from discreet.desk.store import DeskStore
from discreet.words.errors import PlanError
from faults_of import about

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "desk.md"
NAME = "desk.agency.example"
PATIENCE = 60  # seconds that an answer may take on a machine with other work
WHOLE = """
{user} daemon off; pid {folder}/pid; error_log {folder}/errors; worker_processes 1;
events {{ worker_connections 64; }}
http {{
access_log off;
client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{server}
}}
"""


@dataclass
class Proxied:
    """A desk behind nginx."""

    port: int
    direct: int
    trusted: ssl.SSLContext
    password: str

    @property
    def origin(self) -> str:
        return f"https://{NAME}:{self.port}"

    def browser(self, address: str = "127.0.0.2") -> httpx.Client:
        """Whoever asks from `address`, with the proxy's certificate checked."""
        transport = httpx.HTTPTransport(verify=self.trusted, local_address=address)
        headers = {"host": f"{NAME}:{self.port}", "origin": self.origin}
        base = f"https://127.0.0.1:{self.port}"
        return httpx.Client(transport=transport, base_url=base, headers=headers, timeout=PATIENCE)

    def asked(self, client: httpx.Client, method: str, path: str, **more: Any) -> httpx.Response:
        return client.request(method, path, extensions={"sni_hostname": NAME}, **more)

    def log_in(self, client: httpx.Client, password: str = "", **more: Any) -> httpx.Response:
        form = {"name": "anna", "password": password or self.password, "next": "/plans"}
        return self.asked(client, "POST", "/login", data=form, **more)


@pytest.fixture(scope="module")
def proxied(
    copied: Any, serve: Any, password: str, free_port: Any, wait_until: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxied]:
    if NGINX is None:
        pytest.skip("no nginx on this machine")
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on this machine, which makes the certificate")
    folder, desk = tmp_path_factory.mktemp("nginx"), copied("accounts = true")
    store = DeskStore(Desk.open(desk).database)
    add_account(store, "anna", "analyst", password, by="(test)")
    store.close()
    make = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={NAME}"
    make += f" -addext subjectAltName=DNS:{NAME} -keyout {folder}/desk.key -out {folder}/desk.pem"
    subprocess.run(make.split(), check=True, capture_output=True)
    port, direct = free_port(), free_port()
    page = re.findall(r"^```nginx\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    server = page[0].replace("listen 443", f"listen 127.0.0.1:{port}").replace("/etc/ssl/", f"{folder}/")
    assert ":8765" in server and len(page) == 1
    settings = folder / "nginx.conf"
    settings.write_text(
        WHOLE.format(
            folder=folder, user="user root;" if os.geteuid() == 0 else "", server=server.replace(":8765", f":{direct}")
        )
    )
    serve(desk, direct, options=["--behind-tls", "--name", NAME, "--proxy", "127.0.0.1"])
    nginx = subprocess.Popen([NGINX, "-c", str(settings), "-e", str(folder / "errors")], stderr=subprocess.DEVNULL)
    trusted = ssl.create_default_context(cafile=str(folder / "desk.pem"))
    found = Proxied(port, direct, trusted, password)

    def answers() -> bool:
        assert nginx.poll() is None, (folder / "errors").read_text()
        try:
            with found.browser() as client:
                return found.asked(client, "GET", "/login").status_code == 200
        except httpx.HTTPError:
            return False

    try:
        wait_until(answers)
        yield found
    finally:
        nginx.terminate()
        nginx.wait(10)


def test_a_person_works_through_the_proxy(proxied: Proxied) -> None:
    with proxied.browser() as client:
        answer = proxied.log_in(client)
        assert answer.status_code == 303 and answer.headers["location"] == "/plans", answer.text
        cookies = answer.headers.get_list("set-cookie")
        assert len(cookies) == 2 and all("Secure" in each and "HttpOnly" in each for each in cookies)
        assert "strict-transport-security" in answer.headers
        page = proxied.asked(client, "GET", "/plans/new?source=jobs")
        form = {"csrf": re.findall('name="csrf" content="(.*?)"', page.text)[0], "title": "By TLS", "do": "save"}
        saved = proxied.asked(client, "POST", "/plans/jobs/new", data=form)
        assert saved.status_code == 303 and saved.headers["location"].startswith("/plans/by-tls-")
        for origin in (f"http://{NAME}:{proxied.port}", f"https://{NAME}", "https://evil.example", "null"):
            refused = proxied.asked(client, "POST", "/plans/jobs/new", data=form, headers={"origin": origin})
            assert refused.status_code == 403, origin
        upload = {"data": ("data.csv", b"y,x,g\n" * 400_000)}
        sent = proxied.asked(client, "POST", "/models", data=form | {"formula": "y ~ ("}, files=upload)
        assert sent.status_code == 409, sent.text  # the file came through; the formula is none
        assert proxied.asked(client, "GET", "/login", headers={"host": "evil.example"}).status_code == 421


def test_one_client_does_not_lock_out_others(proxied: Proxied) -> None:
    """They come from one proxy, which tells them apart; what a client says itself is not believed."""
    with proxied.browser("127.0.0.3") as guesser:
        said = [{"x-forwarded-for": f"198.51.100.{i}"} for i in range(TRIES + 1)]
        found = [proxied.log_in(guesser, "wrong", headers=each).status_code for each in said]
    assert found == [401] * TRIES + [429]
    with proxied.browser("127.0.0.4") as other:
        assert proxied.log_in(other).status_code == 303


def test_nobody_goes_past_the_proxy(proxied: Proxied) -> None:
    direct = f"http://127.0.0.1:{proxied.direct}/login"
    headers = {"host": f"{NAME}:{proxied.direct}"}
    assert httpx.get(direct, headers=headers, trust_env=False, timeout=PATIENCE).status_code == 403  # not by TLS
    with httpx.Client(transport=httpx.HTTPTransport(local_address="127.0.0.5"), timeout=PATIENCE) as other:
        assert other.get(direct, headers=headers | {"x-forwarded-proto": "https"}).status_code == 403


PROXIES = networks(["10.0.0.7", "10.0.1.0/28", "fd00::7"])


@pytest.mark.parametrize(
    ("peer", "told", "client"),
    [
        ("10.0.0.7", ["192.0.2.1"], "192.0.2.1"),
        ("10.0.0.7", ["6.6.6.6, 192.0.2.1"], "192.0.2.1"),
        ("10.0.0.7", ["6.6.6.6", "192.0.2.1"], "192.0.2.1"),
        ("10.0.0.7", ["6.6.6.6, 192.0.2.1, 10.0.1.3"], "192.0.2.1"),
        ("::ffff:10.0.0.7", ["192.0.2.1"], "192.0.2.1"),
        ("fd00::7", ["2001:db8::1"], "2001:db8::1"),
        ("10.0.0.7", ["192.0.2.1, unknown"], "10.0.0.7"),
        ("10.0.0.7", ["x" * 5_000], "10.0.0.7"),
        ("10.0.0.7", [], "10.0.0.7"),
        ("10.0.0.8", ["192.0.2.1"], None),
        ("", ["192.0.2.1"], None),
    ],
)
def test_who_a_client_is(peer: str, told: list[str], client: str | None) -> None:
    assert scope_behind(peer, told, ["https"]).get("client", (None,))[0] == client


@pytest.mark.parametrize("scheme", [[], ["http"], ["https", "https"], ["https, http"], ["wss"]])
def test_only_what_came_by_tls(scheme: list[str]) -> None:
    assert scope_behind("10.0.0.7", [], scheme) == {}
    assert scope_behind("10.0.0.7", [], ["HTTPS"])["scheme"] == "https"


def scope_behind(peer: str, told: list[str], scheme: list[str]) -> dict[str, Any]:
    """What an application sees; nothing where it is not asked."""
    seen: dict[str, Any] = {}

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.update(scope)

    async def nothing(*_: Any) -> Any:
        return {"type": "http.request"}

    headers = [(b"x-forwarded-for", each.encode()) for each in told]
    headers += [(b"X-Forwarded-Proto", each.encode()) for each in scheme]
    scope = {"type": "http", "scheme": "http", "client": (peer, 5) if peer else None, "headers": headers}
    asyncio.run(BehindTLS(app, PROXIES)(scope, nothing, nothing))
    return seen


@pytest.mark.parametrize(
    ("options", "subject", "fact"),
    [
        ({"proxy": ["10.0.0.7"]}, "proxy", "--behind-tls"),
        ({"behind_tls": True}, "behind_tls", "--name"),
        ({"behind_tls": True, "name": [NAME]}, "behind_tls", "accounts"),
        ({"behind_tls": True, "name": [NAME], "certificate": Path("x.pem")}, "behind_tls", "--certificate"),
    ],
)
def test_what_does_not_go_together(
    copied: Callable[..., Path], options: dict[str, Any], subject: str, fact: str
) -> None:
    with pytest.raises(PlanError, check=about(subject, naming=(fact,))):
        command(copied(), browser=False, **options)


@pytest.mark.parametrize("proxy", ["nginx", "10.0.0.7/24", "0.0.0.0/0", "::/0", ""])
def test_odd_proxies_are_refused(copied: Callable[..., Path], proxy: str) -> None:
    with pytest.raises(PlanError, check=about("proxy")):
        command(copied("accounts = true"), browser=False, behind_tls=True, name=[NAME], proxy=[proxy])
