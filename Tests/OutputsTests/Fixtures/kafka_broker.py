"""Kafka brokers for tests: librdkafka's own mock cluster, and a consumer that reads all that it stores, in one process.

usage: kafka_broker.py COMMANDS ANSWERS [BROKERS]

Reads commands, a line each, from the named pipe COMMANDS, and answers each with a line appended to the file ANSWERS. The first
line there is the brokers' addresses. It ends when the pipe's last writer does.

  topic NAME PARTITIONS     makes a topic, and begins to read it
  errors API CODE...        the next requests of that kind fail so, one each (0: produce, 3: metadata, 22: producer id)
  topic-error NAME CODE     the topic is answered with that error from now on; 0: no more
  down N | up N | rtt N MS  a broker, by its number from 1; 0: all
  fake WHAT                 begins to play a broker of its own and answers with its address: `refusing` takes no password,
                            `elsewhere` says that every topic is at 192.0.2.1
  again                     reads all topics from their beginning, with new consumers
  read FILE                 writes what was stored since the beginning into FILE, a JSON line a record, in order by partition
"""

import ctypes
import json
import socket
import struct
import sys
import threading

sys.dont_write_bytecode = True

from kafka_library import PRODUCER, Reader, declare, handle, number, pointer, size, text

cluster_new = declare("mock_cluster_new", pointer, pointer, number)
bootstraps = declare("mock_cluster_bootstraps", text, pointer)
topic_create = declare("mock_topic_create", number, pointer, text, number, number)
push_errors = declare("mock_push_request_errors_array", None, pointer, ctypes.c_int16, size, ctypes.POINTER(number))
set_error = declare("mock_topic_set_error", None, pointer, text, number)
set_down = declare("mock_broker_set_down", number, pointer, ctypes.c_int32)
set_up = declare("mock_broker_set_up", number, pointer, ctypes.c_int32)
set_rtt = declare("mock_broker_set_rtt", number, pointer, ctypes.c_int32, number)


def name(word):
    return struct.pack(">h", len(word)) + word


def answer_of(what, api, version, body):
    """What a fake broker answers: as little of the protocol as a producer needs until it has failed."""
    if api == 18:  # ApiVersions: newer ones than 0 are unknown here, so it is asked for again.
        known = [(0, 0, 3), (1, 0, 4), (3, 0, 1), (17, 0, 1), (18, 0, 0), (22, 0, 0), (36, 0, 0)]
        return struct.pack(">hi", 35 if version > 0 else 0, len(known)) + b"".join(
            struct.pack(">hhh", *entry) for entry in known)
    if api == 17:  # SaslHandshake
        return struct.pack(">hi", 0, 1) + name(b"PLAIN")
    if api == 36:  # SaslAuthenticate
        return struct.pack(">h", 58) + name(b"no such user or password") + struct.pack(">i", 0)
    if api == 3 and what == "elsewhere":
        broker = struct.pack(">i", 1) + name(b"192.0.2.1") + struct.pack(">ih", 9092, -1)
        partition = struct.pack(">hiiiiii", 0, 0, 1, 1, 1, 1, 1)
        topic = struct.pack(">h", 0) + name(b"events") + struct.pack(">bi", 0, 1) + partition
        return struct.pack(">i", 1) + broker + struct.pack(">ii", 1, 1) + topic
    return None


def serve(connection, what):
    stream = connection.makefile("rb")
    while head := stream.read(4):
        request = stream.read(struct.unpack(">i", head)[0])
        api, version, correlation = struct.unpack(">hhi", request[:8])
        answer = answer_of(what, api, version, request)
        if answer is None:
            break
        connection.sendall(struct.pack(">ii", len(answer) + 4, correlation) + answer)
    connection.close()


def fake(what):
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0], what), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return "127.0.0.1:%d" % listener.getsockname()[1]


def main(commands, answers, count=3):
    owner = handle(PRODUCER, {"log_level": "0"})
    cluster = cluster_new(owner, count)
    brokers = bootstraps(cluster).decode()
    topics, readers = [], []
    out = open(answers, "a", buffering=1)
    print(brokers, file=out)

    def each(number, change):
        for broker in range(1, count + 1) if number == 0 else [number]:
            change(broker)

    for line in open(commands):
        words = line.split()
        answer = "ok"
        if words[0] == "topic":
            if topic_create(cluster, words[1].encode(), int(words[2]), min(count, 3)):
                sys.exit("no topic " + words[1])
            topics.append((words[1].encode(), int(words[2])))
            readers.append(Reader(brokers, *topics[-1]))
        elif words[0] == "again":
            readers = [Reader(brokers, *topic) for topic in topics]
        elif words[0] == "errors":
            codes = [int(word) for word in words[2:]]
            push_errors(cluster, int(words[1]), len(codes), (number * len(codes))(*codes))
        elif words[0] == "topic-error":
            set_error(cluster, words[1].encode(), int(words[2]))
        elif words[0] == "down":
            each(int(words[1]), lambda broker: set_down(cluster, broker))
        elif words[0] == "up":
            each(int(words[1]), lambda broker: set_up(cluster, broker))
        elif words[0] == "rtt":
            each(int(words[1]), lambda broker: set_rtt(cluster, broker, int(words[2])))
        elif words[0] == "fake":
            answer = fake(words[1])
        elif words[0] == "read":
            with open(words[1], "w") as file:
                for reader in readers:
                    with reader.lock:
                        records = sorted(reader.records, key=lambda record: record["partition"])
                    file.writelines(json.dumps(record) + "\n" for record in records)
        else:
            sys.exit("unknown command: " + line)
        print(answer, file=out)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 3)
