#!/usr/bin/env python3
"""A hostile user's hour: one user does all it can to the agent while twenty honest apps work beside it.

The agent runs as a user of its own in the packaged layout: an app's directory for each app, the drop box, one capability.
Hostile users own one app's directory and may write into the drop box. It passes if

* all events of the honest apps arrive, each once and within 10 seconds,
* nothing outside the spool is read: no secret arrives,
* the agent stays one process, its memory below 64 MB, and its stats port answers within 5 seconds, always.

It prints its seed, and what it did, a line a minute. The same seed chooses the same attacks in the same order. Needs root.

usage: python3 Benchmarks/hostile BINARY [--seconds 60] [--seed N] [--events 100000] [--only ATTACK,…] [--without ATTACK,…]
"""
import argparse
import datetime
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from attacks import ATTACKS, Ground
from bench import Receiver, free_port, memory, wait_for

AGENT, HONEST, HOSTILE = 61_000, 61_100, 61_900
APPS = 20
MOST_SECONDS, MOST_MEGABYTES = 10, 64
# Less than what the end of a run waits for.
MOST_WAIT = 20
MARKER = "SECRET-OF-SOMEBODY-ELSE"

CONFIGURATION = """
[agent]
state_directory = "{work}/state"
runtime_directory = "{work}/run"
[spool]
directory = "{work}/spool"
after_read = "delete"
[stats]
listen = "127.0.0.1:{port}"
[control]
socket = "{work}/run/control.sock"
[dispatch]
interval = "2s"
# As docs/security.md advises where one user's valid events may be too many.
batch_events = 1000
[session]
mode = "off"
[[destination]]
name = "main"
type = "http"
url = "{url}"
[destination.tls]
ca_file = "{ca}"
"""


def become(user: int, group: int, groups: list) -> None:
    os.setgroups(groups)
    os.setgid(group)
    os.setuid(user)
    os.umask(0o007)


def honest(directory: str, app: int, events: int, seconds: float, box: str) -> None:
    """An honest app: lines into a file that it rotates, drop files, some of them critical, spread over the time."""
    become(HONEST + app, HONEST + app, [])
    source = random.Random(app)
    path, written, began, rotated = os.path.join(directory, "app.jsonl"), 0, time.monotonic(), 0.0
    while written < events:
        due = min(events, int(events * (time.monotonic() - began) / seconds) + 1)
        lines, kind = [], "lines"
        if source.random() < 0.05:
            kind = source.choice(["drop", "box"])
        while written < due:
            text = {"name": "honest", "properties": {"key": f"{app}-{written}", "t": time.time(), "way": kind}}
            if source.random() < 0.1:
                text["priority"] = "critical"
            lines.append(json.dumps(text) + "\n")
            written += 1
        # Without an event its file would have the name of the one before, which may not have been read.
        if kind != "lines" and lines:
            place = directory if kind == "drop" else box
            name = f"{app}-{written}.json"
            with open(os.path.join(place, f".{name}"), "w") as file:
                os.fchmod(file.fileno(), 0o664)
                file.write("[" + ",".join(lines) + "]")
            os.rename(os.path.join(place, f".{name}"), os.path.join(place, name))
        elif lines:
            with open(path, "a") as file:
                file.write("".join(lines))
            if time.monotonic() - rotated > 15:
                rotated = time.monotonic()
                os.rename(path, f"{path}.{written}")
        time.sleep(0.05)


def hostile(ground: Ground, user: int, until: float, only: str, without: str, report: str) -> None:
    become(user, user, [])
    # Sent to whoever holds a file lease that somebody breaks; it would end this process.
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    attacks = [attack for attack in ATTACKS
               if (not only or attack.__name__ in only.split(",")) and attack.__name__ not in without.split(",")]
    # An attack that waits for somebody, as one that opens a FIFO of an earlier one does, ends after a time.
    signal.signal(signal.SIGALRM, interrupted)
    while time.monotonic() < until:
        attack = ground.random.choice(attacks)
        state = ground.random.getstate()
        try:
            signal.alarm(MOST_WAIT)
            attack(ground)
            outcome = ""
        except OSError as error:
            outcome = f" ({error.strerror or error})"
        signal.alarm(0)
        ground.random.setstate(state)
        ground.random.getrandbits(64)
        with open(report, "a") as file:
            file.write(f"{time.time():.1f} {user} {attack.__name__}{outcome}\n")
        time.sleep(ground.random.random())
        clean(ground.app)


def missing(seen: set, each: int) -> str:
    """The events of each app that did not arrive, as runs of their numbers."""
    texts = []
    for app in range(APPS):
        numbers = [number for number in range(each) if f"{app}-{number}" not in seen]
        if numbers:
            texts.append(f"app {app}: {len(numbers)}, from {numbers[0]} to {numbers[-1]}")
    return "; ".join(texts)


def interrupted(*_) -> None:
    raise TimeoutError("interrupted")


def clean(directory: str) -> None:
    """Removes what a hostile user left in its own directory, once it is much: the disk is not what is tried here."""
    names = os.listdir(directory)
    if len(names) < 2_000:
        return
    for name in names:
        path = os.path.join(directory, name)
        try:
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        except OSError:
            pass


class Arrivals(threading.Thread):
    """Follows the receiver's file: when each honest event arrived."""

    def __init__(self, path: str):
        super().__init__(daemon=True)
        self.path, self.seen, self.repeated, self.latest, self.secrets, self.late = path, set(), 0, 0.0, 0, []
        self.hostile, self.over = 0, False
        # By the way that an event went: how long the slowest took, how much of it until the agent had it, and when it came.
        self.slowest = {}

    def run(self) -> None:
        wait_for(lambda: os.path.exists(self.path), 60, "the first event")
        with open(self.path, "rb") as file:
            rest = b""
            while not self.over:
                block = file.read(1 << 20)
                if not block:
                    time.sleep(0.05)
                    continue
                now, lines = time.time(), (rest + block).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    self.take(line, now)

    def take(self, line: bytes, now: float) -> None:
        self.secrets += MARKER.encode() in line
        if b'"name":"honest"' not in line.replace(b": ", b":"):
            self.hostile += 1
            return
        event = json.loads(line)
        properties = event["properties"]
        self.repeated += properties["key"] in self.seen
        self.seen.add(properties["key"])
        took = now - properties["t"]
        self.latest = max(self.latest, took)
        if took > self.slowest.get(properties["way"], (0,))[0]:
            accepted = datetime.datetime.fromisoformat(event["observed_at"].replace("Z", "+00:00")).timestamp()
            self.slowest[properties["way"]] = (took, accepted - properties["t"], now)
        if took > MOST_SECONDS:
            self.late.append((properties["key"], took, now))


class Watch(threading.Thread):
    """Looks at the agent each second: alive, memory, and whether its port answers."""

    def __init__(self, agent, port: int):
        super().__init__(daemon=True)
        self.agent, self.port, self.unanswered, self.slowest, self.rss, self.over = agent, port, [], 0.0, 0.0, False
        self.metrics = ""

    def run(self) -> None:
        while not self.over and self.agent.poll() is None:
            began = time.monotonic()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                    self.metrics = answer.read().decode()
                self.slowest = max(self.slowest, time.monotonic() - began)
            except OSError as error:
                self.unanswered.append((time.time(), str(error)))
            try:
                self.rss = max(self.rss, memory(self.agent.pid)["VmHWM"])
            except OSError:
                break
            time.sleep(1)

    def figure(self, name: str) -> float:
        return sum(float(line.split()[-1]) for line in self.metrics.splitlines() if line.startswith(name))


def lay_out(work: str) -> list:
    """The packaged layout; returns the secrets that nobody may read by way of the spool."""
    os.chmod(work, 0o755)
    for name, owner, group, mode in [("spool", 0, 0, 0o755), ("spool/incoming", AGENT, AGENT, 0o3733),
                                     ("spool/.spoolship", AGENT, AGENT, 0o755), ("state", AGENT, AGENT, 0o750),
                                     ("run", AGENT, AGENT, 0o755), ("secrets", AGENT, AGENT, 0o755)]:
        os.makedirs(f"{work}/{name}", exist_ok=True)
        os.chown(f"{work}/{name}", owner, group)
        os.chmod(f"{work}/{name}", mode)
    subprocess.run(["setfacl", "-m", "default:user::rw-,default:group::r--,default:other::---", f"{work}/spool/incoming"], check=True)
    for name, owner in [(f"app{index}", HONEST + index) for index in range(APPS)] + [("hostile", HOSTILE)]:
        os.makedirs(f"{work}/spool/{name}")
        os.chown(f"{work}/spool/{name}", owner, AGENT)
        os.chmod(f"{work}/spool/{name}", 0o2770)
        subprocess.run(["setfacl", "-m", "default:user::rwx,default:group::rwx,default:other::---", f"{work}/spool/{name}"], check=True)
    secrets = []
    for name, mode in [("agents.jsonl", 0o600), ("public.jsonl", 0o644), ("one.json", 0o600)]:
        path = f"{work}/secrets/{name}"
        with open(path, "w") as file:
            file.write(f'{{"name":"{MARKER}"}}\n')
        os.chown(path, AGENT, AGENT)
        os.chmod(path, mode)
        secrets.append(path)
    return secrets + [f"{work}/state/queue.sqlite", "/etc/shadow"]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--events", type=int, default=100_000, help="of all honest apps together")
    parser.add_argument("--only", default="", help="these attacks only, with commas between")
    parser.add_argument("--without", default="", help="all attacks but these, with commas between")
    parser.add_argument("--scratch", default="/var/tmp", help="a directory on a real disk")
    parser.add_argument("--keep", action="store_true", help="leave the scratch directory behind")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("hostile: needs root, to be several users", file=sys.stderr)
        return 77
    print(f"hostile: seed {options.seed}, {options.seconds:.0f} s", flush=True)
    work = tempfile.mkdtemp(prefix="spoolship-hostile-", dir=options.scratch)
    children, agent, receiver = [], None, None
    try:
        secrets = lay_out(work)
        binary = shutil.copy(os.path.abspath(options.binary), f"{work}/spoolship")
        output, port = f"{work}/arrived.ndjson", free_port()
        receiver = Receiver(binary, work, output)
        os.chmod(receiver.directory, 0o755)
        with open(f"{work}/spoolship.toml", "w") as file:
            file.write(CONFIGURATION.format(work=work, port=port, url=receiver.url, ca=receiver.ca))
        log = open(f"{work}/agent.log", "wb")
        agent = subprocess.Popen(
            ["setpriv", "--reuid", str(AGENT), "--regid", str(AGENT), "--clear-groups", "--no-new-privs", "--inh-caps", "-all,+lease",
             "--ambient-caps", "-all,+lease", "--bounding-set", "-all,+lease", binary, "run", "--config", f"{work}/spoolship.toml"],
            stdout=log, stderr=log)
        wait_for(lambda: os.path.exists(f"{work}/run/control.sock") or agent.poll() is not None, 60, "the agent")
        arrivals, watch = Arrivals(output), Watch(agent, port)
        arrivals.start()
        watch.start()
        box, until = f"{work}/spool/incoming", time.monotonic() + options.seconds
        report = f"{work}/attacks.log"
        open(report, "w").close()
        os.chmod(report, 0o666)
        honest_apps = [fork(honest, f"{work}/spool/app{index}", index, options.events // APPS, options.seconds, box) for index in range(APPS)]
        for index in range(2):
            ground = Ground(box=box, app=f"{work}/spool/hostile", secrets=secrets, port=port,
                            random=random.Random(options.seed * 2 + index))
            children.append(fork(hostile, ground, HOSTILE, until, options.only, options.without, report))
        expected = options.events // APPS * APPS
        course = open(f"{work}/course.log", "w")
        began = last = time.monotonic()
        deadline = until + 60
        while time.monotonic() < deadline and agent.poll() is None:
            time.sleep(1)
            course.write(f"{time.time():.1f} honest {len(arrivals.seen)} others {arrivals.hostile} quarantined "
                         f"{watch.figure('spoolship_quarantined_total'):.0f} queued {watch.figure('spoolship_queue_bytes'):.0f}\n")
            course.flush()
            if len(arrivals.seen) >= expected and time.monotonic() > until:
                break
            if time.monotonic() - last >= 60:
                last = time.monotonic()
                print(f"hostile: {(last - began) / 60:.0f} min: {sum(1 for _ in open(report))} attacks, {len(arrivals.seen)} honest "
                      f"events arrived, the slowest after {arrivals.latest:.1f} s, peak {watch.rss:.1f} MB, "
                      f"{watch.figure('spoolship_quarantined_total'):.0f} quarantined", flush=True)
        if len(arrivals.seen) < expected and agent.poll() is None:
            # What the agent says of itself while events are missing.
            print("hostile: what is missing: " + missing(arrivals.seen, options.events // APPS))
            for command in (["status"], ["status", "--json"]):
                subprocess.run([binary, *command, "--config", f"{work}/spoolship.toml"], check=False)
            print(watch.metrics, flush=True)
        ended = [child for child in honest_apps + children if not finish(child)]
        children = []
        watch.over = arrivals.over = True
        return judge(work, report, agent, arrivals, watch, expected, len(ended))
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        if agent and agent.poll() is None:
            agent.terminate()
            try:
                agent.wait(60)
            except subprocess.TimeoutExpired:
                agent.kill()
                print("hostile: FAILED: the agent did not end within 60 s")
        if receiver:
            receiver.stop()
        if options.keep:
            print(f"hostile: kept in {work}")
        else:
            subprocess.run(["chmod", "-R", "u+rwx", work], check=False, stderr=subprocess.DEVNULL)
            shutil.rmtree(work, ignore_errors=True)


def judge(work: str, report: str, agent, arrivals: Arrivals, watch: Watch, expected: int, ended: int) -> int:
    with open(report) as file:
        attacks = file.read().splitlines()
    tail = subprocess.run(["tail", "-n", "5", f"{work}/agent.log"], stdout=subprocess.PIPE, text=True, check=False).stdout
    times = [float(attack.split()[0]) for attack in attacks]
    rest = max((after - before for before, after in zip(times, times[1:])), default=0)
    faults = [text for text, wrong in [
        (f"the hostile users did nothing for {rest:.0f} s", rest > 6 * MOST_WAIT),
        (f"the agent ended with {agent.poll()}; its last words:\n{tail}", agent.poll() is not None),
        (f"{expected - len(arrivals.seen)} of {expected} honest events did not arrive", len(arrivals.seen) != expected),
        (f"{ended} apps or hostile users ended before their time", ended > 0),
        (f"{arrivals.repeated} honest events arrived more than once", arrivals.repeated > 0),
        (f"{len(arrivals.late)} honest events took longer than {MOST_SECONDS} s, the slowest {arrivals.latest:.1f} s, the first at "
         f"{arrivals.late[0][2] if arrivals.late else 0:.1f}", bool(arrivals.late)),
        (f"{arrivals.secrets} secrets arrived", arrivals.secrets > 0),
        (f"the agent's memory reached {watch.rss:.1f} MB", watch.rss >= MOST_MEGABYTES),
        (f"the stats port did not answer {len(watch.unanswered)} times, first {watch.unanswered[:1]}", bool(watch.unanswered)),
    ] if wrong]
    print(f"hostile: {len(attacks)} attacks, {len(arrivals.seen)} of {expected} honest events arrived, the slowest after "
          f"{arrivals.latest:.1f} s; {arrivals.hostile} others; peak {watch.rss:.1f} MB; slowest scrape {watch.slowest:.2f} s")
    for way, (took, accepted, when) in sorted(arrivals.slowest.items()):
        print(f"hostile:   by {way}: the slowest after {took:.1f} s, {accepted:.1f} s of them until the agent had it, at {when:.0f}")
    for fault in faults:
        print(f"hostile: FAILED: {fault}")
    print("hostile: passed" if not faults else f"hostile: {len(faults)} failed")
    return 1 if faults else 0


def fork(work, *arguments) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work(*arguments)
        os._exit(0)
    except BaseException as error:
        print(f"hostile: {work.__name__} ended: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)


def finish(child: int) -> bool:
    """Whether it has done its work."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


if __name__ == "__main__":
    sys.exit(main())
