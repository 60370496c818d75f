"""
A partner's API in its smallest form: the standard library's HTTP server and the verifier, in a process of its own.

    python partner_api.py PORT ISSUER AUDIENCE
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from verifier import CustomerContextError, CustomerContextVerifier, MemoryReplayStore, bearer_token

MAX_BODY = 64 * 1024


class PartnerAPI(BaseHTTPRequestHandler):
    """
    Three endpoints: a read, a read that wants a strong and recent sign-in, and a write.
    """

    orders: CustomerContextVerifier
    billing: CustomerContextVerifier
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        token = self.token
        if self.path == "/orders":
            self.guarded(lambda: self.orders.verify(token(), scope="orders:read"))
        elif self.path == "/payment-methods":
            demand = {"scope": "orders:read", "level": "high", "max_auth_age_seconds": 300}
            self.guarded(lambda: self.orders.verify(token(), **demand))
        elif self.path == "/invoices":
            self.guarded(lambda: self.billing.verify(token()))
        else:
            self.answer(404, {"error": "not_found"})

    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("content-length", 0)), MAX_BODY))
        demand = {"action": "cancel_order", "arguments": body, "scope": "orders:write", "confirmation": "client"}
        key = self.headers.get("idempotency-key")
        self.guarded(lambda: self.orders.verify(self.token(), idempotency_key=key, **demand))

    def token(self) -> str:
        return bearer_token(self.headers.get_all("authorization"))

    def guarded(self, verify) -> None:
        try:
            context = verify()
        except CustomerContextError as error:
            refusal = {"reason": error.reason, "text": str(error)}
            self.answer(error.status, refusal, {"WWW-Authenticate": error.www_authenticate})
            return
        # A write is executed from the context: the arguments in it are the ones whose digest was confirmed.
        done = {"customer": context.sub, "agent": context.actor, "did": context.action, "with": context.arguments}
        self.answer(200, done)

    def answer(self, status: int, members: dict, headers: dict | None = None) -> None:
        body = json.dumps(members).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """
        Say nothing.
        """


def main() -> None:
    """
    Serve until told to stop.
    """
    port, issuer, audience = sys.argv[1:]
    store = MemoryReplayStore()
    PartnerAPI.orders = CustomerContextVerifier(
        issuer=issuer, audience=audience, replay_store=store, clock_tolerance_seconds=0
    )
    PartnerAPI.billing = CustomerContextVerifier(
        issuer=issuer, audience="https://billing.shop.example", replay_store=store, clock_tolerance_seconds=0
    )
    ThreadingHTTPServer(("127.0.0.1", int(port)), PartnerAPI).serve_forever()


if __name__ == "__main__":
    main()
