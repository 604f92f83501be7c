"""What can happen to the agent. Each is a function of the storm, and says what it did; its choices are the seed's alone."""
import os
import sqlite3
import subprocess
import threading
import time

from agent import CHANGES
from containers import BAD, GOOD
from server import MOODS

# What a start ends with that cannot write.
FAILED_TO_START = 74
STEPS = [2, 90, 3600, 5 * 3600, 86400, 3 * 86400, 9 * 86400, 40 * 86400]


def killed(storm):
    wait = storm.random.choice([0, 0.1, 1])
    storm.agent.kill()
    time.sleep(wait)
    storm.agent.start()


def killed_twice(storm):
    """Again, before the start has come to its end."""
    for pause in (storm.random.random() * 0.3, 0):
        storm.agent.kill()
        storm.agent.start()
        time.sleep(pause)


def restarted(storm):
    took = storm.agent.terminate()
    storm.agent.start()
    return f"ended in {took:.1f} s"


def reloaded(storm):
    key = storm.random.choice(list(CHANGES))
    change = {key: storm.random.choice(CHANGES[key])}
    storm.agent.configure(**change)
    return f"{change}, exit {storm.agent.say('reload')}"


def reloaded_wrongly(storm):
    with open(storm.agent.path, "a") as file:
        file.write("[queue]\nmax_sise = 1\n")
    code = storm.agent.say("reload")
    storm.agent.configure()
    if code == 0:
        storm.model.faults.append("a reload with a mistake was taken")
    return f"exit {code}"


def paused(storm):
    token, ttl = f"storm{storm.random.randrange(3)}", storm.random.choice(["2s", "5s", "60s"])
    where = storm.random.choice([[], ["--destination", "picky"]])
    return f"{ttl} {where}, exit {storm.agent.say('pause', '--token', token, '--ttl', ttl, *where)}"


def resumed(storm):
    return f"exit {storm.agent.say('resume')}"


def offline(storm):
    wait = storm.random.random() * 4
    first = storm.agent.say("network", "off")
    time.sleep(wait)
    return f"exit {first}, {storm.agent.say('network', 'on')}"


def unplugged(storm):
    """The network goes, and comes back: the route with it, or what is behind the route."""
    what = storm.random.choice([storm.network.set_link, storm.network.set_cable])
    wait = storm.random.choice([0.2, 2, 7])
    what(False)
    time.sleep(wait)
    what(True)
    return f"{'no route' if what == storm.network.set_link else 'no answer'} for {wait} s"


def dispatched(storm):
    return f"exit {storm.agent.say('dispatch')}"


def moody(storm):
    destination = storm.server.destinations[storm.random.choice(["plain", "picky"])]
    destination.mood = storm.random.choice(sorted(MOODS))
    return f"{destination.name} is {destination.mood}"


def full_disk(storm):
    """Nothing more fits on the state directory's file system for some seconds."""
    path, length = f"{storm.work}/state/in-the-way", 0
    wait = storm.random.uniform(1, 8)
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                length += file.write(bytes(1 << 16))
        except OSError:
            pass
        time.sleep(wait)
    os.unlink(path)
    return f"{length >> 20} MiB in the way for {wait:.1f} s"


def read_only_disk(storm):
    """The disk turns read-only under the agent, and comes back; a start meanwhile fails, and says so."""
    wait, is_killed = storm.random.uniform(0.5, 6), storm.random.random() < 0.4
    storm.world.set_read_only(True)
    try:
        time.sleep(wait)
    finally:
        storm.world.set_read_only(False)
    if storm.agent.process.poll() == FAILED_TO_START:
        # It was killed a moment before, and had not opened its queue yet.
        storm.agent.start()
        return f"for {wait:.1f} s; a start on it ended with {FAILED_TO_START}"
    if not is_killed:
        return f"for {wait:.1f} s"
    storm.agent.kill()
    remounted = subprocess.run(["mount", "-o", "remount,ro", f"{storm.work}/state"], stderr=subprocess.DEVNULL, check=False)
    if remounted.returncode != 0:
        # The foreign reader holds a file open.
        storm.agent.start()
        return f"for {wait:.1f} s; busy for a remount"
    storm.agent.start()
    try:
        code = storm.agent.process.wait(60)
    except subprocess.TimeoutExpired:
        code = None
    subprocess.run(["mount", "-o", "remount,rw", f"{storm.work}/state"], check=True)
    if code != FAILED_TO_START:
        storm.model.faults.append(f"a start on a read-only disk ended with {code}")
    storm.agent.start()
    return f"for {wait:.1f} s; a start on it ended with {code}"


def read_by_others(storm):
    """A reader of the database keeps a snapshot open, as a backup does."""
    wait = storm.random.uniform(0.5, 6)

    def read():
        try:
            with sqlite3.connect(f"file:{storm.work}/state/queue.sqlite?mode=ro", uri=True, timeout=5) as reader:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM sqlite_master").fetchall()
                time.sleep(wait)
        except sqlite3.Error as error:
            storm.say(f"the foreign reader: {error}")
    threading.Thread(target=read, daemon=True).start()


def clock_stepped(storm):
    """The agent's clock is set, ahead or back, and the kernel may think otherwise of it."""
    step = storm.random.choice(STEPS) * storm.random.choice([1, -1])
    storm.world.set_synchronised(storm.random.choice([1, 1, 0, -1]))
    ahead = storm.world.step(step)
    return f"by {step} s, now {ahead} s ahead, synchronised {storm.world.synchronised}"


def published(storm):
    """A version of the container, good or bad; some are fetched at once."""
    how, wait = storm.random.choice(GOOD + BAD), storm.random.random() * 3
    is_asked = storm.random.random() < 0.7
    version = storm.publisher.publish(how, wait if how == "slow" else 0)
    if not is_asked:
        return f"version {version}, {how}"
    return f"version {version}, {how}; refresh ended with {storm.agent.say('container', 'refresh')}"


def previewed(storm):
    """A draft rules for some seconds."""
    ttl = storm.random.choice(["1s", "10s", "1h"])
    version, path = storm.publisher.draft()
    return f"draft {version} for {ttl}, exit {storm.agent.say('container', 'preview', path, '--ttl', ttl)}"


def left_alone(storm):
    time.sleep(storm.random.random() * 3)


ALL = [
    killed, killed, killed_twice, restarted, reloaded, reloaded, reloaded, reloaded_wrongly, paused, resumed, offline, unplugged, unplugged,
    dispatched, moody, moody, moody, moody, full_disk, read_only_disk, read_by_others, clock_stepped, clock_stepped, published, published,
    published, previewed, left_alone, left_alone]
