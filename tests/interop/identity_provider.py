"""
npm's `oidc-provider` as the customers' identity provider, and a customer who signs in there by its own HTTP flow.
"""

import json
import re
import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urljoin

import httpx2
from joserfc.jwk import ECKey, RSAKey

FOLDER = Path(__file__).parent
CLIENT_ID, CLIENT_SECRET = "shop-web", "only-for-the-tests"
ACR = ("urn:shop:one-factor", "urn:shop:two-factors")


class IdentityProvider:
    """
    A provider on a loopback port, with keys of its own; it runs from `start` to `stop`, as often as that is wanted.
    """

    def __init__(self, folder: Path, port: int, *, redirect_uri: str, logout_uri: str | None = None) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self._file = folder / "provider.json"
        self._port = port
        self._redirect_uri = redirect_uri
        self._logout = {} if logout_uri is None else {"backchannel_logout_uri": logout_uri}
        self._process: subprocess.Popen[str] | None = None
        self._browsers: dict[str, httpx2.Client] = {}

    def start(self) -> None:
        """
        Run it with new keys; whatever was signed by others is known to nobody any more.
        """
        keys = [RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True)]
        keys.append(ECKey.generate_key("P-256", {"use": "sig", "alg": "ES256"}, auto_kid=True))
        settings = {
            "port": self._port,
            "jwks": {"keys": [key.as_dict(private=True) for key in keys]},
            "acr": ACR,
            "clients": [self._web_client(), _machine()],
        }
        self._file.write_text(json.dumps(settings))
        self._process = subprocess.Popen(
            ["node", "provider.mjs", self._file],
            cwd=FOLDER,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def stop(self) -> None:
        """
        End it, whether it runs or not.
        """
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def sign_in(self, name: str, *, factors: str = "pwd", demands: Mapping[str, str] = {}) -> tuple[str, str]:
        """
        Sign *name* in by the provider's own pages; return the ID token and the nonce that was asked with.
        """
        browser, nonce = self._browser(name), secrets.token_urlsafe(16)
        asked = {"client_id": CLIENT_ID, "redirect_uri": self._redirect_uri, "response_type": "code", "scope": "openid"}
        page = self._follow(
            browser.get(f"{self.issuer}/auth", params={**asked, "nonce": nonce, "prompt": "login", **demands})
        )
        sent = browser.post(page, data={"name": name, "factors": factors})
        back = self._follow(browser.get(self._follow(sent)))
        code = re.search(r"[?&]code=([^&]+)", back)
        assert code is not None, back
        return self._exchange(browser, code[1]), nonce

    def sign_out(self, name: str, id_token: str) -> httpx2.Response:
        """
        End the session of *name* at the provider, which tells those who have to know.
        """
        browser = self._browser(name)
        page = browser.get(f"{self.issuer}/session/end", params={"id_token_hint": id_token, "client_id": CLIENT_ID})
        hidden = re.search(r'name="xsrf" value="([^"]+)"', page.text)
        assert hidden is not None, page.text
        return browser.post(f"{self.issuer}/session/end/confirm", data={"xsrf": hidden[1], "logout": "yes"})

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for browser in self._browsers.values():
            browser.close()

    def _browser(self, name: str) -> httpx2.Client:
        return self._browsers.setdefault(name, httpx2.Client(trust_env=False, timeout=10))

    def _follow(self, response: httpx2.Response) -> str:
        assert response.status_code == 303, response.text
        return urljoin(self.issuer, response.headers["location"])

    def _exchange(self, browser: httpx2.Client, code: str) -> str:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self._redirect_uri}
        answer = browser.post(f"{self.issuer}/token", data=form, auth=(CLIENT_ID, CLIENT_SECRET))
        token: str = answer.json()["id_token"]
        return token

    def _web_client(self) -> dict[str, Any]:
        return {
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "redirect_uris": [self._redirect_uri],
            "require_auth_time": True,
            **self._logout,
        }


def _machine() -> dict[str, Any]:
    return {
        "client_id": "machine",
        "client_secret": CLIENT_SECRET,
        "grant_types": ["client_credentials"],
        "response_types": [],
        "redirect_uris": [],
    }
