"""Random JSON texts, whole and damaged, and what is in them by Python's json module: for ObjectSplitterTests.

    texts.py SEED COUNT

One line a text: its bytes, the values before its first fault, and the byte from which on nothing stands (or the end),
all in hexadecimal, and whether the text is whole: TEXT VALUE@OFFSET,VALUE@OFFSET,… REST WHOLE
"""

import json
import random
import sys


def no_constant(name):
    raise ValueError(name)


DECODER = json.JSONDecoder(parse_constant=no_constant)
SPACE = " \t\r\n"


def value(text, at):
    """The end of the value at a place; None if there is none."""
    try:
        end = DECODER.raw_decode(text, at)[1]
    except (ValueError, StopIteration):
        return None
    # Python takes the `1` of `1.` for a number and stops there; JSON has no number that goes on so.
    if text[at] in "-0123456789" and end < len(text) and text[end] in "0123456789.eE+-":
        return None
    return end


def over(text, at):
    while at < len(text) and text[at] in SPACE:
        at += 1
    return at


def judge(text):
    """The values before the first fault, where the rest begins (behind the last value and the comma after it), and
    whether the text is whole."""
    values = []
    start = over(text, 3 if text.startswith("\xef\xbb\xbf") else 0)
    if text[start : start + 1] != "[":
        while True:
            at = over(text, start)
            is_next = not values or text[at : at + 1] == "{" and set(text[start:at]) & set("\r\n")
            end = value(text, at) if is_next and at < len(text) else None
            if end is None:
                return values, at if values else 0, bool(values) and at == len(text)
            values.append((at, end))
            start = end
    at = over(text, start + 1)
    if text[at : at + 1] != "]":
        while True:
            end = value(text, at) if at < len(text) else None
            # A number that the text ends with may have lost digits.
            if end is None or end == len(text) and text[at] in "-0123456789":
                return values, at, False
            values.append((at, end))
            at = over(text, end)
            if text[at : at + 1] == "]":
                break
            if text[at : at + 1] != ",":
                return values, at, False
            at = over(text, at + 1)
    rest = over(text, at + 1)
    return values, rest, rest == len(text)


def one_line(text):
    """Without the line breaks outside strings."""
    # No string has a raw one.
    return text.replace("\r", "").replace("\n", "")


def some(chance, depth=0):
    kind = chance.randrange(9 if depth < 4 else 6)
    space = lambda: chance.choice(["", "", "", " ", "\n", "\r\n", "\t ", "  "])
    if kind == 0:
        return chance.choice(["true", "false", "null"])
    if kind == 1:
        return json.dumps(chance.choice([0, -1, 12, 3.25, -0.5, 1e30, 2e-7, 10**25]))
    if kind <= 5:
        letters = chance.choices(['a', ' ', '\\"', '\\\\', '\\n', '\\u00e9', '{', '}', '[', ']', ',', ':', 'é'], k=chance.randrange(8))
        return '"' + "".join(letters) + '"'
    count = chance.randrange(4)
    if kind == 6:
        inner = [space() + some(chance, depth + 1) + space() for _ in range(count)]
        return "[" + (",".join(inner) or space()) + "]"
    inner = [space() + f'"m{i}"' + space() + ":" + space() + some(chance, depth + 1) + space() for i in range(count)]
    return "{" + (",".join(inner) or space()) + "}"


def text(chance):
    space = lambda: chance.choice(["", "", " ", "\n", "\t", "\r\n "])
    kind = chance.randrange(10)
    if kind < 6:
        values = [space() + some(chance) + space() for _ in range(chance.randrange(6))]
        result = space() + "[" + (",".join(values) or space()) + "]" + space()
    elif kind < 8:
        result = space() + some(chance) + space()
    else:
        objects = ["{" + f'"n": {i}' + "}" for i in range(chance.randrange(1, 5))]
        result = chance.choice(["\n", "\r\n", " \n", "", " "]).join(objects) + space()
    if chance.randrange(12) == 0:
        result = "\ufeff" + result
    data = bytearray(result.encode())
    # Damage: bytes that are gone, come twice, or are others.
    for _ in range(chance.choice([0, 0, 0, 1, 1, 2, 3])):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            data[at : at + chance.randrange(1, 4)] = b""
        elif kind == 1:
            data[at:at] = chance.choice([b",", b"[", b"]", b"{", b"}", b":", b'"', b"\\", b"1", b".", b"e", b"-", b"nul", b"\0", b"\n", b"x", b"0"])
        elif kind == 2:
            data[at:at] = data[at : at + chance.randrange(1, 30)]
        else:
            del data[at:]
    return bytes(data)


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    chance = random.Random(seed)
    for _ in range(count):
        data = text(chance)
        # A character a byte: Python's places are then ours.
        latin = data.decode("latin-1")
        values, rest, is_whole = judge(latin)
        found = ",".join(f"{one_line(latin[a:b]).encode('latin-1').hex()}@{a:x}" for a, b in values)
        print(data.hex() or "-", found or "-", f"{rest:x}", int(is_whole))


main()
