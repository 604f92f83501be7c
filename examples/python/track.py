"""Tracks one event: python3 track.py DIRECTORY NAME"""
import json, os, sys, tempfile, time

directory, name = sys.argv[1:3]
# The spool is the nearest directory above in which the agent says what it accepts. Where anybody may write, it says nothing.
above = (directory + "/.." * level for level in range(17))
states = (f"{up}/.spoolship/state" for up in above if os.path.exists(up) and not os.stat(up).st_mode & 0o002)
state = next(filter(os.path.exists, states), os.devnull)
if open(state).readline().strip() in ("critical", "none"):
    sys.exit(75)
now = time.time()
event = {"name": name, "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}Z",
         "pid": os.getpid(), "properties": {"language": "Python", "number": 1.5}}
descriptor, hidden = tempfile.mkstemp(prefix=".event-", suffix=".tmp", dir=directory)
with os.fdopen(descriptor, "w", encoding="utf-8") as file:
    json.dump(event, file)
    file.flush()
    os.fchmod(descriptor, 0o640)  # The agent reads as the group.
    os.fsync(descriptor)
os.rename(hidden, f"{directory}/{os.path.basename(hidden)[1:-4]}.json")
try:
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)  # The new name survives a power cut as well.
except PermissionError:
    os.sync()  # The drop box incoming/ lets nobody open it.
