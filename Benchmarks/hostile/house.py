"""The packaged layout with an agent, a receiver and honest apps in it, and what is asked of them whatever others do beside them:

* all events of the honest arrive, each once and within 10 seconds, under their own app's name;
* nothing arrives under the name of an honest app that it did not write, and nothing from outside the spool;
* no user keeps it from being ready: `/readyz` answers 503 for at most 10 seconds on end;
* the agent stays one process, its own memory below 48 MB, or what the files take that it may know (the pages of its program and of mapped
  files come on top, some 26 MB, and the kernel takes them back when it needs them), and its stats port answers within 5 seconds, always;
* the ledger balances, and what it says was acknowledged is what arrived.
"""
import atexit
import datetime
import functools
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
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from bench import Receiver, free_port, memory, wait_for

AGENT, HONEST, HOSTILE = 61_000, 61_100, 61_900
APPS, USERS = 20, 3
# The agent's own memory, and what is allowed on top for each file that it may know: less than docs/security.md says of one.
MOST_SECONDS, MOST_MEGABYTES, KILOBYTES_A_FILE = 10, 48, 0.7
# How many read drop files may stay because of their bad lines: 8,192, and what the commits under way hold.
MOST_STAYING = 8_192 + 4 * 512
# How long, in seconds, the agent may say that it is not ready.
MOST_UNREADY = 10
# How long an operation that waits for somebody may take, as one that opens a FIFO does; less than the end of a run waits for.
MOST_WAIT = 20
MARKER = "SECRET-OF-SOMEBODY-ELSE"
# What becomes of an event, in the ledger's words.
GONE = ["acknowledged", "dead_lettered", "evicted", "expired", "discarded", "lost", "queued"]

CONFIGURATION = """
[agent]
state_directory = "{work}/state"
runtime_directory = "{work}/run"
[spool]
directory = "{spool}"
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
# What is read where it lies: the logs of some of the honest, and of a hostile user.
IN_PLACE = """[apps.{name}]
read = ["{directory}/*.log"]
"""


def become(user: int) -> None:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    os.umask(0o007)
    # Sent to whoever holds a file lease that somebody breaks; it would end this process.
    signal.signal(signal.SIGIO, signal.SIG_IGN)


def event(way: str, key: str, critical: bool, **more) -> str:
    """A line of an honest app; `way` is how it goes, `key` is nobody else's."""
    text = {"name": "honest", "properties": {"key": key, "t": time.time(), "way": way}} | more
    if critical:
        text["priority"] = "critical"
    return json.dumps(text)


def interrupted(*_) -> None:
    raise TimeoutError("interrupted")


def limited(seconds: float, action, *arguments) -> str:
    """Does what a hostile user does, and ends what waits for somebody, as one that opens a FIFO does. What was wrong, in brackets.

    The alarm may come at any moment until it is off, so switching it off is inside of what catches it: on a busy machine an alarm
    that came just after the end of an action ended the hostile user. It comes again, for actions that catch the first one
    themselves. `interrupted` must be the handler.
    """
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
            action(*arguments)
            return ""
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except OSError as error:
        return f" ({error.strerror or error})"
    except ValueError as error:
        return f" ({error})"


def report(directory: str, app: int, counts: dict) -> None:
    """What an honest app has written: by its keys' beginnings, how many."""
    with open(os.path.join(directory, str(app)), "w") as file:
        json.dump(counts, file)


class House:
    """Everything that a run needs, in a scratch directory that goes with it."""

    def __init__(self, options, configuration: str = "", limit: int = 0, files: int = 0, before=None):
        """`configuration` is added to the agent's, `limit` is the memory in bytes that its control group may use, `files` is how many
        files it may know beyond some thousand."""
        self.options, self.more, self.limit = options, configuration, limit
        self.most = MOST_MEGABYTES + files * KILOBYTES_A_FILE / 1024
        self.children, self.agent, self.receiver, self.group = [], None, None, None
        # Called in a process of its own before the agent starts: what is there then.
        self.before = before

    def __enter__(self):
        self.work = tempfile.mkdtemp(prefix="spoolship-hostile-", dir=self.options.scratch)
        self.spool = f"{self.work}/spool"
        if self.options.spool:
            self.spool = tempfile.mkdtemp(prefix="spoolship-hostile-", dir=self.options.spool)
            os.symlink(self.spool, f"{self.work}/spool")
        try:
            self.begin()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.end()

    def begin(self) -> None:
        self.secrets = lay_out(self.work)
        self.binary = shutil.copy(os.path.abspath(self.options.binary), f"{self.work}/spoolship")
        self.port = free_port()
        self.receiver = Receiver(self.binary, self.work, f"{self.work}/arrived.ndjson")
        os.chmod(self.receiver.directory, 0o755)
        with open(f"{self.work}/spoolship.toml", "w") as file:
            file.write(CONFIGURATION.format(work=self.work, spool=self.spool, port=self.port, url=self.receiver.url, ca=self.receiver.ca)
                       + self.more.format(work=self.work))
        if self.before:
            child = os.fork()
            if child == 0:
                self.before(self)
                os._exit(0)
            os.waitpid(child, 0)
        if self.limit:
            self.group = ControlGroup(self.limit)
        log = open(f"{self.work}/agent.log", "wb")
        self.agent = subprocess.Popen(
            ["setpriv", "--reuid", str(AGENT), "--regid", str(AGENT), "--clear-groups", "--no-new-privs", "--inh-caps", "-all,+lease",
             "--ambient-caps", "-all,+lease", "--bounding-set", "-all,+lease", self.binary, "run", "--config",
             f"{self.work}/spoolship.toml"], stdout=log, stderr=log, preexec_fn=self.group and self.group.join)
        wait_for(lambda: os.path.exists(f"{self.work}/run/control.sock") or self.agent.poll() is not None, 60, "the agent")
        self.arrivals, self.watch = Arrivals(f"{self.work}/arrived.ndjson"), Watch(self.agent, self.port)
        self.arrivals.start()
        self.watch.start()

    def path(self, *names: str) -> str:
        return os.path.join(self.work, *names)

    def fork(self, work, *arguments) -> int:
        child = os.fork()
        if child:
            self.children.append(child)
            return child
        try:
            work(*arguments)
            os._exit(0)
        except BaseException as error:
            print(f"hostile: {work.__name__} ended: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)

    def live(self, until: float, progress) -> list:
        """Lives until a time and until all that the honest have written has arrived, and says what was wrong."""
        began = last = time.monotonic()
        with open(f"{self.work}/course.log", "w") as course:
            while time.monotonic() < until and self.agent.poll() is None:
                time.sleep(1)
                course.write(f"{time.time():.1f} honest {len(self.arrivals.seen)} others {self.arrivals.others} quarantined "
                             f"{self.watch.figure('spoolship_quarantined_total'):.0f} queued "
                             f"{self.watch.figure('spoolship_queue_bytes'):.0f}\n")
                course.flush()
                if time.monotonic() - last >= 60:
                    last = time.monotonic()
                    print(f"hostile: {(last - began) / 60:.0f} min: {progress()}, {self.arrivals.words()}, {self.watch.words()}",
                          flush=True)
        ended = sum(not finish(child) for child in self.children)
        self.children = []
        keys = self.written()
        deadline = time.monotonic() + 60
        while not keys <= self.arrivals.seen and time.monotonic() < deadline and self.agent.poll() is None:
            time.sleep(0.2)
        missing = keys - self.arrivals.seen
        if missing and self.agent.poll() is None:
            # What the agent says of itself while events are missing.
            print(f"hostile: missing are {sorted(missing)[:10]}")
            subprocess.run(self.command("status"), check=False)
        faults = self.arrivals.faults() + self.ledger_faults() + self.agent_faults()
        if missing:
            faults.append(f"{len(missing)} of {len(keys)} honest events did not arrive")
        if ended:
            faults.append(f"{ended} apps or hostile users ended before their time")
        self.watch.over = self.arrivals.over = True
        print(f"hostile: {progress()}, {len(self.arrivals.seen & keys)} of {len(keys)} honest events arrived; {self.arrivals.words()}; "
              f"{self.arrivals.others} others; {self.watch.words()}"
              + (f", {self.group.words()}" if self.group else "") + f"; slowest scrape {self.watch.slowest:.2f} s")
        slowest = sorted(self.arrivals.slowest.items(), key=lambda one: one[1], reverse=True)
        for way, (took, accepted, when) in slowest[:5]:
            print(f"hostile:   by {way}: the slowest after {took:.1f} s, {accepted:.1f} s of them until the agent had it, at {when:.0f}")
        return faults

    def command(self, *words: str) -> list:
        return [self.binary, *words, "--config", f"{self.work}/spoolship.toml"]

    def written(self) -> set:
        """The keys of all that the honest have written."""
        keys = set()
        for app in os.listdir(f"{self.work}/written"):
            with open(f"{self.work}/written/{app}") as file:
                keys |= {f"{start}-{number}" for start, count in json.load(file).items() for number in range(1, count + 1)}
        return keys

    def ledger_faults(self) -> list:
        """The ledger's rows balance; once nothing waits, what was acknowledged is what arrived."""
        if self.agent.poll() is not None:
            return []
        deadline = time.monotonic() + 60
        while True:
            answer = subprocess.run(self.command("status", "--json"), stdout=subprocess.PIPE, check=False)
            status = json.loads(answer.stdout or "null")
            if not status:
                return ["status says nothing"]
            lanes = [lane for one in status["destinations"] for lane in one["lanes"]]
            acknowledged = sum(lane["acknowledged"] for lane in lanes)
            if acknowledged == self.arrivals.count or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        faults = [f"the ledger's row does not balance: {lane}" for lane in lanes
                  if lane["accepted"] + lane["retried"] != sum(lane[column] for column in GONE)]
        if not status["balanced"]:
            faults.append("the agent says that the ledger does not balance")
        if acknowledged != self.arrivals.count:
            faults.append(f"{acknowledged} events were acknowledged, and {self.arrivals.count} arrived")
        return faults

    def agent_faults(self) -> list:
        with open(f"{self.work}/agent.log", errors="replace") as log:
            tail = "".join(log.readlines()[-5:])
        return [text for text, wrong in [
            (f"the agent ended with {self.agent.poll()}; its last words:\n{tail}", self.agent.poll() is not None),
            (f"the agent's memory: {self.watch.words()}",
             self.watch.rss >= self.limit >> 20 if self.limit else self.watch.own >= self.most),
            (f"{self.watch.staying:.0f} read files stayed, at most {MOST_STAYING} may", self.watch.staying > MOST_STAYING),
            (f"the agent was not ready for {self.watch.unready:.0f} s: {self.watch.unready_reason}", self.watch.unready > MOST_UNREADY),
            (f"the stats port did not answer {len(self.watch.unanswered)} times, first {self.watch.unanswered[:1]}",
             bool(self.watch.unanswered)),
        ] if wrong]

    def end(self) -> None:
        for child in self.children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        if self.agent and self.agent.poll() is None:
            self.agent.terminate()
            try:
                self.agent.wait(60)
            except subprocess.TimeoutExpired:
                self.agent.kill()
                self.agent.wait()
                print("hostile: FAILED: the agent did not end within 60 s")
        if self.receiver:
            self.receiver.stop()
        if self.group:
            self.group.remove()
        if self.options.keep:
            print(f"hostile: kept in {self.work}")
        else:
            # A million names take longer to remove than the verdict may wait; the next growth of --bounds needs the room at once.
            remove = functools.partial(subprocess.run, ["rm", "-rf", self.work, self.spool], check=False)
            remove() if self.options.bounds else atexit.register(remove)


class Arrivals(threading.Thread):
    """Follows the receiver's file: when each honest event arrived, and under whose name everything else did."""

    def __init__(self, path: str):
        super().__init__(daemon=True)
        self.path, self.seen, self.repeated, self.latest, self.late = path, set(), [], 0.0, []
        self.count = self.others = self.secrets = 0
        self.foreign, self.over = [], False
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
        self.count += 1
        self.secrets += MARKER.encode() in line
        event = json.loads(line)
        app = event["app"]
        # A hostile user may write what an honest one did: under its own name that is its own. A record, which alone has `host_name`,
        # keeps the `app` that it was written with, unless it comes from the drop box: an app that has a directory is trusted so far.
        if is_hostile(app) or app not in HONEST_APPS and "host_name" in event:
            self.others += 1
            return
        properties = event.get("properties")
        if event.get("name") != "honest" or properties["key"].split("-")[0] != HONEST_APPS.get(app):
            self.foreign.append(line[:200])
            return
        if properties["key"] in self.seen:
            self.repeated.append(properties["key"])
        self.seen.add(properties["key"])
        took = now - properties["t"]
        self.latest = max(self.latest, took)
        if took > self.slowest.get(properties["way"], (0,))[0]:
            accepted = datetime.datetime.fromisoformat(event["observed_at"].replace("Z", "+00:00")).timestamp()
            self.slowest[properties["way"]] = (took, accepted - properties["t"], now)
        if took > MOST_SECONDS:
            self.late.append((properties["key"], took, now))

    def words(self) -> str:
        return f"the slowest after {self.latest:.1f} s"

    def faults(self) -> list:
        return [text for text, wrong in [
            (f"{len(self.repeated)} honest events arrived more than once, such as {self.repeated[:3]}", self.repeated),
            (f"{len(self.late)} honest events took longer than {MOST_SECONDS} s, the slowest {self.latest:.1f} s, the first at "
             f"{self.late[0][2] if self.late else 0:.1f}", self.late),
            (f"{self.secrets} secrets arrived", self.secrets),
            (f"{len(self.foreign)} events came under a name that is not their writer's, such as {self.foreign[:3]}", self.foreign),
        ] if wrong]


# How the keys of the events begin that may come under an app's name: those of the user whose directory, files in the drop box or
# logs read in place they are.
HONEST_APPS = {app: f"app{index}" for index in range(APPS) for app in (f"app{index}", f"uid-{HONEST + index}", f"place{index}")}


def is_hostile(app: str) -> bool:
    """Whether an app's name is a hostile user's; all users from HOSTILE on are."""
    return app.startswith("hostile") or app.startswith("uid-") and app[4:].isdigit() and int(app[4:]) >= HOSTILE


class Watch(threading.Thread):
    """Looks at the agent each second: alive, memory, and whether its port answers."""

    def __init__(self, agent, port: int):
        super().__init__(daemon=True)
        self.agent, self.port, self.unanswered, self.slowest, self.over = agent, port, [], 0.0, False
        # The most that was resident, and of that in pages of its own.
        self.rss = self.own = 0.0
        self.metrics, self.staying = "", 0.0
        # Since when it is not ready, how long it was so at most, and what it said then.
        self.unready_since, self.unready, self.unready_reason = None, 0.0, ""

    def run(self) -> None:
        while not self.over and self.agent.poll() is None:
            began = time.monotonic()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                    self.metrics = answer.read().decode()
                self.slowest = max(self.slowest, time.monotonic() - began)
            except OSError as error:
                self.unanswered.append((time.time(), str(error)))
            self.staying = max(self.staying, self.figure("spoolship_spool_files_staying"))
            self.look_ready()
            try:
                now = memory(self.agent.pid)
                self.rss, self.own = max(self.rss, now["VmHWM"]), max(self.own, now["RssAnon"])
            except (OSError, KeyError):
                break
            time.sleep(1)

    def look_ready(self) -> None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5):
                self.unready_since = None
        except urllib.error.HTTPError as error:
            now = time.monotonic()
            self.unready_since = self.unready_since or now
            if now - self.unready_since > self.unready:
                self.unready, self.unready_reason = now - self.unready_since, error.read(300).decode(errors="replace").strip()
        except OSError:
            # The scrape before it has counted a port that does not answer.
            pass

    def words(self) -> str:
        return f"peak {self.rss:.1f} MB, {self.own:.1f} of its own, not ready for {self.unready:.0f} s"

    def figure(self, name: str) -> float:
        return sum(float(line.split()[-1]) for line in self.metrics.splitlines() if line.startswith(name))


class ControlGroup:
    """A control group with a bound on memory: of version 1 or 2, whichever has the controller here."""

    def __init__(self, limit: int):
        version_1, unified = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
        if os.path.isdir(version_1):
            parent, self.bound, self.peak, self.kills = version_1, "memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"
        else:
            parent, self.bound, self.peak, self.kills = unified, "memory.max", "memory.peak", "memory.events"
        self.directory, self.limit = f"{parent}/spoolship-hostile-{os.getpid()}", limit
        os.mkdir(self.directory)
        if not os.path.exists(self.path(self.bound)):
            os.rmdir(self.directory)
            raise SystemExit("hostile: no memory controller in /sys/fs/cgroup: give it to the root group's children (cgroup.subtree_control)")
        with open(self.path(self.bound), "w") as file:
            file.write(str(limit))

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def join(self) -> None:
        """Called in the process that is to be in it."""
        with open(self.path("cgroup.procs"), "w") as file:
            file.write(str(os.getpid()))

    def words(self) -> str:
        with open(self.path(self.peak)) as file:
            peak = int(file.read()) >> 20
        with open(self.path(self.kills)) as file:
            kills = next((line.split()[1] for line in file if line.startswith("oom_kill ")), "0")
        return f"its group {peak} of {self.limit >> 20} MB (the page cache and the kernel's memory count), {kills} killed"

    def remove(self) -> None:
        os.rmdir(self.directory)


def lay_out(work: str) -> list:
    """The packaged layout; returns the secrets that nobody may read by way of the spool."""
    os.chmod(work, 0o755)
    for name, owner, group, mode in [("spool", 0, 0, 0o755), ("spool/incoming", AGENT, AGENT, 0o3733),
                                     ("spool/.spoolship", AGENT, AGENT, 0o755), ("state", AGENT, AGENT, 0o750),
                                     ("run", AGENT, AGENT, 0o755), ("secrets", AGENT, AGENT, 0o755), ("logs", 0, 0, 0o755),
                                     ("written", 0, 0, 0o1777), ("known", 0, 0, 0o1777), ("done", 0, 0, 0o1777)]:
        os.makedirs(f"{work}/{name}", exist_ok=True)
        os.chown(f"{work}/{name}", owner, group)
        os.chmod(f"{work}/{name}", mode)
    subprocess.run(["setfacl", "-m", "default:user::rw-,default:group::r--,default:other::---", f"{work}/spool/incoming"], check=True)
    owners = [(f"app{index}", HONEST + index) for index in range(APPS)] + [(f"hostile{index or ''}", HOSTILE + index) for index in range(USERS)]
    for name, owner in owners:
        for place in ("spool", "logs"):
            os.makedirs(f"{work}/{place}/{name}")
            os.chown(f"{work}/{place}/{name}", owner, AGENT)
            os.chmod(f"{work}/{place}/{name}", 0o2770)
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


def honest(work: str, app: int, events: int, seconds: float) -> None:
    """An honest app: lines into a file that it rotates, drop files, some of them critical, spread over the time."""
    become(HONEST + app)
    source, box, directory = random.Random(app), f"{work}/spool/incoming", f"{work}/spool/app{app}"
    path, written, began, rotated = os.path.join(directory, "app.jsonl"), 0, time.monotonic(), 0.0
    while written < events:
        due = min(events, int(events * (time.monotonic() - began) / seconds) + 1)
        lines, kind = [], "lines"
        if source.random() < 0.05:
            kind = source.choice(["drop", "box", "report"])
        report_path = os.path.join(box, f"report-{app}.json")
        # One name for all, as many programs do: the one before must have been taken.
        if kind == "report" and os.path.exists(report_path):
            kind = "box"
        while written < due:
            written += 1
            lines.append(event(kind, f"app{app}-{written}", source.random() < 0.1) + "\n")
        # Without an event its file would have the name of the one before, which may not have been read.
        if kind != "lines" and lines:
            place = directory if kind == "drop" else box
            name = os.path.basename(report_path) if kind == "report" else f"{app}-{written}.json"
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
    report(f"{work}/written", app, {f"app{app}": written})


def finish(child: int) -> bool:
    """Whether it has done its work."""
    deadline = time.monotonic() + MOST_WAIT + 10
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
