"""A machine with the packaged agent, a receiver and a Prometheus on it: an overlay of this one's root in namespaces of its own."""
import ctypes, glob, json, os, re, shutil, signal, socket, struct, subprocess, tempfile, threading, time, urllib.request

STATS = "http://127.0.0.1:9464"
PROMETHEUS = "http://127.0.0.1:9090"
BASE = """[dispatch]
interval = "1s"
[retry]
intervals = ["500ms"]
when_exhausted = { interval = "1h" }
[[destination]]
name = "main"
url = "https://127.0.0.1:8443/"
request_timeout = "2s"
[destination.tls]
ca_file = "/etc/spoolship/ca.pem"
"""


def fast(rules):
    """The shipped rules, hours made seconds: as Tests/EndToEndTests/Alerts/FastRules.swift does."""
    rules = re.sub(r"(?m)^( *for:) .*$", r"\1 1s", rules)
    rules = re.sub(r"\[(\d+[mhd])\]", lambda m: "[60s]" if m[1] == "30m" else "[20s]", rules)
    for long, short in ((" > 3600", " > 5"), (" > 600", " > 3"), ("< 86400", "< 25"), ("< 3600", "< 25")):
        rules = rules.replace(long, short)
    return rules


def clock_filter():
    """What ProtectClock= does: the kernel's clock may not be asked, so the agent judges by itself whether it can be trusted."""
    calls = {"x86_64": (159, 305), "aarch64": (171, 266)}[os.uname().machine]
    steps = [(0x20, 0, 0, 0), (0x15, 1, 0, calls[0]), (0x15, 0, 1, calls[1]), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]

    program = Program(len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
        os._exit(126)


class Machine:
    def __init__(self, package, binary):
        # A default route, as a server has one: it leads back.
        for command in ("link set lo up", "route add default dev lo"):
            subprocess.run(["ip", *command.split()], check=True)
        self.work = tempfile.mkdtemp(prefix="spoolship-faults-", dir="/var/tmp")
        self.tree = f"{self.work}/root"
        self.processes = {}
        self.agent = None
        # Limit of the agent's file descriptors; none for this process's own.
        self.files = None
        binary = binary and os.path.realpath(binary)
        for name in ("mem", "root"):
            os.mkdir(f"{self.work}/{name}")
        self.run("mount", "-t", "tmpfs", "tmpfs", f"{self.work}/mem")
        for name in ("up", "work"):
            os.mkdir(f"{self.work}/mem/{name}")
        self.run("mount", "-t", "overlay", "overlay", "-o",
                 f"lowerdir=/,upperdir={self.work}/mem/up,workdir={self.work}/mem/work", self.tree)
        for name in ("proc", "dev"):
            self.run("mount", "--bind", f"/{name}", f"{self.tree}/{name}")
        for path in ("run", "tmp", "var/lib/spoolship", "var/spool/spoolship"):
            os.makedirs(f"{self.tree}/{path}", exist_ok=True)
            self.run("mount", "-t", "tmpfs", "tmpfs", f"{self.tree}/{path}")
        os.chmod(f"{self.tree}/tmp", 0o1777)
        with open(f"{self.tree}/usr/sbin/policy-rc.d", "w") as file:
            file.write("#!/bin/sh\nexit 101\n")
        with open(f"{self.tree}/etc/resolv.conf", "w") as file:
            file.write("nameserver 127.0.0.1\n")
        shutil.copy(package, f"{self.tree}/root/spoolship.deb")
        self.run("chroot", self.tree, "env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "-i", "/root/spoolship.deb")
        if binary:
            # With a program that is not the package's, the rules of the tree.
            shutil.copy("monitoring/alerts.yml", f"{self.tree}/usr/share/spoolship/monitoring/alerts.yml")
            # The debug build needs libraries beside it; they are where they were, under the same root.
            os.remove(f"{self.tree}/usr/bin/spoolship")
            shutil.copy(binary, f"{self.tree}/usr/bin/spoolship")
        self.run("chroot", self.tree, "useradd", "--system", "shop")
        self.run("chroot", self.tree, "mkdir", "-p", "/var/backups/state")
        self.notified = 0
        threading.Thread(target=self.listen, daemon=True).start()

    def run(self, *words, check=True):
        result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if check and result.returncode:
            raise RuntimeError(f"{' '.join(words)}: {result.stdout}")
        return result.stdout

    def listen(self):
        """Somebody to notify, as the unit's Type=notify has it."""
        path = f"{self.tree}/run/notify"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.bind(path)
        os.chmod(path, 0o777)
        while True:
            if b"WATCHDOG=1" in listener.recv(4096):
                self.notified = time.monotonic()

    def sh(self, command, check=True):
        return self.run("chroot", self.tree, "sh", "-c", command, check=check)

    def path(self, path):
        return self.tree + path

    def spoolship(self, *words):
        return self.run("chroot", self.tree, "spoolship", *words, check=False)

    # --- Programs ---

    def spawn(self, name, words, **more):
        with open(f"{self.work}/{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **more)
        return self.processes[name]

    def end(self, name):
        process = self.processes.pop(name, None)
        if process and process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def until(self, seconds, what, condition):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.2)
        if what:
            raise RuntimeError(f"gave up waiting for {what}")
        return False

    def fetch(self, url):
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def writable(self, path):
        """The unit's sandbox is not here: nothing stands in the way."""

    def limit_files(self, count):
        """Lets the agent open fewer files, from its next start until the next reset."""
        self.files = count

    def start(self, waits=True):
        """Starts the agent as the unit does."""
        unit = open(self.path("/usr/lib/systemd/system/spoolship.service")).read()
        command = re.search(r"(?m)^ExecStart=(.*)$", unit)[1].split()
        capability = "-all,+lease"
        limit = [] if self.files is None else ["prlimit", f"--nofile={self.files}"]
        agent = self.spawn("agent", [
            *limit, "setpriv", "--reuid", "spoolship", "--regid", "spoolship", "--init-groups", "--no-new-privs", "--inh-caps", capability,
            "--ambient-caps", capability, "--bounding-set", capability, "env", "-i", "PATH=/usr/bin:/bin",
            "NOTIFY_SOCKET=/run/notify", "WATCHDOG_USEC=4000000", *command],
            preexec_fn=lambda: (os.chroot(self.tree), os.chdir("/"), os.umask(0o077), clock_filter()))
        if waits:
            self.until(30, "the agent: " + self.log(), lambda: self.fetch(f"{STATS}/healthz")[0] == 200 or agent.poll() is not None)
        return agent

    def stop(self):
        agent = self.processes.get("agent")
        if agent and agent.poll() is None:
            agent.send_signal(signal.SIGTERM)
            try:
                agent.wait(20)
            except subprocess.TimeoutExpired:
                pass
        self.end("agent")

    def exits(self):
        """Starts an agent that is expected to end, and gives its exit code."""
        return self.start(waits=False).wait(30)

    def receive(self, *options):
        self.end("receiver")
        self.spawn("receiver", ["chroot", self.tree, "spoolship", "receive", "--listen", "127.0.0.1:8443", "--certificates",
                                "/root/receiver", "--output", "/root/events.ndjson", *options])
        self.until(30, "the receiver", lambda: self.sh("curl -s --cacert /root/receiver/ca.pem https://127.0.0.1:8443/stats", check=False))

    def judge(self):
        """Starts a Prometheus with the shipped rules that has seen nothing yet."""
        home = f"{self.work}/prometheus"
        shutil.rmtree(home, ignore_errors=True)
        os.mkdir(home)
        with open(f"{home}/alerts.yml", "w") as file:
            file.write(fast(open(self.path("/usr/share/spoolship/monitoring/alerts.yml")).read()))
        with open(f"{home}/prometheus.yml", "w") as file:
            file.write("global: {scrape_interval: 500ms, evaluation_interval: 500ms}\nrule_files: [alerts.yml]\nscrape_configs:\n"
                       "  - job_name: spoolship\n    static_configs: [{targets: ['127.0.0.1:9464']}]\n")
        self.end("prometheus")
        self.spawn("prometheus", ["prometheus", f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data",
                                  "--log.level=warn", "--web.listen-address=127.0.0.1:9090"])
        self.until(60, "Prometheus", lambda: '"1"]' in self.fetch(f"{PROMETHEUS}/api/v1/query?query=up")[1])
        time.sleep(1)

    def alerts(self):
        status, body = self.fetch(f"{PROMETHEUS}/api/v1/alerts")
        if status != 200:
            return set()
        return {a["labels"]["alertname"] for a in json.loads(body)["data"]["alerts"] if a["state"] == "firing"}

    def log(self):
        try:
            return open(f"{self.work}/agent.log", errors="replace").read()
        except FileNotFoundError:
            return ""

    # --- Input ---

    def configure(self, text=BASE):
        with open(self.path("/etc/spoolship/conf.d/main.toml"), "w") as file:
            file.write(text)
        os.chmod(self.path("/etc/spoolship/conf.d/main.toml"), 0o644)

    def reload(self):
        return self.sh("setpriv --reuid spoolship --regid spoolship --init-groups spoolship reload 2>&1", check=False)

    def write(self, lines, file="till.jsonl", app="shop"):
        text = "".join(line + "\n" for line in lines)
        path = self.path(f"/var/spool/spoolship/{app}/{file}")
        with open(path, "a") as out:
            out.write(text)
        self.sh(f"chown shop:spoolship /var/spool/spoolship/{app}/{file}; chmod 640 /var/spool/spoolship/{app}/{file}")

    def sell(self, count=20, start=0):
        self.write('{"name":"Sold","properties":{"number":%d}}' % number for number in range(start, start + count))

    def reset(self):
        """As after the installation, with one destination that works, and an app."""
        self.stop()
        self.files = None
        for name in list(self.processes):
            self.end(name)
        self.sh("""
            for path in /var/lib/spoolship /var/spool/spoolship; do
                mount -o remount,rw "$path" 2>/dev/null || true
                chmod -R u+rwx "$path"; find "$path" -mindepth 1 -delete
            done
            rm -rf /etc/spoolship/conf.d/* /root/events.ndjson /run/spoolship/* /tmp/*
            systemd-tmpfiles --create spoolship.conf; chmod 755 /etc/spoolship/conf.d""")
        self.run("mount", "-o", "remount,rw,size=50%", self.path("/var/lib/spoolship"))
        self.spoolship("app", "add", "shop", "--user", "shop")
        open(f"{self.work}/agent.log", "w").close()
        self.receive()
        self.sh("install -m 644 /root/receiver/ca.pem /etc/spoolship/ca.pem")
        self.configure()

    def close(self):
        for name in list(self.processes):
            self.end(name)
        # Mounts end with the namespace; nothing of this machine lies below.
        subprocess.run(["umount", "-R", "-l", self.tree], check=False)
        subprocess.run(["umount", "-l", f"{self.work}/mem"], check=False)
        shutil.rmtree(self.work, ignore_errors=True)
