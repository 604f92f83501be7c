#!/usr/bin/env python3
"""Writes events for benchmarks: the same seed and start give the same bytes.

The events' times begin at the last full hour, because older ones than `queue.max_age` would expire.

usage: generate.py DIRECTORY [--events 200000] [--files 10] [--seed 42]
                   [--profile standard|tiny|large|critical|additions|drop|pino|nginx|logfmt]
                   [--start 2026-11-20T10:00:00]
"""
import argparse
import datetime
import json
import os
import random

CATEGORIES = ["Music", "Film", "News", "Sport", "Education", "Comedy", "Travel", "Science"]
NAMES = ["Video clicked", "Page viewed", "Order placed", "Search done", "Item shared", "Player stopped", "Login", "Error seen"]
AGENTS = ["Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0", "curl/8.5.0",
          "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36"]
CITIES = ["Milano", "Torino", "Bari", "Palermo", "Genova", "Verona", "Trieste", "Cagliari"]


def event(number: int, start: datetime.datetime, chance: random.Random, profile: str) -> str:
    time = start + datetime.timedelta(milliseconds=number)
    stamp = f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"
    if profile == "pino":
        # A line as pino writes it, with its ISO time.
        return (f'{{"level":{chance.choice([20, 30, 30, 30, 40, 50])},"time":"{stamp}","pid":{chance.randint(300, 32000)},'
                f'"hostname":"web-17","req":{{"method":"GET","url":"/watch/{chance.randint(1, 9999)}"}},'
                f'"res":{{"statusCode":200}},"responseTime":{chance.randint(1, 900)},"msg":"request completed"}}')
    if profile == "nginx":
        # nginx's combined format, which is Apache's too.
        address = ".".join(str(chance.randint(1, 254)) for _ in range(4))
        return (f'{address} - {chance.choice(["-", "-", "-", "alice"])} [{time:%d/%b/%Y:%H:%M:%S} +0000] '
                f'"{chance.choice(["GET", "GET", "POST"])} /watch/{chance.randint(1, 9999)}?page={chance.randint(1, 40)} HTTP/1.1" '
                f'{chance.choice([200, 200, 304, 404, 500])} {chance.randint(100, 90000)} '
                f'"{chance.choice(["-", "https://shop.example/cart"])}" "{chance.choice(AGENTS)}"')
    if profile == "logfmt":
        return (f'time={stamp} level={chance.choice(["info", "info", "warn", "error"])} msg="request completed" method=GET '
                f'path=/watch/{chance.randint(1, 9999)} status={chance.choice([200, 404])} duration={chance.randint(1, 900)}ms '
                f'user=u{chance.randint(1, 50000)} trace={chance.getrandbits(128):032x}')
    value = {"name": chance.choice(NAMES), "timestamp": stamp}
    if profile == "tiny":
        value["n"] = number
        return json.dumps(value, separators=(",", ":"))
    if profile == "critical" and chance.random() < 0.1:
        value["priority"] = "critical"
    if profile != "additions":
        value["session_id"] = f"{chance.getrandbits(48):012x}"
    value["properties"] = {
        "Category": chance.choice(CATEGORIES),
        "City": chance.choice(CITIES),
        "Duration": chance.randint(1, 7200),
        "Position": round(chance.random() * 7200, 3),
        "User": f"user-{chance.randint(1, 50000):05}",
        "Autoplay": chance.random() < 0.5,
        "Path": f"/watch/{chance.choice(CATEGORIES).lower()}/{chance.randint(1, 9999)}?ref=front&pos={chance.randint(1, 40)}",
    }
    text = "x" if profile != "large" else " ".join(chance.choice(CATEGORIES) for _ in range(1250))
    value["properties"]["Note"] = text if profile == "large" else f"request {chance.getrandbits(64):016x} took {chance.randint(1, 900)} ms"
    return json.dumps(value, separators=(",", ":"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--profile", default="standard", choices=["standard", "tiny", "large", "critical", "additions", "drop", "pino",
                                                                         "nginx", "logfmt"])
    parser.add_argument("--seed", type=int, default=42)
    hour = datetime.datetime.now(datetime.timezone.utc).replace(minute=0, second=0, microsecond=0, tzinfo=None)
    parser.add_argument("--start", type=datetime.datetime.fromisoformat, default=hour - datetime.timedelta(hours=1))
    options = parser.parse_args()
    chance = random.Random(options.seed)
    os.makedirs(options.directory, exist_ok=True)
    if options.profile == "drop":
        # A file for each event, complete at once.
        for number in range(options.events):
            with open(os.path.join(options.directory, f"{number:07}.json"), "w", encoding="utf-8") as output:
                output.write(event(number, options.start, chance, "standard") + "\n")
        return
    for file in range(options.files):
        first = options.events * file // options.files
        last = options.events * (file + 1) // options.files
        lines = [event(number, options.start, chance, options.profile) for number in range(first, last)]
        with open(os.path.join(options.directory, f"app-{file:02}.jsonl"), "w", encoding="utf-8") as output:
            output.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
