"""What a hostile user does to the spool and to the ports, each as a function of the user's own process.

Each attack gets a `Ground`: where it may write, where the secrets are, the stats port, and a seeded random source. It
runs as an unprivileged user, is bounded in what it writes, and may fail: an attack that the kernel refuses is over.
"""
import ctypes
import fcntl
import gzip
import mmap
import os
import random
import socket
import struct
import time
from dataclasses import dataclass

LIBC = ctypes.CDLL(None, use_errno=True)
FAR_TIMES = [9_300_000_000, 10_413_792_000, -11_676_096_000, 2**33, -1, 0, 15_032_385_535]
# What the agent's names for claimed files begin with; 16 hexadecimal digits and the file's own name follow.
CLAIM = ".spoolship."
# How long, in seconds, a user sits on such names: longer than an honest event may take, and than the agent may be not ready.
MOST_HOLD = 15
EVENT = b'{"name":"hostile","properties":{"n":1}}\n'


@dataclass
class Ground:
    box: str
    app: str
    secrets: list
    port: int
    random: random.Random

    def place(self) -> str:
        return self.random.choice([self.box, self.app])

    def name(self, suffix: str) -> str:
        return f"h{self.random.getrandbits(40):x}{suffix}"

    def path(self, suffix: str, place: str = "") -> str:
        return os.path.join(place or self.place(), self.name(suffix))


def write(path: str, data: bytes) -> str:
    with open(path, "wb") as file:
        # By its name the agent may have it by then.
        os.fchmod(file.fileno(), 0o664)
        file.write(data)
    return path


def far_times(ground: Ground) -> None:
    """Files dated before and beyond what nanoseconds in 64 bits can hold."""
    for suffix in (".json", ".jsonl", ".log", ".jsonl.gz"):
        path = write(ground.path(suffix), EVENT)
        when = ground.random.choice(FAR_TIMES)
        os.utime(path, (when, when))
        if ground.random.random() < 0.3:
            os.chmod(path, 0)
    link = ground.path(".json")
    os.symlink("/nowhere", link)
    os.utime(link, (10**10, 10**10), follow_symlinks=False)


def one_byte_lines(ground: Ground) -> None:
    write(ground.path(".jsonl"), b"x\n" * ground.random.choice([20_000, 200_000, 600_000]))


def pretty_printed(ground: Ground) -> None:
    """An everyday mistake: pretty-printed JSON in an append file."""
    write(ground.path(".log"), b'{\n  "name": "x",\n  "properties": {\n    "a": 1\n  }\n}\n' * 40_000)


def long_paths(ground: Ground) -> None:
    """Bad lines under a path of nearly 4 KB."""
    path = ground.app
    for _ in range(14):
        path = os.path.join(path, "d" * 200 + f"{ground.random.getrandbits(16)}")
        os.mkdir(path, 0o2770)
    for _ in range(40):
        write(os.path.join(path, ground.name(".jsonl")), b"x\n" * 2_000)


def holes(ground: Ground) -> None:
    """Sparse files of terabytes, some of which are deleted while they are read."""
    for suffix in (".jsonl", ".log", ".json"):
        path = ground.path(suffix)
        with open(path, "wb") as file:
            os.fchmod(file.fileno(), 0o664)
            for exponent in (63, 60, 50, 44, 43, 40):
                try:
                    os.ftruncate(file.fileno(), 2**exponent - 1 - 4096 * 8)
                    break
                except OSError:
                    continue
        if ground.random.random() < 0.5:
            time.sleep(0.5)
            os.unlink(path)


def links(ground: Ground) -> None:
    """Links to what only the agent or root may read, and renames that swap them with files."""
    for secret in ground.secrets:
        os.symlink(secret, ground.path(".jsonl"))
        os.symlink(secret, ground.path(".json"))
        os.symlink(os.path.dirname(secret), ground.path(""))
        try:
            os.link(secret, ground.path(".jsonl"))
        except OSError:
            pass
    place = ground.app
    file, link = os.path.join(place, "swap.json"), os.path.join(place, ".swap.link")
    for _ in range(200):
        write(os.path.join(place, ".swap.tmp"), EVENT)
        os.rename(os.path.join(place, ".swap.tmp"), file)
        try:
            os.symlink(ground.random.choice(ground.secrets), link)
            os.rename(link, file)
        except OSError:
            pass


def specials(ground: Ground) -> None:
    os.mkfifo(ground.path(".json"), 0o666)
    os.mkfifo(ground.path(".jsonl"), 0o666)
    with socket.socket(socket.AF_UNIX) as unix:
        try:
            unix.bind(ground.path(".jsonl", "/".join([ground.app])))
        except OSError:
            pass
    os.mkdir(ground.path(".jsonl"))
    os.mkdir(ground.path(".json"), 0)


def names(ground: Ground) -> None:
    place = ground.place().encode()
    for name in (b"\xff\xfe.jsonl", b"a\nb.jsonl", b"\x1b[2J\x1b]0;x\x07.json", b"n" * 249 + b".jsonl", b".jsonl", b"..jsonl",
                 b" .json", "\u202egnp.json".encode(), b"%s%n.jsonl", b"..json", b"-rf.jsonl", b"\x01.log"):
        name = b"%x" % ground.random.getrandbits(20) + name if len(name) < 200 else name
        with open(os.path.join(place, name), "wb") as file:
            file.write(EVENT)


def modes(ground: Ground) -> None:
    for mode in (0, 0o200, 0o600, 0o4777, 0o640):
        os.chmod(write(ground.path(".jsonl"), EVENT), mode)
    directory = os.path.join(ground.app, ground.name(""))
    os.mkdir(directory)
    write(os.path.join(directory, "x.jsonl"), EVENT)
    for mode in (0, 0o2770, 0o100, 0o2770, 0o400):
        os.chmod(directory, mode)
        time.sleep(0.05)


def locks_and_leases(ground: Ground) -> None:
    """Locks and file leases of the user's own, held while the agent wants the file."""
    held = []
    for suffix in (".json", ".jsonl", ".log"):
        path = write(ground.path(suffix), EVENT * 10)
        descriptor = os.open(path, os.O_RDWR)
        held.append(descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            pass
    time.sleep(2)
    for descriptor in held:
        os.close(descriptor)


def shrinking(ground: Ground) -> None:
    """A file that is cut, filled, and renamed while it is read."""
    path = ground.path(".jsonl", ground.app)
    with open(path, "wb", buffering=0) as file:
        os.fchmod(file.fileno(), 0o664)
        for turn in range(300):
            file.write(EVENT * 100)
            if turn % 7 == 0:
                os.ftruncate(file.fileno(), ground.random.randrange(4000))
            if turn % 31 == 0:
                os.rename(path, path + ".1")
                os.rename(path + ".1", path)


def bombs(ground: Ground) -> None:
    """Archives that unpack to gigabytes of nothing, are cut, or are none."""
    bomb = gzip.compress(b"\n" * 8_000_000, 9)
    write(ground.path(".jsonl.gz"), bomb * 30)
    write(ground.path(".jsonl.gz"), bomb[: len(bomb) // 2])
    write(ground.path(".jsonl.gz"), b"\x1f\x8b" + os.urandom(2000))
    write(ground.path(".jsonl.zst"), b"\x28\xb5\x2f\xfd" + os.urandom(2000))
    write(ground.path(".jsonl.gz"), gzip.compress(b""))


def strange_events(ground: Ground) -> None:
    lines = [
        b'{"name":"y","timestamp":"0000-01-01T00:00:00Z"}', b'{"name":"y","timestamp":"9999-12-31T23:59:60Z"}',
        b'{"name":"y","timestamp":1e308}', b'{"name":"y","timestamp":-9223372036854775808}',
        b'{"type":"start_session","timestamp":"0000-01-01T00:00:00Z"}', b'{"name":"y","timestamp":18446744073709551616}',
        b"[" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b'{"name":"' + b"z" * 2_000_000 + b'"}', b"\x00" * 1000,
        b'{"name":"y","pid":99999999999999999999}', b'{"name":"y","name":"z","properties":{"a":1,"a":2}}',
        b'{"name":"\\ud800"}', b'\xef\xbb\xbf{"name":"bom"}', b'{"name":"y","session_id":{"a":[]},"id":7,"country":"ZZZZ"}',
    ]
    write(ground.path(".jsonl"), b"\n".join(ground.random.sample(lines, len(lines))) + b"\n")
    write(ground.path(".json"), b"[" + b'{"name":"y"},[' + b"[" * 100_000)
    write(ground.path(".json"), ground.random.choice(lines))
    write(ground.path(".jsonl"), b"no line feed " * 300_000)


def many_names(ground: Ground) -> None:
    """Thousands of small files at once, in one directory, some of them gone at once."""
    place = ground.place()
    for _ in range(3_000):
        path = write(ground.path(ground.random.choice([".json", ".jsonl", ".log", ".txt"]), place), b"")
        if ground.random.random() < 0.3:
            os.unlink(path)


def many_directories(ground: Ground) -> None:
    top = os.path.join(ground.app, ground.name(""))
    os.mkdir(top, 0o2770)
    for index in range(400):
        directory = os.path.join(top, f"{index}")
        os.mkdir(directory, 0o2770)
        write(os.path.join(directory, "e.jsonl"), EVENT)
    os.rename(top, top + "-moved")


def flood(ground: Ground) -> None:
    """Honest-looking events, as fast as the disk takes them, in many files."""
    for _ in range(50):
        write(ground.path(".jsonl"), EVENT * 4_000)


def distinct_names(ground: Ground) -> None:
    write(ground.path(".jsonl"), b"".join(b'{"name":"n%x"}\n' % ground.random.getrandbits(60) for _ in range(5_000)))


def connections(ground: Ground) -> None:
    """Connections to the stats port that are opened and closed together."""
    held = []
    for _ in range(ground.random.choice([33, 64, 200])):
        client = socket.socket()
        client.settimeout(2)
        try:
            client.connect(("127.0.0.1", ground.port))
            held.append(client)
        except OSError:
            client.close()
    time.sleep(ground.random.random())
    for client in held:
        if ground.random.random() < 0.3:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()


def tricklers(ground: Ground) -> None:
    """Requests that come a byte at a time, and never end."""
    clients = []
    for _ in range(30):
        try:
            clients.append(socket.create_connection(("127.0.0.1", ground.port), timeout=2))
        except OSError:
            pass
    request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"a" * 200
    for index in range(8):
        for client in clients:
            try:
                client.send(request[index : index + 1])
            except OSError:
                pass
        time.sleep(0.5)
    for client in clients:
        client.close()


def bad_requests(ground: Ground) -> None:
    for request in (b"GET " + b"/a" * 40_000 + b" HTTP/1.1\r\n\r\n", b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                    b"\x16\x03\x01" + os.urandom(300), b"GET /%00/../../etc/passwd HTTP/1.1\r\nHost: evil\r\n\r\n",
                    b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 20_000, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"):
        try:
            with socket.create_connection(("127.0.0.1", ground.port), timeout=2) as client:
                client.sendall(request)
                client.settimeout(0.5)
                client.recv(4096)
        except OSError:
            pass


def claims(ground: Ground) -> None:
    """Names like the agent's own, and files that are swapped for others the moment they are claimed."""
    for _ in range(30):
        path = write(ground.path(".json", ground.app), EVENT)
        end = time.monotonic() + 0.02
        while time.monotonic() < end:
            try:
                hidden = [name for name in os.listdir(ground.app) if name.startswith(".")]
            except OSError:
                break
            for name in hidden:
                try:
                    os.unlink(os.path.join(ground.app, name))
                    os.symlink(ground.random.choice(ground.secrets), os.path.join(ground.app, name))
                except OSError:
                    pass
        if os.path.lexists(path) and ground.random.random() < 0.5:
            os.unlink(path)


def claim_names(ground: Ground) -> None:
    """Directories under the names that the agent would give next if it counted, for a file of an honest app and one of the user's own.

    The number that was given last is read from the link of a dropped file that is still open."""
    path = ground.path(".json", ground.app)
    with open(f"{path}.tmp", "wb") as file:
        os.fchmod(file.fileno(), 0o664)
        file.write(EVENT)
        file.flush()
        os.rename(f"{path}.tmp", path)
        end, name = time.monotonic() + 5, ""
        while not name.startswith(CLAIM) and time.monotonic() < end:
            name = os.path.basename(os.readlink(f"/proc/self/fd/{file.fileno()}"))
    if not name.startswith(CLAIM):
        return
    number, made = int(name[len(CLAIM):len(CLAIM) + 16], 16), []
    victims = [(ground.box, f"report-{app}.json") for app in range(3)] + [(ground.app, "mine.json")]
    for next_number in range(number + 1, number + 3_001):
        for place, victim in victims:
            made.append(f"{place}/{CLAIM}{next_number % 2**64:016x}.{victim}")
            os.mkdir(made[-1])
    write(f"{ground.app}/.mine", EVENT)
    os.rename(f"{ground.app}/.mine", f"{ground.app}/mine.json")
    time.sleep(MOST_HOLD)
    for directory in made:
        os.rmdir(directory)


def claim_like_files(ground: Ground) -> None:
    """Files under names like the agent's claims, good and bad ones: a listing finds them."""
    for _ in range(1_000):
        place = ground.place()
        write(f"{place}/{CLAIM}{ground.random.getrandbits(64):016x}.{ground.name('.json')}", ground.random.choice([EVENT, b"no event"]))
    # Another user's or the agent's own restart lists it; so does a directory that comes back.
    away = ground.path("", ground.app)
    os.mkdir(away, 0o2770)
    for _ in range(500):
        write(f"{away}/{CLAIM}{ground.random.getrandbits(64):016x}.x.jsonl", EVENT)
    os.rename(away, f"{away}-")


def closed_directories(ground: Ground) -> None:
    """A directory with closed ones in it that is renamed to and fro, in the drop box as well."""
    for place in (ground.app, ground.box):
        top = os.path.join(place, ground.name(""))
        os.mkdir(top, 0o2770)
        for index in range(10):
            os.mkdir(os.path.join(top, f"{index}"), 0)
        for turn in range(2_000):
            os.rename(*((top, top + "-") if turn % 2 == 0 else (top + "-", top)))


def zeros(ground: Ground) -> None:
    """A file that is made long first and filled through memory, in pieces that do not end with lines."""
    path = write(ground.path(".log"), b"\0" * 1_000_000)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        for piece in range(ground.random.randrange(2_000)):
            text = EVENT[: ground.random.randrange(1, len(EVENT))]
            start = piece * ground.random.choice([len(EVENT), 500])
            memory[start:start + len(text)] = text
        if ground.random.random() < 0.5:
            os.ftruncate(file.fileno(), ground.random.randrange(1_000_000))


def random_calls(ground: Ground) -> None:
    """Operations drawn from all that a user may do with entries of his own."""
    draw = ground.random
    names = [os.path.join(place, f"r{index}{suffix}") for place in (ground.app, ground.box) for index in range(3)
             for suffix in (".json", ".jsonl", ".jsonl.1", ".jsonl.gz", "")]
    held = []

    def fresh(name: str) -> None:
        # Without waiting for a lease of our own.
        held.append(os.open(name, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o664))

    def cut(name: str) -> None:
        fresh(name)
        os.ftruncate(held[-1], draw.choice([0, 1, 40, 4096, 1 << 40]))

    def hold(name: str) -> None:
        fresh(name)
        fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(held[-1], draw.choice([EVENT, EVENT[:9], b"\0" * 5000, b"\n"]))
        draw.choice([lambda: os.posix_fallocate(held[-1], draw.randrange(10_000), 4096),
                     lambda: fcntl.fcntl(held[-1], fcntl.F_SETLEASE, draw.choice([fcntl.F_RDLCK, fcntl.F_WRLCK])),
                     lambda: os.close(held.pop(draw.randrange(len(held))))])()

    for _ in range(3_000):
        one, other = draw.choice(names), draw.choice(names)
        try:
            draw.choice([
                lambda: hold(one), lambda: hold(one), lambda: os.rename(one, other),
                # RENAME_EXCHANGE
                lambda: LIBC.renameat2(-100, one.encode(), -100, other.encode(), 2), lambda: os.link(one, other),
                lambda: os.unlink(one), lambda: os.mkdir(one, 0o2770), lambda: os.rmdir(one),
                lambda: cut(one), lambda: os.chmod(one, draw.choice([0, 0o600, 0o664])),
                lambda: os.utime(one, (draw.choice(FAR_TIMES),) * 2), lambda: os.setxattr(one, "user.x", b"y"),
            ])()
        except OSError:
            pass
        while len(held) > 20:
            os.close(held.pop(0))
    for descriptor in held:
        os.close(descriptor)


ATTACKS = [far_times, one_byte_lines, pretty_printed, long_paths, holes, links, specials, names, modes, locks_and_leases, shrinking,
           bombs, strange_events, many_names, many_directories, flood, distinct_names, connections, tricklers, bad_requests, claims,
           claim_names, claim_like_files, closed_directories, zeros, random_calls]
