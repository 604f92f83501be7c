#!/usr/bin/env python3
"""An S3 server for tests: moto, behind a gate that recomputes each signature with botocore.

Usage: s3_server.py FILE. Writes its port into FILE, and serves until it is killed or its parent ends. It has the bucket `events` and, at
/latest/…, an instance metadata service; POST / is the token service (moto's), whose credentials are good afterwards, and /es/… takes
anything that is signed for the service es. Requests to /_test/… steer it:

  PUT  /_test/faults      a JSON list; each PUT of an object takes the next: null, "lose-answer", "cut", or
                          {"status": 503, "code": "SlowDown", "headers": {}}; "pair": true answers once two of them are here
  PUT  /_test/read-faults the same for each GET of an object; "ignore-range": all of it is sent, whatever part is asked for
  PUT  /_test/metadata    what the metadata service, and the container's service at /container, answer: {"role", "document", "status"}
  GET  /_test/log         each request to the store: method, path, status, headers
  GET  /_test/objects     {key: {"body": Base64, "headers": {}}}
"""
import base64
import hashlib
import io
import json
import logging
import os
import re
import socket
import sys
import threading
import urllib.parse

os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")
logging.getLogger("werkzeug").setLevel(logging.ERROR)
sys.dont_write_bytecode = True

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from with_parent import end_with_parent

KEYS = {"AKIDEXAMPLE": "secret/with+signs=", "ASIAROLE1": "role-secret-1", "ASIAROLE2": "role-secret-2"}
REGION = "eu-central-1"


class Gate:
    def __init__(self):
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.faults, self.read_faults, self.log, self.metadata = [], [], [], {}
        self.lock = threading.Lock()
        self.pair = threading.Barrier(2, timeout=20)

    def __call__(self, environ, start_response):
        path = environ.get("REQUEST_URI", environ["PATH_INFO"])
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if path.startswith("/_test/"):
            return self.steer(environ, path[len("/_test/"):], body, start_response)
        if path.startswith("/latest/"):
            return self.ask_metadata(environ, path, start_response)
        if path == "/container":
            return self.ask_container(environ, path, start_response)
        if path == "/" and environ["REQUEST_METHOD"] == "POST":
            return self.ask_token_service(environ, path, body, start_response)
        if path.startswith("/es/"):
            code = self.signature_error(environ, path, body, "es")
            return self.answer(environ, path, 403 if code else 200, code, start_response)
        with self.lock:
            fault = self.faults.pop(0) if self.faults and environ["REQUEST_METHOD"] == "PUT" else None
            if self.read_faults and environ["REQUEST_METHOD"] == "GET":
                fault = self.read_faults.pop(0)
        if isinstance(fault, dict):
            if fault.get("pair"):
                self.pair.wait()
            return self.answer(environ, path, fault["status"], fault.get("code"), start_response, fault.get("headers", {}))
        if fault == "cut":
            return self.hang_up(environ, path)
        code = self.signature_error(environ, path, body)
        if code:
            return self.answer(environ, path, 403, code, start_response)
        if fault == "ignore-range":
            environ.pop("HTTP_RANGE", None)
        environ["wsgi.input"] = io.BytesIO(body)
        kept = {}
        result = b"".join(self.moto(environ, lambda status, headers, *_: kept.update(status=status, headers=headers)))
        if fault == "lose-answer":
            return self.hang_up(environ, path)
        self.note(environ, path, int(kept["status"].split()[0]))
        start_response(kept["status"], kept["headers"])
        return [result]

    def ask_container(self, environ, path, start_response):
        with self.lock:
            status = 200 if environ.get("HTTP_AUTHORIZATION") == "the-container's-token" else 401
            text = json.dumps(self.metadata.get("document"))
        self.note(environ, path, status)
        start_response(f"{status} X", [("Content-Type", "application/json")])
        return [text.encode()]

    def ask_token_service(self, environ, path, body, start_response):
        form = urllib.parse.parse_qs(body.decode())
        if form["Action"] == ["AssumeRole"]:
            code = self.signature_error(environ, path, body, "sts")
            if not code and form.get("ExternalId") != ["the-external-id"]:
                code = "AccessDenied"
        else:
            code = None if form["WebIdentityToken"] == ["a.web.token"] else "InvalidIdentityToken"
        if code:
            return self.answer(environ, path, 403, code, start_response)
        environ["wsgi.input"] = io.BytesIO(body)
        kept = {}
        text = b"".join(self.moto(environ, lambda status, headers, *_: kept.update(status=status, headers=headers)))
        found = {name: re.search(f"<{name}>([^<]+)<", text.decode()) for name in ("AccessKeyId", "SecretAccessKey")}
        KEYS[found["AccessKeyId"].group(1)] = found["SecretAccessKey"].group(1)
        self.note(environ, path, int(kept["status"].split()[0]))
        start_response(kept["status"], kept["headers"])
        return [text]

    def signature_error(self, environ, path, body, wanted="s3"):
        """What is wrong with a request's signature, as S3 calls it; None for nothing."""
        header = environ.get("HTTP_AUTHORIZATION", "")
        if not header.startswith("AWS4-HMAC-SHA256 "):
            return "AccessDenied"
        parts = dict(part.strip().split("=", 1) for part in header[len("AWS4-HMAC-SHA256 "):].split(","))
        key, date, region, service, _ = parts["Credential"].split("/")
        if key not in KEYS:
            return "InvalidAccessKeyId"
        if wanted != "sts" and environ.get("HTTP_X_AMZ_CONTENT_SHA256") != hashlib.sha256(body).hexdigest():
            return "XAmzContentSHA256Mismatch"
        checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
        # As a bucket with Object Lock wants it. Source: Amazon S3, "PutObject", Content-MD5.
        if wanted == "s3" and environ["REQUEST_METHOD"] == "PUT" and environ.get("HTTP_X_AMZ_CHECKSUM_SHA256") != checksum:
            return "InvalidRequest"
        if region != REGION or service != wanted or not environ["HTTP_X_AMZ_DATE"].startswith(date):
            return "AuthorizationHeaderMalformed"
        signed = parts["SignedHeaders"].split(";")
        sent = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
        sent |= {name.lower().replace("_", "-"): environ[name] for name in ("CONTENT_TYPE",) if name in environ}
        if any(name not in sent for name in signed):
            return "SignatureDoesNotMatch"
        missing = [name for name in sent if name.startswith("x-amz-") and name not in signed]
        if missing or "host" not in signed:
            return "AccessDenied"
        request = AWSRequest(method=environ["REQUEST_METHOD"], url=f"http://{sent['host']}{path}", data=body,
                             headers={name: sent[name] for name in signed})
        request.context["timestamp"] = environ["HTTP_X_AMZ_DATE"]
        request.context["payload_signing_enabled"] = True
        signer = (S3SigV4Auth if service == "s3" else SigV4Auth)(Credentials(key, KEYS[key]), service, region)
        signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
        return None if signature == parts["Signature"] else "SignatureDoesNotMatch"

    def ask_metadata(self, environ, path, start_response):
        with self.lock:
            metadata = dict(self.metadata)
        status, text = metadata.get("status", 200), ""
        if path == "/latest/api/token" and environ["REQUEST_METHOD"] == "PUT":
            text = "the-session-token" if "HTTP_X_AWS_EC2_METADATA_TOKEN_TTL_SECONDS" in environ else ""
        elif environ.get("HTTP_X_AWS_EC2_METADATA_TOKEN") != "the-session-token":
            status = 401
        elif path == "/latest/meta-data/iam/security-credentials/":
            text = metadata.get("role", "")
        else:
            text = json.dumps(metadata.get("document"))
        self.note(environ, path, status)
        start_response(f"{status} X", [("Content-Type", "text/plain")])
        return [text.encode()]

    def answer(self, environ, path, status, code, start_response, headers=None):
        self.note(environ, path, status)
        start_response(f"{status} X", [("Content-Type", "application/xml"), *(headers or {}).items()])
        text = f"<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>as the test wants it</Message></Error>"
        return [text.encode() if code else b""]

    def hang_up(self, environ, path):
        self.note(environ, path, 0)
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        raise ConnectionAbortedError

    def note(self, environ, path, status):
        headers = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
        with self.lock:
            self.log.append({"method": environ["REQUEST_METHOD"], "path": path, "status": status, "headers": headers})

    def steer(self, environ, what, body, start_response):
        with self.lock:
            if what == "faults":
                self.faults = json.loads(body)
            elif what == "read-faults":
                self.read_faults = json.loads(body)
            elif what == "metadata":
                self.metadata = json.loads(body)
        answer = {"log": lambda: self.log, "objects": self.objects}.get(what, dict)()
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(answer).encode()]

    @staticmethod
    def objects():
        from moto.s3.models import s3_backends
        found = {}
        for backends in s3_backends.values():
            for backend in backends.values():
                for bucket in backend.buckets.values():
                    for name, key in bucket.keys.items():
                        found[name] = {"body": base64.b64encode(key.value).decode(), "headers": {k: str(v) for k, v in key.metadata.items()},
                                       "storage_class": key.storage_class, "encryption": key.encryption}
        return found


def main():
    gate = Gate()
    server = make_server("127.0.0.1", 0, gate, threaded=True)
    from moto.s3.models import s3_backends
    s3_backends["123456789012"]["aws"].create_bucket("events", REGION)
    end_with_parent()
    with open(sys.argv[1], "w") as file:
        file.write(f"{server.server_port}\n")
    server.serve_forever()


if __name__ == "__main__":
    main()
