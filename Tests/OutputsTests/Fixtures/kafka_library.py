"""librdkafka for tests: handles, and a consumer that reads all of a topic."""

import ctypes
import sys
import threading

lib = ctypes.CDLL("librdkafka.so.1")
text, pointer, size, number = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
PRODUCER, CONSUMER = 0, 1
PARTITION_END = -191


class Message(ctypes.Structure):
    _fields_ = [
        ("code", number), ("topic", pointer), ("partition", ctypes.c_int32), ("value", pointer), ("length", size),
        ("key", pointer), ("key_length", size), ("offset", ctypes.c_int64), ("private", pointer),
    ]


def declare(name, result, *arguments):
    function = getattr(lib, "rd_kafka_" + name)
    function.restype, function.argtypes = result, arguments
    return function


conf_new = declare("conf_new", pointer)
conf_set = declare("conf_set", number, pointer, text, text, text, size)
new = declare("new", pointer, number, pointer, text, size)
list_new = declare("topic_partition_list_new", pointer, number)
list_add = declare("topic_partition_list_add", pointer, pointer, text, ctypes.c_int32)
assign = declare("assign", number, pointer, pointer)
poll = declare("consumer_poll", ctypes.POINTER(Message), pointer, number)
message_destroy = declare("message_destroy", None, ctypes.POINTER(Message))
message_timestamp = declare(
    "message_timestamp", ctypes.c_int64, ctypes.POINTER(Message), ctypes.POINTER(number))
message_headers = declare("message_headers", number, ctypes.POINTER(Message), ctypes.POINTER(pointer))
header_at = declare(
    "header_get_all", number, pointer, size, ctypes.POINTER(text), ctypes.POINTER(pointer), ctypes.POINTER(size))


def handle(kind, properties):
    words, conf = ctypes.create_string_buffer(512), conf_new()
    for name, value in properties.items():
        if conf_set(conf, name.encode(), value.encode(), words, 512):
            sys.exit(words.value.decode())
    return new(kind, conf, words, 512) or sys.exit(words.value.decode())


def headers(message):
    found, name, value, length = pointer(), text(), pointer(), size()
    if message_headers(message, ctypes.byref(found)):
        return {}
    pairs, index = {}, 0
    while not header_at(found, index, ctypes.byref(name), ctypes.byref(value), ctypes.byref(length)):
        pairs[name.value.decode()] = ctypes.string_at(value.value, length.value).decode()
        index += 1
    return pairs


class Reader(threading.Thread):
    """Reads a topic from its beginning on."""

    def __init__(self, brokers, topic, partitions, properties={}):
        super().__init__(daemon=True)
        self.records, self.lock, self.topic = [], threading.Lock(), topic.decode()
        # The partitions of which nothing more is there to read.
        self.ended = set()
        self.consumer = handle(CONSUMER, {
            "bootstrap.servers": brokers, "group.id": "reader", "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": "50", "fetch.error.backoff.ms": "10", "reconnect.backoff.ms": "10",
            "reconnect.backoff.max.ms": "100", "log_level": "0", "enable.partition.eof": "true",
            **properties,
        })
        wanted = list_new(partitions)
        for partition in range(partitions):
            list_add(wanted, topic, partition)
        if assign(self.consumer, wanted):
            sys.exit("cannot read " + topic)
        self.start()

    def run(self):
        while True:
            message = poll(self.consumer, 100)
            if not message:
                continue
            found = message.contents
            with self.lock:
                if found.code == PARTITION_END:
                    self.ended.add(found.partition)
                elif found.code == 0:
                    self.ended.discard(found.partition)
                    record = {
                        "topic": self.topic, "partition": found.partition,
                        "key": ctypes.string_at(found.key, found.key_length).decode() if found.key else None,
                        "value": ctypes.string_at(found.value, found.length).decode(), "headers": headers(message), "time": message_timestamp(message, ctypes.byref(number())),
                    }
                    self.records.append(record)
            message_destroy(message)
