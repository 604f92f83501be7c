"""What the tests have the Python module do: steps.py MODULE STEP ARGUMENTS..."""
import datetime, importlib.util, os, socket, sys, threading, time

spec = importlib.util.spec_from_file_location("spoolship", sys.argv[1])
spoolship = importlib.util.module_from_spec(spec)
spec.loader.exec_module(spoolship)
step, directory, *words = sys.argv[2:]


def client(**options):
    return spoolship.Client(directory, control_socket=f"{directory}/nowhere.sock", **options)


def hidden():
    return sum(name.endswith(".part") for name in os.listdir(directory))


def attempt(body):
    try:
        body()
        print("ok")
    except spoolship.Refused as error:
        print("refused", error)
    except (ValueError, TypeError, RuntimeError) as error:
        print("refused", error)


class ToyAgent:
    """Gives every connection the same answer."""

    HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
    CONFIRMATION = HEAD + b'{"listening": true}\n'

    def __init__(self, stays):
        """stays: whether a connection lasts until the module ends it."""
        self.path, self.answer, self._stays = f"{directory}/s", b"", stays
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            threading.Thread(target=self._give, args=self._listener.accept()[:1], daemon=True).start()

    def _give(self, connection):
        with connection:
            try:
                request = b""
                while not request.endswith(b"}"):  # The body is one object.
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    request += piece
                connection.sendall(self.answer)
                while self._stays and connection.recv(65536):
                    pass
            except OSError:
                pass  # The module has ended the connection.


if step == "write":
    with client(durable=False, file_size=int(words[1])) as writer:
        count = int(words[0])
        threads = [threading.Thread(target=lambda first=first: [writer.track(str(n)) for n in range(first, count, 4)])
                   for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
elif step == "features":
    with client(manual_sessions=True) as writer:
        writer.set_country_code("it")
        moment = datetime.datetime(2026, 11, 20, 10, 0, 0, 123000, datetime.timezone.utc)
        writer.track("Video \"clicked\"\n", {"text": "é😀\x01", "whole": 9007199254740993, "number": 0.1, "yes": True,
                                             "time": moment}, critical=True)
        assert writer.start_session()
        writer.set_country_code(None)
        writer.track_event("b")
        writer.push(event="openScreen", cart={"items": [1, 2.5, None]})
        writer.track("c")
elif step == "mistakes":
    writer = client()
    for wrong in ("XX", "ITA", "", "ß"):
        attempt(lambda: writer.set_country_code(wrong))
    for wrong in (float("nan"), float("inf"), None, [1]):
        attempt(lambda: writer.track("x", {"x": wrong}))
    attempt(lambda: writer.track(""))
    attempt(lambda: writer.push())
    attempt(lambda: writer.push(type="x"))
    attempt(lambda: client(name="a b"))
    assert not writer.start_session()
    writer.close()
    attempt(lambda: writer.track("late"))
elif step == "pause":
    writer = client()
    writer.track("before")
    writer.pause()
    writer.pause()
    writer.track("kept")
    # Two of other programs.
    print(hidden(), "hidden")
    print(str(writer.is_paused).lower())
    writer.resume()
    writer.track("after")
    print(hidden() - 2, "hidden")
    print(str(writer.is_paused).lower())
    writer.pause()
    writer.track("closed")
    writer.close()
elif step == "disable":
    writer = client()
    print(str(writer.is_enabled).lower())
    writer.track("no" if writer.is_enabled is False else "yes")
    writer.is_enabled = not writer.is_enabled
    print(str(writer.is_enabled).lower())
    writer.close()
elif step == "state":
    writer = client()
    attempt(lambda: writer.track("x"))
    attempt(lambda: writer.track("x", critical=True))
elif step == "dispatch":
    def show(report):
        print(report.result, report.confirmed_by)
    writer = client()
    writer.track("x")
    show(writer.dispatch(timeout=float(words[0])))
    show(writer.dispatch(timeout=float(words[0])))
    writer.pause()
    show(writer.dispatch(timeout=float(words[0])))
    writer.close()
elif step == "send":
    writer = spoolship.Client(directory, control_socket=words[0])
    writer.track("x", {"key": words[1]})
    print(writer.dispatch(timeout=120).result, writer.dispatch(timeout=120).result)
    writer.close()
elif step == "functions":
    heard, told = [], []
    # The harness waits for 300 s: no shorter wait may decide.
    container = spoolship.Container("GTM-1234", app="default", control_socket=words[0], timeout=120)
    print(container.string("greeting"), container.integer("whole"), container.double("part"), container.boolean("flag"))
    container.register_macro("user", lambda name, parameters: "ann")
    container.register_macro("greet", lambda name, parameters: f"{name} {parameters['user']}")
    print(container.string("greeting"))
    container.register_macro("user", None)
    print(container.string("greeting"))
    for path, id in ((words[0], "GTM-9"), (f"{directory}/nowhere.sock", "GTM-1234")):
        try:
            spoolship.Container(id, control_socket=path, timeout=120).string("greeting")
        except (ValueError, spoolship.AgentUnavailable) as error:
            print(type(error).__name__)
    lost = spoolship.Container("GTM-1234", app="default", control_socket=f"{directory}/nowhere.sock")
    is_told = threading.Event()
    lost.observe_listening(lambda why: (told.append(type(why).__name__), is_told.set()))
    lost.register_tag("shown", print)
    assert is_told.wait(280)
    print(told, lost.is_listening, type(lost.listening_problem).__name__)
    lost.close()
    is_on, is_done = threading.Event(), threading.Event()

    def hear(name, parameters):
        heard.append(f"{name} {list(parameters.values())[0]}")
        if len(heard) == 21:
            is_done.set()
    container.observe_listening(lambda why: is_on.set() if why is None else None)
    container.register_tag("shown", hear)
    container.register_tag("bought", hear)
    assert is_on.wait(280)
    while not container.is_listening:
        time.sleep(0.01)
    with client() as writer:
        writer.push(event="openScreen", screenName="Home")
        for number in range(20):
            writer.track("Purchase", {"n": number})
    assert is_done.wait(280), heard
    print(sorted(heard) == sorted(["shown Home"] + [f"bought {n}" for n in range(20)]))
    container.close()
    print(container.is_listening)
elif step == "answers":
    agent = ToyAgent(stays=False)
    container = spoolship.Container("GTM-1234", control_socket=agent.path, timeout=120)
    for agent.answer in (b"HTTP/1.1 20", agent.HEAD + b'{"value":', agent.HEAD + b"null", agent.HEAD + b"[]",
                         agent.HEAD + b"x" * (9 << 20)):
        try:
            print(container.string("greeting"))
        except spoolship.AgentUnavailable as error:
            print("longer" if "longer than" in str(error) else "unavailable")
    with spoolship.Client(directory, control_socket=agent.path) as writer:
        report = writer.dispatch(timeout=120)
        print(report.result, report.confirmed_by, "longer" if "longer than" in report.reason else report.reason)
elif step == "bounds":
    agent = ToyAgent(stays=True)
    for begin in (b"", agent.CONFIRMATION, b"HTTP/1.1 404 Not Found\r\n\r\n"):
        agent.answer = begin + b"x" * (1 << 20)
        container = spoolship.Container("GTM-1234", app="default", control_socket=agent.path)
        is_longer = threading.Event()
        container.observe_listening(lambda why, done=is_longer: done.set() if "longer than" in str(why) else None)
        container.register_tag("f", print)
        is_longer.wait()
        print("longer")
        container.close()
elif step in ("hook", "start"):
    agent = ToyAgent(stays=True)
    agent.answer = agent.CONFIRMATION + b'{"function":"f","parameters":{"n":1}}\n'
    container = spoolship.Container("GTM-1234", app="default", control_socket=agent.path)
    is_called = threading.Event()

    def fail(*_):
        # A hook may end its program's thread, as with sys.exit.
        raise SystemExit("of the test") if step == "hook" else RuntimeError("of the test")

    def call(name, parameters):
        print(name, parameters["n"])
        is_called.set()
    if step == "hook":
        threading.excepthook = fail
        container.observe_listening(fail)
    else:
        # As where the process may have no more threads.
        start, threading.Thread.start = threading.Thread.start, fail
        attempt(lambda: container.register_tag("f", call))
        threading.Thread.start = start
    container.register_tag("f", call)
    is_called.wait()
    container.close()
elif step == "values":
    values = spoolship.Values(directory)
    for key in ("text", "number", "whole", "part", "flag"):
        double = values.double(key)
        text = int(double) if double.is_integer() else double
        print(values.string(key), values.integer(key), text, str(values.boolean(key)).lower(), sep=":")
