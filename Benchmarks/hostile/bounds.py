"""Each thing that a user can make many of grows beyond what the agent bounds it by, a hundredfold or as far as it gets in the time,
beside honest apps, while the agent lives in a control group of 128 MB: of version 1 or 2, whichever the machine has.

Each growth has an agent of its own. What must hold is in `house.py`, but that the bound on memory is the group's, and whoever
exceeds that is killed by the kernel. The group also counts the page cache, which gives way, and what the kernel keeps for the agent.
"""
import os
import time

from attacks import CLAIM, EVENT, write
from house import APPS, HOSTILE, House, become, honest

LIMIT = 128 << 20
FACTOR = 100
# The first subordinate id that Debian gives.
SUBORDINATE = 100_000
GROWTHS = {}


# Growths that are there when the agent starts: a listing finds them, and no change of the kernel's tells of them.
BEFORE_START = set()


def growth(bound: int, needs_root: bool = False, before_start: bool = False):
    """A generator that makes one more, or some more, each time; `bound` is how many the agent knows, as docs/security.md says."""
    def add(function):
        GROWTHS[function.__name__] = (function, bound, needs_root)
        if before_start:
            BEFORE_START.add(function.__name__)
        return function
    return add


def long_names(parent: str, mode: int):
    for index in range(1 << 40):
        os.mkdir(f"{parent}/{'d' * 100}{index}", mode)
        yield 1


@growth(8_192)
def directories(app: str, box: str):
    """Directories of one app."""
    return long_names(app, 0o2770)


@growth(1_024)
def deep_directories(app: str, box: str):
    """Trees that are sixteen deep, and go deeper."""
    for index in range(1 << 40):
        path = f"{app}/{index}"
        for depth in range(18):
            os.mkdir(path, 0o2770)
            path += "/d"
            yield 1


@growth(8_192)
def box_directories(app: str, box: str):
    """Directories in the drop box, which is flat."""
    return long_names(box, 0o777)


@growth(8_192)
def fleeting_directories(app: str, box: str):
    """Directories that are made, renamed and removed, with a closed one in each."""
    for index in range(1 << 40):
        path = f"{app}/{index}"
        os.mkdir(path, 0o2770)
        os.mkdir(f"{path}/d", 0)
        os.rename(path, f"{path}-")
        os.rmdir(f"{path}-/d")
        os.rmdir(f"{path}-")
        yield 1


@growth(65_536)
def drop_files(app: str, box: str):
    """Empty drop files, half of them in the drop box."""
    for index in range(1 << 40):
        os.close(os.open(f"{(app, box)[index % 2]}/{index}.json", os.O_CREAT | os.O_WRONLY, 0o664))
        yield 1


@growth(8_192)
def bad_files(app: str, box: str):
    """Drop files that hold no event, and stay once the quarantine is full."""
    for index in range(1 << 40):
        write(f"{(app, box)[index % 2]}/{index}.json", b"no event\n")
        yield 1


@growth(8_192, before_start=True)
def claim_like_files(app: str, box: str):
    """Drop files under names like the agent's claims, which hold no event, and stay once the quarantine is full."""
    for index in range(1 << 40):
        write(f"{(app, box)[index % 2]}/{CLAIM}{index:016x}.x.json", b"no event\n")
        yield 1


@growth(1_024)
def unsettled_files(app: str, box: str):
    """Drop files that change all the time, so that they are never complete."""
    names = []
    for index in range(FACTOR * 1_024):
        names.append(write(f"{(app, box)[index % 2]}/{index}.json", b"["))
        if index % 2_000 == 0:
            for name in names:
                touch(name)
        yield 1
    while True:
        for name in names:
            touch(name)
        yield 0


@growth(256)
def empty_files(app: str, box: str):
    """Append files in which nothing ever was."""
    for index in range(1 << 40):
        os.close(os.open(f"{(app, box)[index % 2]}/{index}.jsonl", os.O_CREAT | os.O_WRONLY, 0o664))
        yield 1


@growth(1_024)
def files(app: str, box: str):
    """Append files of an event each."""
    for index in range(1 << 40):
        write(f"{(app, box)[index % 2]}/{index}.jsonl", EVENT)
        yield 1


@growth(2_048)
def files_that_go(app: str, box: str):
    """Append files of an event each that are renamed, and removed soon after: a copy may turn up."""
    for index in range(1 << 40):
        write(f"{app}/{index}.jsonl", EVENT)
        if index >= 1_000:
            os.rename(f"{app}/{index - 1_000}.jsonl", f"{app}/{index - 1_000}.jsonl.1")
        if index >= 2_000:
            remove(f"{app}/{index - 2_000}.jsonl.1")
        yield 1


@growth(1_024)
def closed_files(app: str, box: str):
    """Files that the agent may not read."""
    for index in range(1 << 40):
        os.close(os.open(f"{(app, box)[index % 2]}/{index}{('.json', '.jsonl')[index // 2 % 2]}", os.O_CREAT | os.O_WRONLY, 0))
        yield 1


@growth(1_024)
def hard_links(app: str, box: str):
    """Names of files that have many, which are refused."""
    for index in range(1 << 40):
        if index % 10_000 == 0:
            first = write(f"{app}/{index}.json", EVENT)
        os.link(first, f"{app}/{index}-.json{('', 'l')[index % 2]}")
        yield 1


@growth(1_024)
def names_passed_over(app: str, box: str):
    """Files and links whose names the agent does not read."""
    for index in range(1 << 40):
        path = f"{(app, box)[index % 2]}/{'n' * 200}{index}"
        if index % 4 < 2:
            write(f"{path}.txt", b"x")
        else:
            os.symlink("/nowhere", path)
        yield 1


@growth(1_024)
def renames(app: str, box: str):
    """A directory with closed ones in it, and a file, to and fro."""
    top, file = f"{app}/top", f"{box}/renamed"
    os.mkdir(top, 0o2770)
    for index in range(10):
        os.mkdir(f"{top}/{index}", 0)
    write(f"{file}0.jsonl", EVENT)
    for index in range(1 << 40):
        os.rename(*((top, f"{top}-") if index % 2 == 0 else (f"{top}-", top)))
        os.rename(f"{file}{index}.jsonl", f"{file}{index + 1}.jsonl")
        yield 2


@growth(1_024)
def event_names(app: str, box: str):
    """Events that all have another name."""
    number = 0
    for index in range(1 << 40):
        write(f"{app}/{index}.jsonl", b"".join(b'{"name":"%d"}\n' % (number + more) for more in range(1_000)))
        number += 1_000
        yield 1_000


@growth(655, needs_root=True)
def owners(app: str, box: str):
    """Drop files of as many owners as a range of subordinate ids has, which is what a user may have."""
    for index in range(1 << 40):
        hidden = write(f"{box}/.{index}", b'{"name":"x"}')
        os.chown(hidden, SUBORDINATE + index, -1)
        os.rename(hidden, f"{box}/o{index}.json")
        yield 1


@growth(205, needs_root=True)
def owners_of_append_files(app: str, box: str):
    for index in range(1 << 40):
        hidden = write(f"{box}/.{index}", EVENT)
        os.chown(hidden, SUBORDINATE + index, -1)
        os.rename(hidden, f"{box}/o{index}.jsonl")
        yield 1


def touch(path: str) -> None:
    try:
        os.utime(path)
    except FileNotFoundError:
        pass


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def grow(house: House, name: str, until: float) -> None:
    function, bound, needs_root = GROWTHS[name]
    if not needs_root:
        become(HOSTILE)
    count = 0
    for more in function(house.path("spool/hostile"), house.path("spool/incoming")):
        count += more
        if count >= FACTOR * bound and function is not unsettled_files or time.monotonic() > until:
            break
    with open(house.path("done", name), "w") as file:
        file.write(str(count))


def run(options) -> list:
    """What was wrong."""
    faults = []
    for name, (function, bound, _) in GROWTHS.items():
        if not options.tries(name):
            continue
        def before(house, name=name) -> None:
            grow(house, name, time.monotonic() + options.seconds)

        is_before = name in BEFORE_START
        with House(options, limit=LIMIT, before=before if is_before else None) as house:
            until = time.monotonic() + options.seconds
            for app in range(APPS):
                house.fork(honest, house.work, app, options.events // APPS, options.seconds)
            if not is_before:
                house.fork(grow, house, name, until)

            def progress() -> str:
                done = house.path("done", name)
                if not os.path.exists(done):
                    return name
                with open(done) as file:
                    count = int(file.read())
                return f"{name}: {count:,}, {count / bound:.0f} times the bound"

            faults += [f"{name}: {fault}" for fault in house.live(until, progress)]
    return faults
