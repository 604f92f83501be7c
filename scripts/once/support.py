"""What each of the servers needs."""

import contextlib
import os
import re
import secrets
import socket
import sys
import time
import urllib.request

from ports import free_port

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = f"{ROOT}/Tests/OutputsTests/Fixtures"


def wait(what, seconds, condition):
    """Waits until a condition holds; ends the run when it does not within the time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"gave up after {seconds} s waiting for {what()}")
        time.sleep(0.05)


def is_listening(port):
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def installed(path):
    """A file of the servers that scripts/bootstrap installs from PyPI."""
    found = f"{ROOT}/build/python/{path}"
    if not os.path.exists(found):
        sys.exit(f"no {found}: run scripts/bootstrap test")
    return found


def ask(port, path, body=None, headers={}, method=None):
    """What an HTTP server of ours answers; never through a proxy of the environment."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers, method=method)
    with opener.open(request, timeout=300) as answer:
        return answer.read()


def printed(title, language, number=0):
    """A block of a language in a section of docs/destinations.md: the first, unless a number from 0 says which."""
    with open(f"{ROOT}/docs/destinations.md") as file:
        section = file.read().split(f"\n## {title}\n")[1].split("\n## ")[0]
    return section.split(f"```{language}\n")[1 + number].split("```")[0]


def as_printed(title, base, address):
    """The configuration of a section: the documented one, led to a server on this machine, with secrets in files of the run."""
    text = re.sub(r"https://[^/\"]+", address, printed(title, "toml"))

    def place(found):
        path = f"{base}/{os.path.basename(found[2])}"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(16))
        return f'{found[1]}{path}"'

    return re.sub(r'(\w+_file = "|\w+ = "file:)([^"]+)"', place, text)
