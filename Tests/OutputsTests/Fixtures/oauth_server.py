#!/usr/bin/env python3
"""An OAuth 2 server for tests: oauthlib's client credentials grant, a JWT bearer grant, and a receiver that takes what carries a good token.

Usage: oauth_server.py FILE [KEY]. Writes its port into FILE, and serves until it is killed or its parent ends.
KEY: writes an account's private key there, as PEM, as KEY.json the way Google hands it out, and one of 1,024 bits as KEY.small.

  POST /token             the token endpoint: the client `agent` with the secret `a secret: with+signs`, the scope `events.write`;
                          or an assertion of the account `agent@test` (RFC 7523)
  POST /events            takes a request with a token that is still good
  PUT  /_test/revoke      no token that was given is good any more
  PUT  /_test/lifetime    a JSON number: how many seconds the next tokens are good for
  PUT  /_test/broken      a JSON number: the token endpoint answers so many requests with 503
  GET  /_test/log         each request: path, status
"""
import base64
import json
import logging
import os
import secrets
import sys
import threading
import time
import urllib.parse

logging.getLogger("werkzeug").setLevel(logging.ERROR)
sys.dont_write_bytecode = True
# The test's connections stay on this machine.
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"

from oauthlib.oauth2 import BackendApplicationServer, RequestValidator
from werkzeug.serving import make_server

from with_parent import end_with_parent


class Validator(RequestValidator):
    def __init__(self):
        self.tokens = {}

    def authenticate_client(self, request, *_args, **_kwargs):
        kind, _, proof = request.headers.get("Authorization", "").partition(" ")
        if kind != "Basic":
            return False
        user, _, secret = base64.b64decode(proof).decode().partition(":")
        if (urllib.parse.unquote(user), urllib.parse.unquote(secret)) != ("agent", "a secret: with+signs"):
            return False
        request.client = type("Client", (), {"client_id": "agent"})
        return True

    def validate_grant_type(self, _client_id, grant_type, *_args, **_kwargs):
        return grant_type == "client_credentials"

    def validate_scopes(self, _client_id, scopes, *_args, **_kwargs):
        return scopes == ["events.write"]

    def get_default_scopes(self, *_args, **_kwargs):
        return []

    def save_bearer_token(self, token, request, *_args, **_kwargs):
        self.tokens[token["access_token"]] = request.scopes

    def validate_bearer_token(self, token, _scopes, _request):
        return token in self.tokens


class Account:
    """A service account whose key this server knows: judges assertions by RFC 7523, section 3, with another library than the agent's."""

    def __init__(self, path):
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        def text_of(key):
            return key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()

        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.public = key.public_key()
        pem = text_of(key)
        file = {"type": "service_account", "private_key_id": "key 1", "private_key": pem, "client_email": "agent@test"}
        small = text_of(rsa.generate_private_key(public_exponent=65537, key_size=1024))
        for name, text in [(path, pem), (f"{path}.json", json.dumps(file)), (f"{path}.small", small)]:
            with open(os.open(name, os.O_CREAT | os.O_WRONLY, 0o600), "w") as out:
                out.write(text)

    def refuses(self, assertion, url):
        """Why an assertion is no good; None if it is."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        def decoded(text):
            return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)

        signed, _, signature = assertion.rpartition(".")
        header, claims = (json.loads(decoded(part)) for part in signed.split("."))
        try:
            self.public.verify(decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return "signature"
        if header != {"alg": "RS256", "typ": "JWT", "kid": "key 1"}:
            return f"header {header}"
        now = time.time()
        wanted = {"iss": "agent@test", "aud": url, "scope": "events.write", "sub": "somebody \"else\""}
        if {name: claims.get(name) for name in wanted} != wanted or set(claims) != set(wanted) | {"iat", "exp"}:
            return f"claims {claims}"
        if not (now - 30 <= claims["iat"] <= now + 30 and now < claims["exp"] <= claims["iat"] + 3600):
            return f"times {claims}"
        return None


class Server:
    account = None

    def __init__(self):
        self.validator = Validator()
        self.oauth = BackendApplicationServer(self.validator, token_expires_in=300)
        self.lock = threading.Lock()
        self.log, self.broken = [], 0

    def __call__(self, environ, start_response):
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        with self.lock:
            if path.startswith("/_test/"):
                status, answer = 200, self.steer(path, body)
            else:
                status, answer = self.answer(path, method, environ, body)
                self.log.append({"path": path, "status": status})
        start_response(f"{status} X", [("Content-Type", "application/json")])
        return [answer.encode()]

    def answer(self, path, method, environ, body):
        headers = {"Authorization": environ.get("HTTP_AUTHORIZATION", "")}
        url = f"http://{environ['HTTP_HOST']}{path}"
        if path == "/token":
            if self.broken > 0:
                self.broken -= 1
                return 503, "{}"
            form = urllib.parse.parse_qs(body.decode())
            if form.get("grant_type") == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]:
                return self.answer_assertion(form["assertion"][0], url)
            headers["Content-Type"] = environ.get("CONTENT_TYPE", "")
            _, answer, status = self.oauth.create_token_response(url, method, body.decode(), headers)
            return status, answer
        good, _ = self.oauth.verify_request(url, method, None, headers, ["events.write"])
        return (200 if good else 401), "{}"

    def answer_assertion(self, assertion, url):
        refusal = self.account.refuses(assertion, url)
        if refusal is not None:
            return 400, json.dumps({"error": "invalid_grant", "error_description": refusal})
        token = secrets.token_urlsafe()
        self.validator.tokens[token] = ["events.write"]
        return 200, json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 300})

    def steer(self, path, body):
        if path == "/_test/revoke":
            self.validator.tokens.clear()
        elif path == "/_test/lifetime":
            self.oauth = BackendApplicationServer(self.validator, token_expires_in=json.loads(body))
        elif path == "/_test/broken":
            self.broken = json.loads(body)
        return json.dumps(self.log)


def main():
    app = Server()
    if len(sys.argv) > 2:
        app.account = Account(sys.argv[2])
    server = make_server("127.0.0.1", 0, app, threaded=True)
    end_with_parent()
    with open(sys.argv[1], "w") as file:
        file.write(f"{server.server_port}\n")
    server.serve_forever()


if __name__ == "__main__":
    main()
