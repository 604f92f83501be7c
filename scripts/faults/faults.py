"""The faults: what is done, the words that lead to the cause, the alerts that must fire. `do` gets the machine, running and well."""
import http.server, os, sqlite3, ssl, threading, time
from dataclasses import dataclass, field
from machine import BASE


@dataclass
class Fault:
    name: str
    do: callable
    # A regular expression: found in `status`, /readyz or the log, it leads to the cause.
    cause: str
    alerts: tuple = ()
    # Why no alert is to be expected, where there is none.
    quiet: str = ""
    # Whether it needs systemd, and is left out without --systemd.
    booted: bool = False
    # Whether it needs more than namespaces, or depends on how fast the machine is; --short does not draw it.
    apart: bool = False


FAULTS = []


def fault(name, cause, *alerts, quiet="", booted=False, apart=False):
    def add(do):
        FAULTS.append(Fault(name, do, cause, alerts, quiet, booted, apart))
        return do
    return add


def configured(machine, change):
    machine.configure(change(BASE))
    machine.reload()


def with_more(machine, more):
    configured(machine, lambda base: base + more)


def restarted(machine, more):
    machine.stop()
    machine.configure(BASE + more)
    machine.start()


def in_destination(base, more):
    return base.replace("[destination.tls]", more + "\n[destination.tls]")


# --- The configuration ---------------------------------------------------------------------------------------------------

def restart_with(machine, text):
    machine.stop()
    machine.configure(text)
    machine.exit = machine.exits()


@fault("a mistake in the configuration, at the start", r"main\.toml:2:12: dispatch\.interval needs a unit", "SpoolshipDown")
def _(m):
    restart_with(m, BASE.replace('interval = "1s"', "interval = 10", 1))


@fault("a configuration file that the agent's user may not read", r"main\.toml: cannot be read|conf\.d/main\.toml.*[Pp]ermission denied",
       "SpoolshipDown")
def _(m):
    m.stop()
    m.sh("chmod 600 /etc/spoolship/conf.d/main.toml")
    m.exit = m.exits()


@fault("a mistake in the configuration, at a reload", r"main\.toml:2:12: dispatch\.interval needs a unit", "SpoolshipReloadFailed")
def _(m):
    configured(m, lambda base: base.replace('interval = "1s"', "interval = 10", 1))


@fault("a configuration that everybody may write", r"may (be written|write)|can be (written|changed) by", "SpoolshipReloadFailed")
def _(m):
    m.sh("chmod 666 /etc/spoolship/conf.d/main.toml")
    m.reload()


@fault("a variable that is not set", r"COLLECTOR", "SpoolshipReloadFailed")
def _(m):
    configured(m, lambda base: base.replace("127.0.0.1:8443", "${COLLECTOR}"))


@fault("a certificate file that is not there", r"gone\.pem", "SpoolshipReloadFailed")
def _(m):
    configured(m, lambda base: base.replace("/etc/spoolship/ca.pem", "/etc/spoolship/gone.pem"))


@fault("no destination", r"no destination is configured", "SpoolshipNoDestination", "SpoolshipNotReady")
def _(m):
    m.stop()
    m.configure("")
    m.sell()
    m.start()


@fault("an app whose events no destination wants", r"no destination wants", "SpoolshipNoDestination", "SpoolshipNotReady")
def _(m):
    with_more(m, "[apps.shop]\ndestinations = []\n")
    m.sell()


@fault("a destination that was renamed while events wait for it", r"queue move --destination main --to other", "SpoolshipOrphanedEvents")
def _(m):
    m.spoolship("pause")
    m.sell()
    m.until(20, "the queue", lambda: "waiting" in m.spoolship("status"))
    configured(m, lambda base: base.replace('"main"', '"other"'))


# --- The agent -----------------------------------------------------------------------------------------------------------

@fault("a second agent for the same state directory", r"uses .*another state_directory", quiet="the first one works on")
def _(m):
    first = m.processes.pop("agent")
    m.exit = m.exits()
    m.processes["agent"] = first


@fault("the agent was killed", r"(?!)", "SpoolshipDown")
def _(m):
    m.processes["agent"].kill()
    m.processes["agent"].wait()


@fault("the agent was killed, and started again", r"did not stop by itself", quiet="it works again, and nothing was lost")
def _(m):
    m.processes["agent"].kill()
    m.processes["agent"].wait()
    m.start()


@fault("the agent crashes again and again", r"did not stop by itself", "SpoolshipRestartsOften")
def _(m):
    for _ in range(5):
        m.processes["agent"].kill()
        m.processes["agent"].wait()
        m.start()
        time.sleep(1.2)


@fault("the agent stands still", r"(?!)", "SpoolshipDown")
def _(m):
    os.kill(m.processes["agent"].pid, 19)


@fault("the state directory is in memory", r"/var/lib/spoolship is on tmpfs", quiet="all works until the machine stops; `check` and `status` say so")
def _(m):
    # As it is on all machines of these trials.
    m.stop()
    m.start()


@fault("another program has the stats port", r"9464", "SpoolshipDown")
def _(m):
    m.stop()
    m.spawn("port", ["python3", "-c", "import socket,time; s=socket.socket(); s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1); "
                     "s.bind(('127.0.0.1',9464)); s.listen(); time.sleep(600)"])
    time.sleep(1)
    m.exit = m.exits()


@fault("a queue of a newer version", r"newer version", "SpoolshipDown")
def _(m):
    m.stop()
    with sqlite3.connect(m.path("/var/lib/spoolship/queue.sqlite")) as database:
        database.execute("PRAGMA user_version = 99")
    m.sh("chown -R spoolship:spoolship /var/lib/spoolship")
    m.exit = m.exits()


# --- What the unit and the machine give the agent -----------------------------------------------------------------------

@fault("too few file descriptors to start", r"Too many open files \(raise LimitNOFILE= of the unit", "SpoolshipDown")
def _(m):
    m.stop()
    m.limit_files(14)
    m.exit = m.exits()


@fault("too few file descriptors for the files of the spool", r"files are held open at most.*raise LimitNOFILE",
       quiet="everything is read, with fewer files open; `status` says so")
def _(m):
    m.stop()
    m.limit_files(128)
    m.start()
    m.judge()
    m.sell()


# As many inotify instances as the user may have; a process can have more files open than that on every kernel with its own settings.
HOG = """import ctypes, resource, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
library = ctypes.CDLL(None)
while library.inotify_init1(0) >= 0:
    pass
print("all", flush=True)
time.sleep(600)
"""


@fault("other programs of the agent's user have all instances of inotify", r"raise fs\.inotify\.max_user_instances",
       quiet="directories are polled, and everything is read a little later; `status` and the log say so", apart=True)
def _(m):
    m.stop()
    # The kernel counts by user, so nobody else's limit is touched, nor the machine's setting.
    m.spawn("hog", ["chroot", m.tree, "setpriv", "--reuid", "spoolship", "--regid", "spoolship", "--clear-groups", "/usr/bin/python3", "-c", HOG])
    m.after = lambda: m.end("hog")
    m.until(20, "the instances", lambda: "all" in open(f"{m.work}/hog.log").read())
    m.start()
    m.judge()
    m.sell()


@fault("the unit's user does not exist", r"runs the agent as user nobody-here, who does not exist", "SpoolshipDown", booted=True)
def _(m):
    m.stop()
    m.unit("User=nobody-here")
    m.exit = m.exits()


@fault("files to be read where the unit's sandbox hides them", r"ProtectHome=read-only",
       quiet="`check` says so before the start, `status` afterwards", booted=True)
def _(m):
    m.sh("mkdir -p /home/web/logs; echo '{}' >/home/web/logs/access.log; chmod 755 /home /home/web /home/web/logs")
    m.after = lambda: m.sh("rm -rf /home/web")
    restarted(m, '[apps.web]\nread = ["/home/web/logs/*.log"]\n')


@fault("the agent gets no CPU time", r"the agent itself waited \d+ s for the CPU", quiet="it sends again as soon as it gets some", apart=True)
def _(m):
    # One failure, which stays to be seen after the agent has got its CPU again.
    configured(m, lambda base: base.replace('intervals = ["500ms"]', 'intervals = ["1h"]'))
    group = CPUGroup()
    m.after = group.remove
    m.before_stop = lambda: group.allow(None)
    group.add(m.processes["agent"].pid)
    # How far it comes with so little is chance: a batch may still arrive, and then the next one is tried.
    for start in range(0, 100, 20):
        group.allow(0.002)
        m.sell(start=start)
        time.sleep(12)
        group.allow(None)
        if m.until(5, None, lambda: "waited" in m.spoolship("status")):
            break


class CPUGroup:
    """A control group whose processes get a share of one CPU."""

    PERIOD = 500_000

    def __init__(self):
        # Version 1 of the kernel's control groups has a tree for the CPU.
        self.is_old = os.path.isdir("/sys/fs/cgroup/cpu")
        home = "/sys/fs/cgroup/cpu" if self.is_old else "/sys/fs/cgroup"
        self.path = f"{home}/spoolship-faults-{os.getpid()}"
        os.makedirs(self.path, exist_ok=True)

    def write(self, file, text):
        with open(f"{self.path}/{file}", "w") as out:
            out.write(text)

    def add(self, process):
        self.write("cgroup.procs", str(process))

    def allow(self, share):
        """Allows this share of a CPU; all of it for none."""
        quota = None if share is None else int(share * self.PERIOD)
        if self.is_old:
            self.write("cpu.cfs_period_us", str(self.PERIOD))
            self.write("cpu.cfs_quota_us", str(quota or -1))
        else:
            self.write("cpu.max", f"{quota or 'max'} {self.PERIOD}")

    def remove(self):
        try:
            os.rmdir(self.path)
        except OSError:
            # A process that has not ended yet.
            time.sleep(1)
            os.rmdir(self.path)


# --- Destinations --------------------------------------------------------------------------------------------------------

@fault("the destination does not listen", r"[Cc]onnection refused|[Cc]ould not connect|[Ff]ailed to connect", "SpoolshipDestinationFailing",
       "SpoolshipNothingAcknowledged")
def _(m):
    m.end("receiver")
    m.sell()


@fault("the destination's name is unknown", r"cannot resolve collector", "SpoolshipDestinationFailing")
def _(m):
    configured(m, lambda base: base.replace("127.0.0.1:8443", "collector.invalid"))
    m.sell()


def listener(machine, then):
    """A program that listens at the receiver's port, and what it does then, in Python; `s` is its socket."""
    machine.end("receiver")
    machine.spawn("receiver", ["python3", "-c", "import socket,time; s=socket.socket(); "
                               "s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1); s.bind(('127.0.0.1',8443)); " + then])
    time.sleep(1)


@fault("the destination drops requests for connections", r"nothing answers the request for a connection", "SpoolshipDestinationFailing")
def _(m):
    # The kernel drops what a full queue of connections has no room for, as a firewall does.
    listener(m, "s.listen(0); c=[socket.socket() for _ in range(3)]; [x.setblocking(False) or x.connect_ex(('127.0.0.1',8443)) for x in c]; "
                "time.sleep(600)")
    m.sell()


@fault("the destination's port does not speak TLS", r"the handshake was acknowledged and not answered", "SpoolshipDestinationFailing")
def _(m):
    listener(m, "s.listen(9); c=[]\nwhile True: c.append(s.accept())")
    m.sell()


@fault("one of three destinations does not listen", r"1 of 3 destinations failing: main", "SpoolshipDestinationFailing")
def _(m):
    with_more(m, "".join(f'[[destination]]\nname = "{name}"\ntype = "stdout"\n' for name in ("copy", "other")))
    m.end("receiver")
    m.sell()


@fault("the destination takes the connection and never answers", r"its program did not answer", "SpoolshipDestinationFailing")
def _(m):
    m.receive("--delay", "60s")
    m.sell()


@fault("401: the token is wrong", r"401.*token|credentials are missing or wrong", "SpoolshipDestinationHeld", "SpoolshipNotReady")
def _(m):
    m.receive("--fail", "401")
    m.sell()


@fault("403: the token may not write there", r"403", "SpoolshipDestinationHeld", "SpoolshipNotReady")
def _(m):
    m.receive("--fail", "403")
    m.sell()


@fault("404: the address is wrong", r"404.*address|address.*404|404", "SpoolshipDestinationHeld", "SpoolshipNotReady")
def _(m):
    m.receive("--fail", "404")
    m.sell()


@fault("a redirect", r"30[1278]|redirect", "SpoolshipDestinationHeld", "SpoolshipNotReady")
def _(m):
    m.receive("--fail", "302")
    m.sell()


@fault("500 to everything", r"500", "SpoolshipDestinationFailing", "SpoolshipNothingAcknowledged")
def _(m):
    m.receive("--fail", "500")
    m.sell()


@fault("429 with Retry-After: an hour", r"429|asked to wait", "SpoolshipNothingAcknowledged")
def _(m):
    m.receive("--fail", "429", "--retry-after", "3600")
    m.sell()


@fault("400 to everything: another format is wanted", r"400", "SpoolshipDestinationHeld", "SpoolshipNotReady")
def _(m):
    m.receive("--fail", "400")
    m.sell()


@fault("400 to one event of many", r"dead letter", "SpoolshipDeadLetters")
def _(m):
    m.sell(200)
    m.until(20, "the first events", lambda: "nothing waits" in m.spoolship("status"))
    m.receive("--marker", "poison")
    m.write(['{"name":"poison"}'])


@fault("413 to an event that is too large", r"413|too large|dead letter", "SpoolshipDeadLetters")
def _(m):
    m.sell(200)
    m.until(20, "the first events", lambda: "nothing waits" in m.spoolship("status"))
    m.receive("--largest-body", "1KiB")
    m.write(['{"name":"large","text":"%s"}' % os.urandom(4096).hex()])


def serve(machine, *, names="IP:127.0.0.1", host="127.0.0.1", days=90, wants=False, port=8444, page=b""):
    """A TLS server with a certificate of an authority of its own, trusted by the destination, that answers 200 with the page."""
    home = machine.path("/root/tls")
    machine.sh(f"""
        rm -rf /root/tls; mkdir -p /root/tls; cd /root/tls
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 365 -subj /CN=faults 2>/dev/null
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.csr -subj /CN=server 2>/dev/null
        printf 'subjectAltName={names}' >names
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} -extfile names -out server.pem 2>/dev/null
        install -m 644 ca.pem /etc/spoolship/ca.pem""")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{home}/server.pem", f"{home}/server.key")
    if wants:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(f"{home}/ca.pem")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            if page:
                self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        allow_reuse_address = True

        def handle_error(self, *_):
            pass

    server = Server((host, port), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    machine.after = lambda: (server.shutdown(), server.server_close())
    machine.configure(BASE.replace(":8443", f":{port}"))


@fault("the server's certificate is of an unknown authority", r"unknown CA|certificate.*(verif|trust|issuer)", "SpoolshipDestinationFailing")
def _(m):
    serve(m)
    m.sh("install -m 644 /root/receiver/ca.pem /etc/spoolship/ca.pem")
    m.reload()
    m.sell()


@fault("the server's certificate is of another name", r"name|host", "SpoolshipDestinationFailing")
def _(m):
    serve(m, names="DNS:other.example")
    m.reload()
    m.sell()


@fault("the server's certificate has ended", r"expired", "SpoolshipDestinationFailing")
def _(m):
    serve(m, days=-1)
    m.reload()
    m.sell()


@fault("the server's certificate ends in five days", r"(?!)", "SpoolshipCertificateExpires")
def _(m):
    serve(m, days=5)
    m.reload()
    m.sell()


@fault("the server wants a client certificate", r"requires a client certificate and got none", "SpoolshipDestinationFailing")
def _(m):
    # Sometimes the end of the connection overtakes the server's alert: tries go on until one names the cause.
    serve(m, wants=True)
    m.configure(BASE.replace(":8443", ":8444").replace('interval = "1h"', 'interval = "1s"'))
    m.reload()
    m.sell()


# A router whose other side has a smaller MTU, and that does not say so: it sends what comes for 10.64.0.2 back to 10.64.0.1 as from
# there, and drops large packets. With both addresses exchanged, checksums stay right.
ROUTER = """import fcntl, os, struct
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH", b"path", 0x1001))
print("path", flush=True)
while True:
    packet = os.read(tun, 65536)
    if len(packet) <= 1300 and packet[0] >> 4 == 4:
        os.write(tun, packet[:12] + packet[16:20] + packet[12:16] + packet[20:])
"""


@fault("a router drops large packets, and does not say so", r"MTU", "SpoolshipDestinationFailing", apart=True)
def _(m):
    m.spawn("router", ["python3", "-c", ROUTER])
    m.until(10, "the router", lambda: "path" in m.run("ip", "link"))
    m.run("ip", "addr", "add", "10.64.0.1/24", "dev", "path")
    m.run("ip", "link", "set", "path", "up", "mtu", "1500")
    serve(m, names="IP:10.64.0.2", host="10.64.0.1")
    end = m.after
    m.after = lambda: (end(), m.end("router"))
    m.configure(BASE.replace("127.0.0.1:8443", "10.64.0.2:8444"))
    m.reload()
    # Larger than a packet, and compression does not help.
    m.write('{"name":"Sold","text":"%s"}' % os.urandom(2000).hex() for _ in range(10))


@fault("the file of the certificate authority becomes garbage", r"ca\.pem", "SpoolshipRestartWouldFail")
def _(m):
    m.sh("echo garbage >/etc/spoolship/ca.pem")


@fault("a login page answers instead of the receiver", r"web page", "SpoolshipDestinationHeld", "SpoolshipNotReady")
def _(m):
    serve(m, page=b"<!DOCTYPE html><html><body>Please log in</body></html>")
    m.reload()
    m.sell()


@fault("the name server does not answer", r"resolve|name server|resolving", "SpoolshipDestinationFailing")
def _(m):
    m.spawn("dns", ["python3", "-c", "import socket,time; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1',53)); "
                    "time.sleep(600)"])
    configured(m, lambda base: base.replace("127.0.0.1:8443", "collector.example.com"))
    m.sell()


@fault("the library of Kafka is not installed", r"librdkafka", "SpoolshipReloadFailed")
def _(m):
    # Where this machine has it, the copy loses it: no other fault wants it.
    m.sh("rm -f /usr/lib/*-linux-gnu/librdkafka.so.1*")
    with_more(m, '[[destination]]\nname = "stream"\ntype = "kafka"\n[destination.kafka]\nbrokers = ["127.0.0.1:9092"]\ntopic = "events"\n')


@fault("the new token file is empty", r"token.*(empty|not used)|empty.*secret|changed file not used", "SpoolshipRestartWouldFail")
def _(m):
    m.sh("echo old >/etc/spoolship/token; chmod 644 /etc/spoolship/token")
    configured(m, lambda base: in_destination(base, 'token = "file:/etc/spoolship/token"'))
    m.sell()
    m.until(20, "delivery", lambda: "acknowledged" in m.spoolship("status"))
    m.sh(": >/etc/spoolship/token")
    for number in range(4):
        time.sleep(1.2)
        m.sell(1, 100 + number)


# --- Switched off --------------------------------------------------------------------------------------------------------

@fault("a pause that was forgotten", r"paused by deploy", "SpoolshipSwitchedOff", "SpoolshipNothingAcknowledged")
def _(m):
    m.spoolship("pause", "--token", "deploy")
    m.sell()


@fault("network off that was forgotten", r"network is switched off", "SpoolshipSwitchedOff")
def _(m):
    m.spoolship("network", "off")
    m.sell()


@fault("collection that was disabled", r"collection is disabled", "SpoolshipSwitchedOff")
def _(m):
    m.spoolship("disable", "--yes")
    m.sell()


@fault("periodic dispatch that is off", r"only by command", "SpoolshipNothingAcknowledged")
def _(m):
    m.spoolship("interval", "off")
    m.sell()


# --- The spool -----------------------------------------------------------------------------------------------------------

def drop(machine, name, mode="640", text='{"name":"Hidden"}', app="shop"):
    machine.sh(f"""cd /var/spool/spoolship/{app}; printf '%s\\n' '{text}' >.x.tmp
        setfacl -b .x.tmp 2>/dev/null || true; chown shop:shop .x.tmp; chmod {mode} .x.tmp; mv .x.tmp {name}""")


@fault("a file that the agent may not read", r"hidden\.json", "SpoolshipFilesRefused")
def _(m):
    drop(m, "hidden.json", "600")


@fault("a symbolic link in the spool", r"link\.jsonl", "SpoolshipFilesRefused")
def _(m):
    m.sh("ln -s /etc/passwd /var/spool/spoolship/shop/link.jsonl")


@fault("a FIFO in the spool", r"pipe\.jsonl", "SpoolshipFilesRefused")
def _(m):
    m.sh("mkfifo /var/spool/spoolship/shop/pipe.jsonl")


@fault("a file whose name has another ending", r"events\.txt", quiet="the agent cannot know whether it is meant for it")
def _(m):
    drop(m, "events.txt")


@fault("an app's directory that the agent may not enter", r"shop", "SpoolshipFilesRefused")
def _(m):
    m.stop()
    m.sh("setfacl -b /var/spool/spoolship/shop 2>/dev/null; chown shop:shop /var/spool/spoolship/shop; chmod 700 /var/spool/spoolship/shop")
    m.start()


def elsewhere(machine):
    """A spool that can be removed: the packaged one is a mount here."""
    machine.stop()
    machine.sh("mkdir -m 755 -p /srv/spool/shop; chown -R spoolship:spoolship /srv/spool")
    machine.writable("/srv/spool")
    machine.configure(BASE + '[spool]\ndirectory = "/srv/spool"\n')
    machine.start()
    machine.after = lambda: machine.sh("umount /srv/spool 2>/dev/null; rm -rf /srv/spool /srv/old")


@fault("the spool's directory was removed", r"spool.*(is gone|is not the directory that is read)", "SpoolshipNotReady")
def _(m):
    elsewhere(m)
    m.sh("rm -rf /srv/spool")


@fault("the spool's directory was renamed, and made again", r"is not the directory that is read", "SpoolshipNotReady")
def _(m):
    elsewhere(m)
    m.sh("mv /srv/spool /srv/old; mkdir -m 1777 /srv/spool")


@fault("a file system was mounted over the spool", r"is not the directory that is read", "SpoolshipNotReady")
def _(m):
    elsewhere(m)
    m.sh("mount -t tmpfs tmpfs /srv/spool")


@fault("the spool's directory is closed to the agent", r"/srv/spool cannot be read: Permission denied", "SpoolshipNotReady")
def _(m):
    elsewhere(m)
    m.sh("chown root:root /srv/spool; chmod 700 /srv/spool")


@fault("a file to be read where it lies, which the agent may not read", r"access\.log", "SpoolshipFilesRefused")
def _(m):
    m.sh("mkdir -p /var/log/web; echo '{}' >/var/log/web/access.log; chmod 600 /var/log/web/access.log")
    restarted(m, '[apps.web]\nread = ["/var/log/web/*.log"]\n')


@fault("the journal is to be read, and the agent may not", r"systemd-journal|journal", "SpoolshipJournalNotRead")
def _(m):
    restarted(m, "[apps.system]\njournal = true\n")


def silent(m):
    """A file system at /srv/remote that never answers: FUSE without anybody who does, for as long as the program holds the connection."""
    m.sh("""mkdir -p /srv/remote; [ -e /dev/fuse ] || mknod /dev/fuse c 10 229
        echo 'import ctypes, os, time
connection = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={connection},rootmode=40000,user_id=0,group_id=0,allow_other"
ctypes.CDLL(None).mount(b"silent", b"/srv/remote", b"fuse", 0, options.encode())
time.sleep(3600)' >/srv/silent.py
        /usr/bin/python3 /srv/silent.py >/dev/null 2>&1 & echo $! >/srv/silent.pid""")
    m.until(10, "the mount", lambda: "/srv/remote" in m.sh("cat /proc/mounts"))
    m.before_stop = lambda: m.sh("kill $(cat /srv/silent.pid); umount -l /srv/remote")


@fault("the file system of a log directory hangs", r"/srv/remote: its file system does not answer", "SpoolshipNotReady")
def _(m):
    silent(m)
    restarted(m, '[apps.remote]\nread = ["/srv/remote/*.log"]\n')


@fault("the file system of the spool hangs", r"/srv/remote: its file system does not answer", "SpoolshipNotReady")
def _(m):
    m.stop()
    silent(m)
    m.configure(BASE + '[spool]\ndirectory = "/srv/remote"\n')
    m.start()


@fault("the file system of a journal hangs", r"the journal of remote loop.*does that file system hang", "SpoolshipNotReady", "SpoolshipJournalNotRead")
def _(m):
    silent(m)
    restarted(m, '[apps.remote]\njournal.directory = "/srv/remote"\n')


@fault("a file that was removed while the agent was stopped, before it was read", r"till\.jsonl (are|is) lost|vanished while the agent was stopped",
       "SpoolshipSpoolBytesGivenUp")
def _(m):
    m.sell()
    # The end of the last line is missing, and its writer has the file open: the agent waits for it.
    m.spawn("writer", ["sh", "-c", 'exec >>"$0"; printf %s "{\\"name\\":\\"Sold\\","; sleep 600',
                       m.path("/var/spool/spoolship/shop/till.jsonl")])
    m.until(20, "the half line to be seen", lambda: "unread, oldest" in m.spoolship("status"))
    m.stop()
    m.end("writer")
    m.sh("rm /var/spool/spoolship/shop/till.jsonl")
    m.start()


@fault("limits that cut what an app writes", r"cut", quiet="the limits were set to cut; `status` and the log say what they cut")
def _(m):
    with_more(m, "[limits]\nproperties = 2\n")
    m.write('{"name":"Sold","properties":{"a":1,"b":2,"c":%d}}' % number for number in range(5))


@fault("more bad lines than quarantine keeps", r"purged|given up|removed", "SpoolshipQuarantine")
def _(m):
    with_more(m, "[spool]\nquarantine_max_size = \"64KiB\"\n")
    m.write("this is not JSON: " + os.urandom(100).hex() for _ in range(3000))


@fault("lines that are no events", r"quarantine", "SpoolshipQuarantine")
def _(m):
    m.write(["this is not JSON", "nor this"])


@fault("a line that is longer than an event may be", r"quarantine", "SpoolshipQuarantine")
def _(m):
    m.write(['{"name":"long","text":"%s"}' % ("x" * (2 << 20))])


@fault("a time that is a week ahead", r"quarantine", "SpoolshipQuarantine")
def _(m):
    m.write(['{"name":"early","timestamp":"2999-01-01T00:00:00Z"}'])


@fault("events that are older than the queue keeps them", r"expired", "SpoolshipEventsExpired")
def _(m):
    m.write(['{"name":"old","timestamp":"2020-01-01T00:00:00Z"}'])


@fault("too many names of events", r"refused", "SpoolshipEventsRefused")
def _(m):
    with_more(m, "[limits]\nevent_names = 2\n")
    m.write('{"name":"Number %d"}' % number for number in range(10))


@fault("a file that was truncated before it was read", r"truncated", "SpoolshipSpoolBytesGivenUp")
def _(m):
    m.spoolship("pause")
    with_more(m, '[queue]\nmax_size = "64KiB"\ncompression = "none"\n')
    m.sell(4000)
    m.until(30, "a full queue", lambda: "reading waits" in m.spoolship("status"))
    m.sh(": >/var/spool/spoolship/shop/till.jsonl")
    m.sell(5)
    m.spoolship("resume")


# --- The queue and its disk ----------------------------------------------------------------------------------------------

SMALL = '[queue]\nmax_size = "64KiB"\ncompression = "none"\n'


@fault("the queue is at its cap, and reading waits", r"reading waits", "SpoolshipReadingWaits", "SpoolshipQueueNearlyFull", "SpoolshipSpoolLag")
def _(m):
    m.spoolship("pause")
    with_more(m, SMALL)
    m.sell(4000)


@fault("the queue is at its cap, and events are evicted", r"evict", "SpoolshipEventsEvicted", "SpoolshipQueueNearlyFull")
def _(m):
    m.spoolship("pause")
    with_more(m, SMALL + '[spool]\nwhen_full = "evict"\n')
    m.sell(4000)


@fault("the disk of the state directory is full", r"(disk|database).*full|No space|no room", "SpoolshipPersistenceFailing", "SpoolshipNotReady")
def _(m):
    m.spoolship("pause")
    free = os.statvfs(m.path("/var/lib/spoolship"))
    used = (free.f_blocks - free.f_bfree) * free.f_frsize
    m.run("mount", "-o", f"remount,size={used + 65536}", m.path("/var/lib/spoolship"))
    m.sh("dd if=/dev/zero of=/var/lib/spoolship/filler bs=4k 2>/dev/null || true")
    m.write('{"name":"Sold","text":"%s"}' % os.urandom(300).hex() for _ in range(3000))


@fault("the state directory's file system is read-only, at the start", r"[Rr]ead-only", "SpoolshipDown")
def _(m):
    m.stop()
    m.run("mount", "-o", "remount,ro", m.path("/var/lib/spoolship"))
    m.exit = m.exits()


@fault("the disk of the state directory hangs", r"does (the disk of the state directory|that file system) hang", "SpoolshipNotReady")
def _(m):
    m.stop()
    # A file system of its own, which can be frozen. A booted machine's /dev has no loop devices.
    m.sh("dd if=/dev/zero of=/srv/state.img bs=1M count=64 2>/dev/null; mkfs.ext4 -q /srv/state.img; mkdir -p /srv/state")
    loop = m.run("losetup", "--find", "--show", m.path("/srv/state.img")).strip()
    m.sh(f"""[ -e {loop} ] || mknod {loop} b 7 {loop.removeprefix("/dev/loop")}
        mount {loop} /srv/state; chown spoolship:spoolship /srv/state; chmod 700 /srv/state""")
    m.writable("/srv/state")
    m.configure(BASE + '[agent]\nstate_directory = "/srv/state"\n')
    m.start()

    def after():
        m.sh("umount /srv/state; rm -rf /srv/state /srv/state.img")
        m.run("losetup", "--detach", loop)

    m.after = after
    m.sh("fsfreeze -f /srv/state")
    m.before_stop = lambda: m.sh("fsfreeze -u /srv/state")
    m.sell()


@fault("the queue's file belongs to root after it was restored", r"queue\.sqlite.*(root|chown|owner|user)", "SpoolshipDown")
def _(m):
    m.stop()
    m.sh("chown root:root /var/lib/spoolship/queue.sqlite; chmod 600 /var/lib/spoolship/queue.sqlite")
    m.exit = m.exits()


@fault("the queue's file is damaged", r"damaged|corrupt|salvage", "SpoolshipEventsLost")
def _(m):
    m.spoolship("pause")
    m.sell(500)
    m.until(20, "the queue", lambda: "waiting" in m.spoolship("status"))
    m.stop()
    with open(m.path("/var/lib/spoolship/queue.sqlite"), "r+b") as file:
        file.seek(100)
        file.write(b"\xa5" * 4000)
    m.start()


@fault("the queue's file was removed while the agent runs", r"removed or replaced", "SpoolshipPersistenceFailing", "SpoolshipNotReady")
def _(m):
    m.sh("rm /var/lib/spoolship/queue.sqlite*")
    m.sell()


@fault("another program has locked the queue's file", r"lock", "SpoolshipPersistenceFailing")
def _(m):
    m.spawn("locker", ["python3", "-c", "import sqlite3,sys,time; d=sqlite3.connect(sys.argv[1]); d.execute('BEGIN IMMEDIATE'); "
                       "time.sleep(600)", m.path("/var/lib/spoolship/queue.sqlite")])
    time.sleep(1)
    m.sell()


@fault("the ledger does not balance", r"does not balance", "SpoolshipLedgerUnbalanced")
def _(m):
    m.sell()
    m.until(20, "delivery", lambda: "nothing waits" in m.spoolship("status") and "acknowledged" in m.spoolship("status"))
    m.stop()
    with sqlite3.connect(m.path("/var/lib/spoolship/queue.sqlite")) as database:
        # In both copies, as a mistake of ours would: one alone is damage, which is salvaged.
        database.execute("UPDATE ledger SET accepted = accepted + 5 WHERE accepted > 0 AND destination > 0")
        lines = [line.split(" ") for line in database.execute("SELECT copy FROM total").fetchone()[0].splitlines()]
        for line in lines:
            line[2] = str(int(line[2]) + 5 * (int(line[2]) > 0))
        database.execute("UPDATE total SET copy = ?", ["".join(" ".join(line) + "\n" for line in lines)])
    m.sh("chown -R spoolship:spoolship /var/lib/spoolship")
    m.start()


@fault("writers cannot be told what is accepted", r"\.spoolship", "SpoolshipPersistenceFailing")
def _(m):
    m.sh("rm -rf /var/spool/spoolship/.spoolship; echo in the way >/var/spool/spoolship/.spoolship")
    m.spoolship("disable", "--yes")


@fault("an edited configuration that was not reloaded", r"reload", quiet="the old settings are in force, as they were; `status` says so")
def _(m):
    m.configure(BASE + "# edited\n[queue]\nmax_size = \"100MiB\"\n")


# --- Containers ----------------------------------------------------------------------------------------------------------

def container(machine, more="", document=None):
    key = machine.sh("rm -f /root/key.pem; spoolship container keygen /root/key.pem").split()[-1]
    home = machine.path("/root/web")
    os.makedirs(home, exist_ok=True)
    machine.sh("rm -f /root/web/GTM-1")
    if document:
        with open(f"{home}/GTM-1", "w") as file:
            file.write(document)
    machine.spawn("web", ["python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", home, "8081"])
    time.sleep(1)
    with_more(machine, f"""[[container]]
id = "GTM-1"
url = "http://127.0.0.1:8081/GTM-1"
public_key = "{key}"
fresh_for = "1m"
refresh_interval = "1h"
{more}""")


@fault("a container that is not signed", r"not signed|unsigned|signature", "SpoolshipContainerRefused", "SpoolshipContainerEmpty")
def _(m):
    container(m, document='{"id": "GTM-1", "version": 1}')


@fault("a container that no server has", r"GTM-1.*(404|server_error)|404", "SpoolshipContainerEmpty")
def _(m):
    container(m)


@fault("a required container without a document", r"required container|GTM-1", "SpoolshipContainerAwaited", "SpoolshipNotReady")
def _(m):
    container(m, "required = true\n")
    m.sell()
