"""The container that rules the agent's events: its publisher, its server, and what it promises of each event."""
import hashlib
import json
import os
import subprocess
import threading
import time

ID = "GTM-STORM"
# Drafts have versions of their own, so that an event tells who ruled it.
DRAFTS = 1_000_000
# What can be published; only the first three are good.
GOOD = ["well", "slow", "unchanged"]
BAD = ["withdrawn", "gone", "garbled", "unsigned", "by another key", "older", "another's", "a draft", "huge", "hung"]


class Publisher:
    """Publishes versions, good ones and bad ones. An event carries the number of the version that ruled it."""

    def __init__(self, binary, directory, environment):
        self.binary, self.directory, self.environment = binary, directory, environment
        self.version, self.drafts = 0, 0
        # Of each good version, how it hides the secret: by taking it out, or by a text.
        self.good, self.lock = {}, threading.Lock()
        self.status, self.content, self.wait, self.older = 200, b"", 0.0, None
        self.newest = None
        self.keys = {name: self.make_key(name) for name in ("ours", "another")}

    def make_key(self, name):
        return self.run("keygen", f"{self.directory}/{name}.pem").strip()

    def run(self, *words):
        done = subprocess.run([self.binary, "container", *words], stdout=subprocess.PIPE, env=os.environ | self.environment,
                              check=True, timeout=120)
        return done.stdout.decode()

    def document(self, version, identifier=ID):
        text = None if version % 2 else f"hidden by {version}"
        redact = {"name": "hide the secret", "type": "redact", "paths": ["secret", "properties.secret"], "rules": ["ours"]}
        return {
            "id": identifier, "version": version,
            "values": {"dispatch.interval": f"{1 + version % 3}s"},
            "rules": {"ours": {"conditions": [{"macro": "event", "equals": "e"}]}},
            "tags": [
                redact | ({"with": text} if text else {}),
                {"name": "hash the user", "type": "hash", "paths": ["user"], "salt": f"salt of {version} ", "rules": ["ours"]},
                {"name": "say who rules", "type": "set", "path": "ruled", "value": version, "rules": ["ours"]},
            ]}, text

    def signed(self, document, *options, key="ours"):
        draft, output = f"{self.directory}/document.json", f"{self.directory}/document.signed"
        with open(draft, "w") as file:
            json.dump(document, file)
        self.run("sign", draft, "--key", f"{self.directory}/{key}.pem", "--output", output, *options)
        with open(output, "rb") as file:
            return file.read()

    def publish(self, how, wait=0.0):
        """Publishes what is good or bad; the version that is to rule then, or that must not."""
        self.status, self.wait = 200, 0.0
        if how == "unchanged":
            self.content = self.newest
            return self.version
        if how in ("withdrawn", "gone"):
            self.status = 404 if how == "withdrawn" else 410
            return self.version
        if how == "older":
            self.content = self.older or b""
            return self.version
        if how == "hung":
            self.wait = 20.0
            return self.version
        version = self.version + 1
        document, text = self.document(version, "GTM-OTHER" if how == "another's" else ID)
        content = self.signed(document, *(["--preview"] if how == "a draft" else []),
                              key="another" if how == "by another key" else "ours")
        self.version = version
        if how == "garbled":
            content = content[:-20] + bytes([content[-20] ^ 1]) + content[-19:]
        elif how == "unsigned":
            content = content.split(b"\n", 1)[1]
        elif how == "huge":
            content = b" " * (3 << 20)
        elif how in ("well", "slow"):
            with self.lock:
                self.good[version] = text
            self.older, self.newest = self.newest, content
            self.wait = wait
        self.content = content
        return version

    def published(self):
        """The version that agents should have: the last good one."""
        return max(version for version in self.good if version < DRAFTS)

    def draft(self):
        """A document for `container preview`; its version and its file."""
        self.drafts += 1
        version = DRAFTS + self.drafts
        document, text = self.document(version)
        path = f"{self.directory}/draft.json"
        with open(path, "w") as file:
            json.dump(document, file)
        with self.lock:
            self.good[version] = text
        return version, path

    def wrong_with(self, event):
        """What an event shows that no good version would have left so; None when all is right."""
        version = event.get("ruled")
        with self.lock:
            if version not in self.good:
                return f"was ruled by {version}, which was never published"
            text = self.good[version]
        if event.get("secret") != text:
            return f"has the secret {event.get('secret')!r}, and version {version} makes it {text!r}"
        user = f"salt of {version} user of {event['k']}"
        if event.get("user") != hashlib.sha256(user.encode()).hexdigest():
            return f"has another user than version {version} makes of it: {event.get('user')!r}"
        return None

    def answer(self, handler):
        """Serves the container, as a web server serves a file."""
        status, content, wait = self.status, self.content, self.wait
        time.sleep(wait)
        if wait > 10:
            return handler.hang_up()
        if status != 200:
            return handler.reply(status)
        tag = f'"{hashlib.sha256(content).hexdigest()}"'
        if handler.headers.get("If-None-Match") == tag:
            return handler.reply(304, {"ETag": tag})
        return handler.reply(200, {"ETag": tag}, content)
