"""Operations drawn from all system calls that a user has on entries of his own, beside honest users, and the model that they are
compared with: each honest line arrives once, under its writer's name, whatever is drawn.

Three hostile users draw from `OPERATIONS`, in their app's directory and directories below it, in the drop box, and where a log of
theirs is read in place. Each operation has a random source of its own, made of the seed, the user and the operation's number: what
the kernel refuses changes nothing in what is drawn after it. In the drop box they use the honest users' names as well, rotated and
not, and what these have written last: a real user could only guess that.

Twelve honest users write and rotate in the twelve ways of `scripts/storm`, each in its directory, in the drop box beside the
hostile, and three of them where their log is read in place.
"""
import collections
import contextlib
import ctypes
import fcntl
import gzip
import json
import mmap
import os
import random
import shutil
import signal
import socket
import stat
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from attacks import EVENT, FAR_TIMES, LIBC
from house import HONEST, HOSTILE, IN_PLACE, USERS, House, become, event, interrupted, limited, report
from storm.writer import Rotating

WRITERS = len(Rotating.MODES)
# Those ways of rotating that reading in place follows: it reads no archives.
IN_PLACE_MODES = ["rename", "copytruncate", "chain"]
# How many bytes of what an honest user wrote the hostile ones know.
MOST_KNOWN = 64 << 10
# How many entries a hostile user's directory or the drop box has at most, a few bursts more or less; and how many files the agent may
# know beside these: 16,384 that are gone, while it compares files with them, and the archives of the honest.
MOST_ENTRIES, FILES = 5_000, 32_768
# How old an honest user's archive is when it is removed, and after how many rotations it looks.
MOST_AGE, ROTATIONS = 300, 50


# MARK: The honest

class Writer(Rotating):
    """Writes lines of the model to a file that it rotates in one way; in the drop box under a name that others want too."""

    def __init__(self, folder: str, mode: str, place: str, app: int, seed: int, known: str):
        super().__init__(folder, mode, f"{seed}-{app}-{place}")
        self.folder, self.place, self.known = folder, place, known
        # In the drop box some want one name: whoever comes later takes another.
        self.stem = ["svc%d" % app, "metrics", "app"][app % 3] if place == "box" else "f"
        self.turn, self.key = 0, f"app{app}-{place}"
        self.name = os.path.join(folder, f"{self.stem}.log")

    def line(self) -> bytes:
        self.count += 1
        text = event(f"{self.place}, {self.mode}", f"{self.key}-{self.count}", self.chance.random() < 0.05,
                     pad="x" * self.chance.choice([0, 10, 60, 200]))
        return text.encode() + b"\n"

    def open(self) -> int:
        """A file of one's own; where somebody else has the name, another one."""
        while self.file is None:
            try:
                file = os.open(self.name, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o660)
            except OSError:
                file = None
            if file is not None:
                status = os.fstat(file)
                # By another name, which somebody may have given it, it would be refused.
                if status.st_uid == os.geteuid() and stat.S_ISREG(status.st_mode):
                    self.file = file
                    break
                os.close(file)
            self.turn += 1
            self.name = os.path.join(self.folder, f"{self.stem}-{self.turn}-{self.key}.log" if self.turn > 3 else f"{self.stem}-{self.turn}.log")
        return self.file

    def write(self) -> None:
        if self.mode != "drop":
            return super().write()
        data = self.lines()
        hidden = os.path.join(self.folder, f".{self.key}-{self.count}")
        with open(hidden, "wb") as file:
            file.write(b"[" + b",".join(data.splitlines()) + b"]")
        os.rename(hidden, os.path.join(self.folder, f"{self.key}-{self.count}.json"))
        self.tell(data)

    def tell(self, data: bytes) -> None:
        """Lets the hostile users know what was written."""
        hidden = os.path.join(self.known, f".{self.key}")
        with open(hidden, "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(data[:MOST_KNOWN])
        os.rename(hidden, os.path.join(self.known, f"{self.stem}.{self.key}"))

    def rotate(self) -> None:
        if self.file is None:
            return
        self.rotations += 1
        if self.place == "box":
            # It may be open for writing only.
            with open(f"/proc/self/fd/{self.file}", "rb") as file:
                self.tell(file.read(MOST_KNOWN))
        try:
            getattr(self, self.mode)()
        except OSError:
            # In the drop box somebody else may have the name that it wants: the next rotation has another number.
            if self.place != "box":
                raise
            # Lines that it has written under a name that is not read, before it found that the right one is taken.
            with contextlib.suppress(OSError):
                os.rename(f"{self.name}.new", os.path.join(self.folder, f"{self.key}-{self.rotations}.log"))

        if self.place != "box" and self.rotations % ROTATIONS == 0:
            self.remove_archives()

    def remove_archives(self) -> None:
        """As logrotate's `rotate` does; the agent leaves an archive of what it has read where it is."""
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                if name.endswith(".gz") and status.st_uid == os.geteuid() and status.st_mtime < time.time() - MOST_AGE:
                    os.unlink(path)

    def pack(self, name: str) -> None:
        # In the drop box the name may be somebody else's, once the agent has removed the file that had it.
        try:
            status = os.lstat(name)
        except FileNotFoundError:
            return
        if status.st_uid == os.geteuid() and stat.S_ISREG(status.st_mode):
            super().pack(name)

    def touch(self) -> None:
        """What honest programs do beside writing."""
        if self.file is None:
            return
        self.chance.choice([
            lambda: fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda: fcntl.flock(self.file, fcntl.LOCK_UN),
            lambda: os.fchmod(self.file, self.chance.choice([0o640, 0o660])), lambda: os.utime(self.file),
            lambda: os.setxattr(self.file, "user.origin", b"model"), lambda: os.fsync(self.file),
            # FALLOC_FL_KEEP_SIZE
            lambda: LIBC.fallocate(self.file, 1, ctypes.c_long(0), ctypes.c_long(1 << 16)),
        ])()


def honest(work: str, app: int, seed: int, seconds: float) -> None:
    become(HONEST + app)
    until = time.monotonic() + seconds
    chance, known, mode = random.Random(f"{seed}-{app}"), f"{work}/known", Rotating.MODES[app]
    writers = [Writer(f"{work}/spool/app{app}", mode, "own", app, seed, known), Writer(f"{work}/spool/incoming", mode, "box", app, seed, known)]
    if mode in IN_PLACE_MODES:
        writers.append(Writer(f"{work}/logs/app{app}", mode, "in place", app, seed, known))
    while time.monotonic() < until:
        writer = chance.choice(writers)
        draw = chance.random()
        if draw < 0.85:
            writer.write()
        elif draw < 0.95:
            writer.touch()
        else:
            writer.rotate()
        time.sleep(chance.random() * 0.1)
    for writer in writers:
        if writer.mode != "drop":
            # A line that is whole, and nobody who writes: what is rotated is given up.
            writer.put(writer.line())
            writer.close()
    report(f"{work}/written", app, {writer.key: writer.count for writer in writers})


# MARK: The hostile

OPERATIONS = {}


def operation(weight: int):
    """One kind of system call, and how often it is drawn."""
    def add(function):
        OPERATIONS[function.__name__] = (function, weight)
        return function
    return add


class Hands:
    """What a hostile user has: places, names, and what it holds open."""

    def __init__(self, work: str, user: int, agent: int, secrets: list):
        name = f"hostile{user or ''}"
        self.known, self.secrets, self.agent, self.held = f"{work}/known", secrets, agent, []
        app, logs, box = f"{work}/spool/{name}", f"{work}/logs/{name}", f"{work}/spool/incoming"
        self.box = box
        stems = {
            app: ["r0", "r1", "f"], f"{app}/d": ["r0", "f"], f"{app}/d/e": ["r1"], f"{app}/d2": ["r0"],
            logs: ["f", "r0"], box: ["r0", f"own{user}", "metrics", "app", "svc0", "svc3", "svc6", "svc9"], f"{box}/d": ["r0"],
        }
        suffixes = [".json", ".log", ".log", ".jsonl", ".log.1", ".log.2", ".log.3", ".log.1.gz", ".log.2.gz", ".log-20261122000001",
                    ".jsonl.gz", ".jsonl.zst", ".log.new", ".tmp", ""]
        self.names = [f"{place}/{start}{stem}{suffix}" for place, these in stems.items() for stem in these for suffix in suffixes
                      for start in ("", ".") if not start or suffix == ".json"]
        self.directories = [place for place in stems if place not in (app, box, logs)]
        self.trees = [app, logs]
        for place in self.directories:
            os.makedirs(place, 0o2770, exist_ok=True)
        # Entries of others: of the honest, of the agent.
        self.others = [f"{work}/spool/app0/f.log", f"{work}/spool/app0", f"{work}/spool/.spoolship/lock", f"{work}/state", box, f"{work}/spool"]

    def name(self, draw: random.Random) -> str:
        return draw.choice(self.names)

    def existing(self, draw: random.Random) -> str:
        """Of three names the first that is there."""
        names = draw.sample(self.names, 3)
        return next((name for name in names if os.path.lexists(name)), names[-1])

    def file(self, draw: random.Random) -> int:
        """A descriptor: one that is held, or a new one of some name, without waiting for a lease of one's own."""
        chosen, fresh = draw.random(), self.name(draw)
        if self.held and chosen < 0.5:
            return self.held[int(chosen * 2 * len(self.held))]
        self.held.append(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o664))
        return self.held[-1]

    def clean(self) -> None:
        """Removes what is its own once it is much, as the directories that were moved into others make it: how much memory many files
        take is what `bounds.py` tries. Here an hour shows that it is given back."""
        for tree in self.trees:
            if sum(len(names) + len(files) for _, names, files in walk(tree)) > MOST_ENTRIES:
                for name in os.listdir(tree):
                    remove(os.path.join(tree, name))

    def mimic(self, draw: random.Random) -> tuple:
        """What an honest user has written, and the name of its file: whole, cut, or with another middle."""
        names = sorted(name for name in os.listdir(self.known) if name[0] != ".")
        name = names[int(draw.random() * len(names))] if names else ""
        with open(os.path.join(self.known, name), "rb") as file:
            data = file.read()
        cut, change = draw.random(), draw.choice(["", "middle", "cut", "packed"])
        if change == "middle" and len(data) > 2048:
            data = data[:1024] + data[1024:-256].replace(b"app", b"apq").replace(b"x", b"y") + data[-256:]
        elif change == "cut":
            data = data[:int(cut * len(data))]
        elif change == "packed":
            data = gzip.compress(data, 1)
        return name.split(".")[0], data


def walk(tree: str):
    """What is below a directory, also where its owner may not look. It follows no link, and changes only what is the caller's."""
    for place, names, files in os.walk(tree):
        for name in names:
            with contextlib.suppress(OSError):
                open_up(os.path.join(place, name))
        yield place, names, files


def open_up(directory: str) -> None:
    """Lets its owner into a directory; through a descriptor, as others exchange names for links meanwhile."""
    file = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(file).st_uid == os.geteuid():
            os.chmod(f"/proc/self/fd/{file}", 0o2770)
    finally:
        os.close(file)


def keep_box(box: str, until: float) -> None:
    """What root's cron job does in a drop box: nobody else may list it."""
    while time.monotonic() < until:
        time.sleep(10)
        if len(os.listdir(box)) > MOST_ENTRIES:
            for entry in os.scandir(box):
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_uid >= HOSTILE or entry.name.endswith(".gz") and status.st_mtime < time.time() - MOST_AGE:
                        remove(entry.path)


def remove(path: str) -> None:
    """Removes an entry and all below it, as far as its user may."""
    if os.path.isdir(path) and not os.path.islink(path):
        with contextlib.suppress(OSError):
            open_up(path)
        for _ in walk(path):
            pass
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)


def content(draw: random.Random) -> bytes:
    return draw.choice([
        EVENT, EVENT * 20, EVENT[:draw.randrange(1, len(EVENT))], b"\0" * draw.choice([1, 4096, 5000]), b"\n", b"x" * 3000,
        b'{"name":"hostile","properties":{"key":"app3-own-1"},"app":"forged"}\n', b'{"app":"forged","name":"hostile","app":"forged"}\n',
        b'[{"name":"y"},{"name":"z"', b"{\n", EVENT.replace(b"1", b"%d" % draw.getrandbits(30)), gzip.compress(EVENT * 3, 1), b"[",
    ])


@operation(12)
def write(hands: Hands, draw: random.Random) -> None:
    os.write(hands.file(draw), content(draw))


@operation(6)
def create(hands: Hands, draw: random.Random) -> None:
    name, data, mode = hands.name(draw), content(draw), draw.choice([0o664, 0o640, 0o600])
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, mode)
    os.write(file, data)
    os.close(file)


@operation(6)
def mimic(hands: Hands, draw: random.Random) -> None:
    """What an honest user has written, under its name or a rotated one, in the drop box."""
    stem, data = hands.mimic(draw)
    suffix = draw.choice([".log", ".log.1", ".log.%d" % draw.randrange(1, 9), ".log.1.gz", ".log.%d.gz" % draw.randrange(1, 9), ".jsonl.gz",
                          "-1.log", "-2.log", "-1.log.1"])
    hidden = f"{hands.box}/.m{os.getpid()}"
    with open(hidden, "wb") as file:
        os.fchmod(file.fileno(), 0o664)
        file.write(data)
    os.rename(hidden, f"{hands.box}/{stem}{suffix}")


@operation(3)
def pwrite(hands: Hands, draw: random.Random) -> None:
    os.pwrite(hands.file(draw), content(draw), draw.choice([0, 1, 40, 4096, 1 << 20, 1 << 40]))


@operation(10)
def rename(hands: Hands, draw: random.Random) -> None:
    os.rename(hands.existing(draw), hands.name(draw))


@operation(6)
def renameat2(hands: Hands, draw: random.Random) -> None:
    """Onto nothing, in exchange, or with a device left behind, which only root may."""
    check(LIBC.renameat2(-100, hands.existing(draw).encode(), -100, hands.existing(draw).encode(), draw.choice([1, 2, 2, 4])))


@operation(4)
def rename_directory(hands: Hands, draw: random.Random) -> None:
    os.rename(draw.choice(hands.directories), draw.choice(hands.directories + hands.names))


@operation(3)
def exchange_directories(hands: Hands, draw: random.Random) -> None:
    check(LIBC.renameat2(-100, draw.choice(hands.directories).encode(), -100, draw.choice(hands.directories + hands.names).encode(), 2))


@operation(4)
def link(hands: Hands, draw: random.Random) -> None:
    os.link(hands.existing(draw), hands.name(draw))


@operation(4)
def symlink(hands: Hands, draw: random.Random) -> None:
    os.symlink(draw.choice(hands.secrets + hands.directories + hands.others + [hands.name(draw)]), hands.name(draw))


@operation(10)
def unlink(hands: Hands, draw: random.Random) -> None:
    os.unlink(hands.existing(draw))


@operation(5)
def mkdir(hands: Hands, draw: random.Random) -> None:
    os.mkdir(draw.choice(hands.directories + hands.names), draw.choice([0o2770, 0o2770, 0o700, 0]))


@operation(4)
def rmdir(hands: Hands, draw: random.Random) -> None:
    os.rmdir(draw.choice(hands.directories + hands.names))


@operation(4)
def truncate(hands: Hands, draw: random.Random) -> None:
    os.truncate(hands.existing(draw), draw.choice([0, 1, 40, 4096, 1 << 40]))


@operation(4)
def ftruncate(hands: Hands, draw: random.Random) -> None:
    os.ftruncate(hands.file(draw), draw.choice([0, 0, 1, 40, 4096, 1 << 30]))


@operation(4)
def fallocate(hands: Hands, draw: random.Random) -> None:
    """Room, room beyond the end, a hole, zeros, and pieces taken out or put in."""
    check(LIBC.fallocate(hands.file(draw), draw.choice([0, 1, 3, 16, 17, 8, 32]), ctypes.c_long(draw.choice([0, 100, 4096])),
                         ctypes.c_long(draw.choice([10, 4096, 8192]))))


@operation(5)
def chmod(hands: Hands, draw: random.Random) -> None:
    os.chmod(draw.choice(hands.names + hands.directories * 5), draw.choice([0, 0o200, 0o440, 0o600, 0o664, 0o2770, 0o4777]))


@operation(2)
def fchmod(hands: Hands, draw: random.Random) -> None:
    os.fchmod(hands.file(draw), draw.choice([0, 0o440, 0o664]))


@operation(1)
def chown(hands: Hands, draw: random.Random) -> None:
    os.chown(hands.existing(draw), -1, os.getgid(), follow_symlinks=False)


@operation(4)
def utimensat(hands: Hands, draw: random.Random) -> None:
    when = draw.choice(FAR_TIMES + [time.time()])
    os.utime(draw.choice(hands.names + hands.directories * 5), (when, when), follow_symlinks=draw.random() < 0.8)


@operation(2)
def setxattr(hands: Hands, draw: random.Random) -> None:
    os.setxattr(hands.existing(draw), draw.choice(["user.x", "user.mime_type"]), b"y" * draw.choice([1, 3000]))


@operation(1)
def removexattr(hands: Hands, draw: random.Random) -> None:
    os.removexattr(hands.existing(draw), "user.x")


@operation(2)
def set_acl(hands: Hands, draw: random.Random) -> None:
    """A list that shuts the agent's group out, or lets everybody in."""
    # Version 2; the user, the group, the mask if one is needed, the others.
    owner, group, others = draw.choice([(6, 0, 0), (6, 6, 6), (0, 0, 0), (7, 5, 0)])
    entries = [(1, owner, 0xFFFFFFFF), (4, group, 0xFFFFFFFF), (32, others, 0xFFFFFFFF)]
    os.setxattr(draw.choice(hands.names + hands.directories * 5), "system.posix_acl_access",
                struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries))


@operation(2)
def set_flags(hands: Hands, draw: random.Random) -> None:
    """What chattr sets: no dump, no access time, synchronous; append-only and immutable need root."""
    fcntl.ioctl(hands.file(draw), 0x40086602, struct.pack("l", draw.choice([0, 0x40, 0x80, 0x8, 0x20, 0x10])))


@operation(3)
def flock(hands: Hands, draw: random.Random) -> None:
    fcntl.flock(hands.file(draw), draw.choice([fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_SH | fcntl.LOCK_NB, fcntl.LOCK_UN]))


@operation(2)
def lockf(hands: Hands, draw: random.Random) -> None:
    fcntl.lockf(hands.file(draw), draw.choice([fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN]), draw.choice([0, 10]))


@operation(4)
def lease(hands: Hands, draw: random.Random) -> None:
    fcntl.fcntl(hands.file(draw), fcntl.F_SETLEASE, draw.choice([fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK]))


@operation(1)
def read_lease(hands: Hands, draw: random.Random) -> None:
    """A lease for reading: of a descriptor that only reads."""
    hands.held.append(os.open(hands.existing(draw), os.O_RDONLY | os.O_NONBLOCK))
    fcntl.fcntl(hands.held[-1], fcntl.F_SETLEASE, fcntl.F_RDLCK)


@operation(1)
def aim_signals(hands: Hands, draw: random.Random) -> None:
    """Has the kernel tell the agent, with a signal that ends it, of a lease of one's own that breaks."""
    file = hands.file(draw)
    fcntl.fcntl(file, fcntl.F_SETOWN, hands.agent)
    # F_SETSIG
    fcntl.fcntl(file, 10, draw.choice([0, signal.SIGTERM, signal.SIGKILL]))
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)


@operation(1)
def kill(hands: Hands, draw: random.Random) -> None:
    os.kill(hands.agent, draw.choice([signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]))


@operation(8)
def close(hands: Hands, draw: random.Random) -> None:
    if hands.held:
        os.close(hands.held.pop(int(draw.random() * len(hands.held))))


@operation(2)
def mknod(hands: Hands, draw: random.Random) -> None:
    os.mknod(hands.name(draw), draw.choice([stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFREG, stat.S_IFCHR]) | 0o664)


@operation(1)
def bind(hands: Hands, draw: random.Random) -> None:
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(hands.name(draw)[-100:])


@operation(3)
def unnamed(hands: Hands, draw: random.Random) -> None:
    """A file without a name that gets one."""
    name, data = hands.name(draw), content(draw)
    file = os.open(os.path.dirname(name), os.O_TMPFILE | os.O_RDWR, 0o664)
    hands.held.append(file)
    os.write(file, data)
    # AT_SYMLINK_FOLLOW
    check(LIBC.linkat(-100, f"/proc/self/fd/{file}".encode(), -100, name.encode(), 0x400))


@operation(3)
def write_memory(hands: Hands, draw: random.Random) -> None:
    file, start, data = hands.file(draw), draw.randrange(64), content(draw)
    length = os.fstat(file).st_size
    if 0 < length < 1 << 20:
        with mmap.mmap(file, length) as memory:
            part = data[:max(0, length - start)]
            memory[start:start + len(part)] = part


@operation(2)
def copy_range(hands: Hands, draw: random.Random) -> None:
    os.copy_file_range(hands.file(draw), hands.file(draw), draw.choice([10, 4096, 1 << 16]), draw.choice([0, 7]), draw.choice([0, 40, 4096]))


@operation(1)
def sendfile(hands: Hands, draw: random.Random) -> None:
    os.sendfile(hands.file(draw), hands.file(draw), 0, 4096)


@operation(1)
def fsync(hands: Hands, draw: random.Random) -> None:
    os.fsync(hands.file(draw))


@operation(2)
def reach_for_others(hands: Hands, draw: random.Random) -> None:
    """What is somebody else's: the kernel refuses it, or nothing comes of it."""
    other, own = draw.choice(hands.others), hands.name(draw)
    draw.choice([lambda: os.rename(other, own), lambda: os.rename(own, other), lambda: os.link(other, own), lambda: os.unlink(other),
                 lambda: os.chmod(other, 0), lambda: os.utime(other, (0, 0)), lambda: os.truncate(other, 0), lambda: os.mkdir(f"{other}/x")])()


def check(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def hostile(house: House, user: int, seed: int, until: float, tries) -> None:
    become(HOSTILE + user)
    hands = Hands(house.work, user, house.agent.pid, house.secrets)
    signal.signal(signal.SIGALRM, interrupted)
    names = [name for name in OPERATIONS if tries(name)]
    weights = [OPERATIONS[name][1] for name in names]
    counts, number = collections.Counter(), 0
    while time.monotonic() < until:
        burst = random.Random(f"{seed}-{user}-{number}")
        for _ in range(burst.randrange(1, 400)):
            draw = random.Random(f"{seed}-{user}-{number}")
            number += 1
            name = draw.choices(names, weights)[0]
            # One that waits for a lease of another process of the same user ends after a while.
            refused = limited(0.5, OPERATIONS[name][0], hands, draw)
            counts[f"{name}, refused" if refused else name] += 1
            while len(hands.held) > 20:
                os.close(hands.held.pop(0))
        # Whatever became of them: most entries are in directories.
        for place in hands.directories:
            try:
                os.makedirs(place, 0o2770, exist_ok=True)
                os.chmod(place, 0o2770)
            except OSError:
                pass
        if burst.random() < 0.05:
            hands.clean()
        with open(house.path("done", str(user)), "w") as file:
            json.dump(counts, file)
        time.sleep(burst.choice([0, 0.05, 0.2, 1]))


def run(options) -> list:
    """What was wrong."""
    places = [(f"place{app}", f"app{app}") for app in range(WRITERS) if Rotating.MODES[app] in IN_PLACE_MODES]
    places += [(f"hostile-logs{user}", f"hostile{user or ''}") for user in range(USERS)]
    configuration = "".join(IN_PLACE.format(name=name, directory="{work}/logs/" + directory) for name, directory in places)
    with House(options, configuration, files=FILES) as house:
        until = time.monotonic() + options.seconds
        for app in range(WRITERS):
            house.fork(honest, house.work, app, options.seed, options.seconds)
        house.fork(keep_box, house.path("spool/incoming"), until)
        for user in range(USERS):
            house.fork(hostile, house, user, options.seed, until, options.tries)

        def counts() -> collections.Counter:
            total = collections.Counter()
            for name in os.listdir(house.path("done")):
                try:
                    with open(house.path("done", name)) as file:
                        total.update(json.load(file))
                except ValueError:
                    # It is being written.
                    pass
            return total

        faults = house.live(until, lambda: f"{sum(counts().values()):,} operations, "
                            f"{sum(count for name, count in counts().items() if 'refused' in name):,} of them refused")
        total = counts()
        print("hostile:   done of tried: " + ", ".join(
            f"{name} {total[name]} of {total[name] + total[f'{name}, refused']}" for name in OPERATIONS if options.tries(name)))
        return faults + [f"{name} was never done" for name in OPERATIONS
                         if options.tries(name) and options.seconds >= 60 and not total[name] and name not in ("kill",)]

