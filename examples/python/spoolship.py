"""Spoolship for Python: writes events into the spool, whether or not the agent runs. One file, no dependencies, Python 3.8.

    import spoolship
    client = spoolship.Client("/var/spool/spoolship/shop")
    client.track("Video clicked", {"Category": "Music"}, critical=True)
    client.close()

It promises that an event is in the spool, whole, once, when `flush` or `close` has returned; `track` writes at once, and
`durable=True` syncs each write. Thread-safe. A process that forks makes a client of its own afterwards. What is not accepted raises `Refused`.
"""
import contextlib, datetime, json, math, os, re, secrets, select, socket, stat, sys, threading, time, uuid

_COUNTRIES = frozenset("""
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ
CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO
FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE
JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO
MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW
PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM
TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
""".split())


class Refused(Exception):
    """The agent accepts no such event now: keep it and try later. The text says why."""


class Report:
    """How a dispatch ended. `result`: good, no_data or error. `confirmed_by`: destinations, queue or spool. `reason`: for a person."""

    def __init__(self, result, confirmed_by, reason=""):
        self.result, self.confirmed_by, self.reason = result, confirmed_by, reason

    def __repr__(self):
        return f"Report({self.result!r}, {self.confirmed_by!r}, {self.reason!r})"


class Client:
    """Writes lines into a file of this process in `directory`, the app's own or the drop box.

    name: the beginning of the files' names; letters, digits, - and _.
    durable: whether each write is synced, and so survives a power cut.
    control_socket: the agent's, by which `dispatch` learns what destinations acknowledged; None: it ends at the agent's queue.
    manual_sessions: whether `start_session` alone begins sessions; events before the first one carry none.
    file_size: when a file is full and the next one begins, in bytes.
    """

    def __init__(self, directory, name="app", durable=True, control_socket="/run/spoolship/control.sock",
                 manual_sessions=False, file_size=16 << 20):
        if not re.fullmatch("[A-Za-z0-9_-]{1,64}", name):
            raise ValueError(f"the name {name!r} must be letters, digits, - and _")
        if not os.path.isdir(directory):
            raise FileNotFoundError(f"there is no directory {directory}; create it with: spoolship app add NAME --user U")
        self._directory, self._durable, self._socket, self._file_size = directory, durable, control_socket, file_size
        self._name, self._stem = name, f"{name}-{os.getpid()}-{secrets.token_hex(6)}"
        self._lock = threading.RLock()
        self._file, self._path, self._size, self._number, self._held = None, None, 0, 0, []
        self._paused = self._closed = False
        self._manual, self._session, self._country = manual_sessions, None, None
        # Hidden from the agent. Its owner tells: in a drop box anybody may make a file of that name.
        self._switch = f"{directory}/.{name}-{os.geteuid()}.disabled"
        try:
            self._enabled = os.lstat(self._switch).st_uid != os.geteuid()
        except FileNotFoundError:
            self._enabled = True
        self._adopt_leftovers()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Events

    def track(self, name, properties=None, critical=False):
        """Tracks an event. Properties: str, bool, int, float, datetime. Raises Refused, ValueError, TypeError or OSError."""
        if not isinstance(name, str) or not name:
            raise ValueError("an event needs a name")
        event = {"name": name, **self._common(critical)}
        if properties:
            event["properties"] = {key: _property(key, value) for key, value in properties.items()}
        self._write(event, critical)

    track_event = track

    def push(self, **members):
        """Pushes names and values into the data layer of the app's containers. With `event` tags that call functions fire."""
        if not members or "type" in members:
            raise ValueError("a push needs names and values; the name type is taken")
        self._write({"type": "data_layer", **members}, False)

    def _common(self, critical):
        with self._lock:
            event = {"timestamp": _time_text(time.time())}
            if critical:
                event["priority"] = "critical"
            if self._manual:
                event["session_id"] = self._session  # None: of no session, and the agent adds none.
            if self._country:
                event["country"] = self._country
            event["pid"] = os.getpid()
            return event

    def _write(self, event, critical):
        line = (json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode("utf-8")
        with self._lock:
            if self._closed:
                raise ValueError("the client is closed")
            if not self._enabled:
                return
            accepted, reason = self.accepting()
            if accepted == "none" or accepted == "critical" and not critical:
                raise Refused(reason or f"the agent accepts {accepted}")
            if self._file is not None and (self._size >= self._file_size or os.fstat(self._file).st_nlink == 0):
                self._finish()
            if self._file is None:
                self._begin()
            try:
                written = 0
                while written < len(line):
                    written += os.write(self._file, line[written:])
                if self._durable:
                    os.fdatasync(self._file)
            except OSError:
                os.ftruncate(self._file, self._size)  # Half a line would spoil the next one.
                raise
            self._size += len(line)

    def accepting(self):
        """What the agent accepts now: all, critical or none, and why not all. It needs no agent."""
        for level in range(17):
            above = self._directory + "/.." * level
            try:
                # Where anybody may write, the agent says nothing.
                if os.stat(above).st_mode & stat.S_IWOTH:
                    continue
                with open(above + "/.spoolship/state", encoding="utf-8", errors="replace") as file:
                    lines = file.read(4096).split("\n")
            except OSError:
                continue
            word = lines[0] if lines[0] in ("critical", "none") else "all"
            return word, lines[1] if word != "all" and len(lines) > 1 else ""
        return "all", ""

    # Files

    def _begin(self):
        self._number += 1
        path = f"{self._directory}/{self._stem}-{self._number}.jsonl" + (".part" if self._paused else "")
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o640)
        os.fchmod(self._file, 0o640)  # The agent reads as the directory's group, whatever the umask is.
        self._path, self._size = path, 0
        if self._paused:
            self._held.append(path)
        self._sync_directory()

    def _finish(self):
        """Ends the file. Under a rotated name the agent removes it once it is read; what is kept back keeps its name."""
        if self._file is None:
            return
        os.close(self._file)
        self._file = None
        if not self._path.endswith(".part"):
            _rename(self._path, self._path + ".1")

    def _release(self):
        self._finish()
        while self._held:
            path = self._held[-1]
            _rename(path, path[:-len(".part")] + ".1")
            self._held.pop()
        self._sync_directory()

    def _sync_directory(self):
        if not self._durable:
            return
        try:
            folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except PermissionError:
            return  # The drop box lets nobody open it; its entries are the agent's care.
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _adopt_leftovers(self):
        """Gives the agent the files of processes of this name that have ended."""
        try:
            names = os.listdir(self._directory)
        except PermissionError:
            return
        for name in names:
            found = re.fullmatch(re.escape(self._name) + r"-(\d+)-[0-9a-z]+-\d+\.jsonl(\.part)?", name)
            if found and not _is_alive(int(found[1])):
                path = f"{self._directory}/{name}"
                _rename(path, (path[:-len(".part")] if found[2] else path) + ".1")

    def flush(self):
        """Returns when all that was tracked before is in the spool: at once, because `track` writes."""
        with self._lock:
            if self._file is not None and self._durable:
                os.fdatasync(self._file)

    def close(self):
        """Ends the client; what a pause kept back is released."""
        with self._lock:
            if not self._closed:
                self._release()
                self._paused, self._closed = False, True

    # Switches

    @property
    def is_enabled(self):
        """Whether events are taken. False outlives the process, for this name and user in this directory."""
        return self._enabled

    @is_enabled.setter
    def is_enabled(self, wanted):
        with self._lock:
            if wanted:
                try:
                    os.unlink(self._switch)
                except FileNotFoundError:
                    pass  # It is enabled.
            else:
                os.close(os.open(self._switch, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640))
            self._sync_directory()
            self._enabled = bool(wanted)

    def pause(self):
        """Keeps events back from now on, in files that the agent does not read."""
        with self._lock:
            if not self._paused:
                self._finish()
                self._paused = True

    def resume(self):
        """Releases what was kept back. Without a pause nothing happens."""
        with self._lock:
            if self._paused:
                self._release()
                self._paused = False

    @property
    def is_paused(self):
        return self._paused

    def set_country_code(self, code):
        """Sets the country of later events: two letters by ISO 3166-1, either case; None for none."""
        checked = code.upper() if code is not None else None
        # Two letters as they are: in capitals "ß" would be South Sudan.
        if code is not None and (len(code) != 2 or checked not in _COUNTRIES):
            raise ValueError(f"{code!r} is not a country code by ISO 3166-1; write two letters, such as IT")
        with self._lock:
            self._country = checked

    def start_session(self):
        """Begins a session; False, and nothing is done, unless sessions are manual or while disabled."""
        with self._lock:
            if not self._manual or not self._enabled:
                return False
            before, self._session = self._session, str(uuid.uuid4())
            try:
                self._write({"type": "start_session", "name": "start_session", **self._common(False)}, False)
            except BaseException:
                self._session = before
                raise
            return True

    # Dispatch

    def dispatch(self, timeout=30):
        """Has what was tracked before sent now, and waits for the result: a Report.

        It waits until the agent has queued the events, then asks it over the control socket to send all that waits. An app that may not
        use the socket learns no more than that they are queued.
        """
        deadline = time.monotonic() + timeout
        if self._paused:
            return Report("no_data", "spool", "paused")
        try:
            with self._lock:
                self._finish()
        except OSError as error:
            return Report("error", "spool", str(error))
        given = left = self._unread()
        while left:
            if time.monotonic() >= deadline:
                return Report("error", "spool", f"files of this client that the agent has not read in time: {left}; does it run?")
            time.sleep(0.01)
            left = self._unread()
        if self._socket:
            try:
                status, body = _ask(self._socket, "POST", "/v1/dispatch", '{"wait":true}', deadline)
            except (FileNotFoundError, PermissionError, ConnectionRefusedError):
                pass  # This app may not ask: the queue is as far as it sees.
            except (OSError, ValueError) as error:
                return Report("error", "queue", f"{self._socket}: {error}")
            else:
                return _report(status, body)
        if given is None:
            return Report("good", "spool")
        return Report("good", "queue") if given else Report("no_data", "queue", "empty")

    def _unread(self):
        """How many files of this client the agent has not removed yet; None where the directory cannot be listed."""
        try:
            names = os.listdir(self._directory)
        except PermissionError:
            return None
        return sum(self._stem + "-" in name and not name.endswith(".part") for name in names)


class Values:
    """The values of the agent's containers, from the file that it publishes. A missing key gives "", 0, 0.0 or False."""

    def __init__(self, path="/run/spoolship/values.json"):
        self._path, self._mark, self._values = path, None, {}

    def _value(self, key):
        try:
            found = os.stat(self._path)
            mark = (found.st_ino, found.st_size, found.st_mtime_ns)
            if mark != self._mark:
                with open(self._path, encoding="utf-8") as file:
                    values = json.load(file)["values"]
                self._values, self._mark = dict(values), mark
        except (OSError, ValueError, KeyError, TypeError):
            pass  # The last values that could be read stay.
        return self._values.get(key)

    def contains(self, key):
        return self._value(key) is not None

    def string(self, key):
        value = self._value(key)
        if isinstance(value, str):
            return value
        return json.dumps(value) if isinstance(value, (bool, int, float)) else ""

    def integer(self, key):
        value = self._value(key)
        if isinstance(value, bool):
            return 0
        if isinstance(value, float):
            return int(value) if value.is_integer() else 0
        if isinstance(value, str):
            return int(value) if re.fullmatch(r"0|-?[1-9][0-9]*", value) else 0
        return value if isinstance(value, int) else 0

    def double(self, key):
        value = self._value(key)
        if isinstance(value, bool):
            return 0.0
        if isinstance(value, (int, float)):
            return float(value)
        if isinstance(value, str) and re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", value):
            number = float(value)
            return number if math.isfinite(number) else 0.0
        return 0.0

    def boolean(self, key):
        value = self._value(key)
        return value if isinstance(value, bool) else value == "true"


class Container:
    """A container of the agent, over its control socket: values, evaluated when asked for, and functions of this program.

    id: of the container, such as GTM-1234. app: whose tags call functions here; None for none. timeout: of one request, in seconds.
    Raises AgentUnavailable if no agent answers, or this user may not ask; ValueError for an unknown container. Thread-safe.
    """

    def __init__(self, id, app=None, control_socket="/run/spoolship/control.sock", timeout=10):
        self.id, self.app = id, app
        self._socket, self._timeout = control_socket, timeout
        self._lock = threading.Lock()
        self._macros, self._tags, self._changes = {}, {}, 0
        self._thread, self._wake, self._confirmed = None, None, None
        self._problem, self._observer, self._told, self._unhandled = None, None, (), 0

    # Values

    def string(self, key):
        return self._value(key, "string", "")

    def integer(self, key):
        return self._value(key, "integer", 0)

    def double(self, key):
        return float(self._value(key, "double", 0.0))

    def boolean(self, key):
        return self._value(key, "boolean", False)

    def _value(self, key, kind, standard):
        """The agent names the calls that the value needs, and is asked again with their answers; it remembers nothing in between."""
        answers = {}
        while True:
            with self._lock:
                macros = dict(self._macros)
            question = {"key": key, "type": kind, "container": self.id, "functions": sorted(macros), "answers": answers}
            try:
                status, body = _ask(self._socket, "POST", "/v1/values", json.dumps(question), time.monotonic() + self._timeout)
                answer = json.loads(body)
            except (OSError, ValueError) as error:
                raise AgentUnavailable(f"{self._socket}: {error}") from error
            if status != 200:
                raise _refusal(status, answer)
            if not isinstance(answer, dict):
                raise AgentUnavailable(f"{self._socket}: the answer is no object")
            if not answer.get("calls"):
                value = answer.get("value")
                return standard if value is None else value
            for call in answer["calls"]:
                if call["id"] in answers or len(answers) >= 32 or call["function"] not in macros:
                    raise AgentUnavailable("the agent asks again, too often, or for a function that was not registered")
                answers[call["id"]] = macros[call["function"]](call["function"], call["parameters"])

    # Functions

    def register_macro(self, name, handler):
        """Registers the function of `function_call` macros with `"by": "app"`: handler(name, parameters) returns the value, None leaves
        it to the macro's default. It is called by the getters, on their thread. None ends that."""
        with self._lock:
            self._macros = {**self._macros, name: handler}
            if handler is None:
                del self._macros[name]

    def register_tag(self, name, handler):
        """Registers the function of `function` tags with `"by": "app"`: handler(name, parameters). None ends that.

        It is called once an event or a push of this app is in the agent's queue and the tag fires, on a thread of this module, one call at
        a time, each at most once. Calls while this process does not listen, or reads too slowly, are lost, and the agent counts them.
        """
        if self.app is None:
            raise ValueError("name the app: Container(id, app)")
        with self._lock:
            is_change = (name in self._tags) != (handler is not None)
            self._changes += is_change
            self._tags = {**self._tags, name: handler}
            if handler is None:
                del self._tags[name]
            if self._thread is None and self._tags:
                if self._wake is None:
                    self._wake = socket.socketpair()
                    for end in self._wake:
                        end.setblocking(False)
                thread = threading.Thread(target=self._listen, name="spoolship", daemon=True)
                thread.start()  # It may raise: only a thread that runs is noted, so that the next call tries again.
                self._thread = thread
            elif is_change:
                self._signal()

    def observe_listening(self, observer):
        """Calls observer(None) when the agent gives calls, and observer(why) when it does not: each time that this changes. It is tried
        again after a tenth of a second, then after twice as long each time, 30 seconds at most, until a connection has lasted a second."""
        self._observer = observer

    @property
    def is_listening(self):
        """Whether the agent gives this process calls of tags now."""
        with self._lock:
            return self._confirmed == self._changes

    @property
    def listening_problem(self):
        """Why it gives none, as far as it was tried: an exception; None while it gives calls."""
        return self._problem

    @property
    def unhandled_calls(self):
        """Calls that came for a function that was removed meanwhile."""
        return self._unhandled

    def close(self):
        """Ends the calls of macros and tags. A call that has begun may still end after it."""
        with self._lock:
            self._macros, self._tags, self._confirmed = {}, {}, None
            self._changes += 1
            self._signal()

    def _signal(self):
        if self._wake:
            try:
                self._wake[1].send(b"x")
            except BlockingIOError:
                pass  # So much waits there that the thread will wake. To wait for it here, with the lock, would stop both.

    def _listen(self):
        """The thread: connects, and reads calls, until there are no functions of tags."""
        pause, wake = 0.1, self._wake
        while True:
            with self._lock:
                names, change = sorted(self._tags), self._changes
                if not names:
                    self._thread = self._wake = None
                    for end in wake:
                        end.close()
                    return
            begun = time.monotonic()
            try:
                self._hear(names, change, wake[0])
                why = AgentUnavailable("the agent has ended the connection")
            except Exception as error:  # Whatever it was: without this thread no call would ever come.
                why = error
            with self._lock:
                # Not at the confirmation: what fails right after it would be tried ten times a second.
                if self._confirmed is not None and time.monotonic() - begun >= 1:
                    pause = 0.1
                self._confirmed = None
                must_wait = self._changes == change
            if must_wait:
                self._tell(why)
                _ready([wake[0]], pause)
                pause = min(pause * 2, 30)
            _drain(wake[0])

    def _hear(self, names, change, wake):
        """Reads calls until the agent ends the connection, or the functions change."""
        ending, waiting, has_head = False, b"", False
        body = json.dumps({"app": self.app, "container": self.id, "functions": names}).encode()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(self._socket)
            connection.sendall(b"POST /v1/function-calls HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            while True:
                if has_head and not ending:
                    # Silence means that there is nothing to say.
                    ready = _ready([connection, wake])
                    if wake in ready:
                        _drain(wake)
                        if self._changes != change:
                            # Both directions: the agent sees the end at once, and what it has sent can still be read.
                            ending = True
                            connection.shutdown(socket.SHUT_RDWR)
                    if not ending and connection not in ready:
                        continue
                piece = connection.recv(65536)
                if not piece:
                    return
                waiting += piece
                if len(waiting) > 1 << 19:
                    raise AgentUnavailable(f"{self._socket}: the answer is longer than a call can be")
                if not has_head:
                    head, mark, rest = waiting.partition(b"\r\n\r\n")
                    if not mark:
                        continue
                    found = re.match(rb"HTTP/\S+ (\d+)", head)
                    if not found:
                        raise AgentUnavailable(f"{self._socket}: the answer is not HTTP")
                    status = int(found[1])
                    if status != 200:
                        while piece:
                            piece = connection.recv(65536)
                            rest += piece
                            if len(rest) > 1 << 19:
                                raise AgentUnavailable(f"{self._socket}: the answer is longer than a refusal can be")
                        raise _refusal(status, json.loads(rest or b"{}"))
                    waiting, has_head = rest, True
                *lines, waiting = waiting.split(b"\n")
                for line in lines:
                    self._take(json.loads(line), change)

    def _take(self, message, change):
        """Takes the confirmation, or a call."""
        if message.get("listening"):
            with self._lock:
                self._confirmed = change
                is_current = self._changes == change
            if is_current:
                self._tell(None)
            return
        handler = self._tags.get(message.get("function"))
        if handler is None:
            self._unhandled += 1
        else:
            _call(handler, message["function"], message.get("parameters", {}))

    def _tell(self, why):
        self._problem = why
        text = why if why is None else str(why)
        if self._told != (text,):
            self._told = (text,)
            if self._observer:
                _call(self._observer, why)


class AgentUnavailable(Exception):
    """No agent answers at the control socket, or this user may not use it. The text says why."""


def _refusal(status, answer):
    try:
        message = answer["error"]["message"]
    except (KeyError, TypeError, IndexError):
        message = None
    message = message or f"the agent answered with {status}"
    return ValueError(message) if status in (400, 404, 413) else AgentUnavailable(message)


def _call(function, *words):
    """Calls a handler or an observer. Its mistake is said as that of a thread, and must not end the calls of the others."""
    try:
        function(*words)
    except BaseException:
        # The program's own hook may fail too, and nobody is left to tell.
        with contextlib.suppress(BaseException):
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))


def _ready(sockets, seconds=None):
    """Those of the sockets that can be read, once one of them can. Not by select(2), which knows 1,024 descriptors."""
    poll = select.poll()
    for each in sockets:
        poll.register(each, select.POLLIN)
    found = {descriptor for descriptor, _ in poll.poll(None if seconds is None else seconds * 1000)}
    return [each for each in sockets if each.fileno() in found]


def _drain(wake):
    try:
        while wake.recv(4096):
            pass
    except BlockingIOError:
        pass  # All was read.


def _property(key, value):
    if isinstance(value, datetime.datetime):
        return _time_text(value.timestamp())
    if isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(f"the property {key!r} is a {type(value).__name__}; write str, bool, int, float or datetime")


def _time_text(seconds):
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def _rename(old, new):
    try:
        os.rename(old, new)
    except FileNotFoundError:
        pass  # The agent, or another process of this name, was quicker.


def _is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _ask(path, method, target, body, deadline):
    """One request over the control socket by HTTP/1.0; its status and body."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        connection.connect(path)
        head = f"{method} {target} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall((head + body).encode("utf-8"))
        answer = b""
        while True:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            piece = connection.recv(65536)
            if not piece:
                break
            answer += piece
            if len(answer) > 8 << 20:
                raise ValueError("the answer is longer than 8 MiB")  # Another program's socket must not fill the memory.
    head, separator, content = answer.partition(b"\r\n\r\n")
    found = re.match(rb"HTTP/\S+ (\d+)", head)
    if not separator or not found:
        raise ValueError("the answer is not HTTP")
    return int(found[1]), content.decode("utf-8")


def _report(status, body):
    if status != 200:
        return Report("error", "queue", f"the agent refused to dispatch: {status}")
    reports = [report for report in map(json.loads, body.splitlines()) if "outcome" in report]
    results = {report["outcome"] for report in reports}
    result = "error" if "error" in results else "good" if "good" in results else "no_data"
    reasons = [f"{report['destination']}: {report['reason']}" for report in reports if report["reason"]]
    return Report(result, "destinations", ", ".join(reasons))
