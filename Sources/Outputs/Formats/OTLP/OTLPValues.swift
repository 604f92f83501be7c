internal import CScan
internal import Events
internal import Glibc
internal import Model

/// Writes JSON values as the protocol's (`AnyValue`), and attributes with unique keys.
///
/// The protocol demands unique keys: the last value of each key counts, at the position of its first. Keys
/// that are unique already, as nearly all are, are written as they come; only others are collected first.
enum OTLPValues {
    /// Levels of objects and lists that are written as such. What is nested deeper stays JSON, as a text: a
    /// hostile event must not exhaust the stack.
    static let depth = 32
    /// Most names that are compared with each other; more are looked up in a dictionary.
    static let mostCompared = 64

    /// An attribute that is collected, because keys occur several times or are renamed.
    struct Collected {
        let key: [UInt8]
        let value: Value
    }

    /// The value of an attribute.
    enum Value {
        case json(JSONBytes)
        case text(TextBytes)
        /// UTF-8 that is not an event's.
        case owned([UInt8])
    }

    /// Writes an attribute into a repeated field.
    @inline(__always)
    static func attribute<Sink: OTLPSink & ~Copyable>(
        _ field: UInt8, _ key: TextBytes, _ json: JSONBytes, _ depth: Int = depth, to sink: inout Sink
    ) {
        let mark = sink.openItem(field, about: key.count + json.count + 4)
        sink.text(1, "key", key)
        let value = sink.open(2, "value", about: json.count)
        content(of: json, depth, to: &sink)
        sink.close(value)
        sink.close(mark)
    }

    /// Writes an attribute whose value is a text.
    static func attribute<Sink: OTLPSink & ~Copyable>(
        _ field: UInt8, _ key: TextBytes, _ text: TextBytes, to sink: inout Sink
    ) {
        let mark = sink.openItem(field, about: key.count + text.count + 6)
        sink.text(1, "key", key)
        let value = sink.open(2, "value", about: text.count + 2)
        sink.text(1, "stringValue", text)
        sink.close(value)
        sink.close(mark)
    }

    /// Writes collected attributes: the last value of each key, at the position of its first.
    static func write<Sink: OTLPSink & ~Copyable>(
        _ field: UInt8, _ collected: [Collected], _ depth: Int = depth, to sink: inout Sink
    ) {
        var indices: [[UInt8]: Int] = [:]
        var unique: [Collected] = []
        for attribute in collected {
            if let index = indices[attribute.key] {
                unique[index] = attribute
            } else {
                indices[attribute.key] = unique.count
                unique.append(attribute)
            }
        }
        for attribute in unique {
            attribute.key.withTextBytes { key in
                switch attribute.value {
                case .json(let json): OTLPValues.attribute(field, key, json, depth, to: &sink)
                case .text(let text): OTLPValues.attribute(field, key, text, to: &sink)
                case .owned(let bytes):
                    bytes.withTextBytes { OTLPValues.attribute(field, key, $0, to: &sink) }
                }
            }
        }
    }

    private static func content<Sink: OTLPSink & ~Copyable>(
        of json: JSONBytes, _ depth: Int, to sink: inout Sink
    ) {
        switch json.first {
        case UInt8(ascii: "\""): sink.text(1, "stringValue", json.text ?? TextBytes(""))
        case UInt8(ascii: "t"), UInt8(ascii: "f"): sink.boolean(2, "boolValue", json.boolean ?? false)
        case UInt8(ascii: "n"): break
        case UInt8(ascii: "{") where depth > 0: object(json, depth - 1, to: &sink)
        case UInt8(ascii: "[") where depth > 0: list(json, depth - 1, to: &sink)
        case UInt8(ascii: "{"), UInt8(ascii: "["): sink.text(1, "stringValue", utf8: json.buffer)
        default: number(json, to: &sink)
        }
    }

    private static func number<Sink: OTLPSink & ~Copyable>(_ json: JSONBytes, to sink: inout Sink) {
        if let integer = json.integer {
            sink.integer(3, "intValue", integer)
            return
        }
        // A double would round a whole number beyond 64 bits, so it stays text.
        guard json.buffer.contains(where: { $0 == UInt8(ascii: ".") || $0 | 0x20 == UInt8(ascii: "e") }),
            let double = Double(String(decoding: json.buffer, as: UTF8.self)), double.isFinite
        else {
            sink.text(1, "stringValue", utf8: json.buffer)
            return
        }
        sink.double(4, "doubleValue", double)
    }

    private static func list<Sink: OTLPSink & ~Copyable>(
        _ json: JSONBytes, _ depth: Int, to sink: inout Sink
    ) {
        let mark = sink.open(5, "arrayValue", about: json.count)
        sink.openList("values")
        var offset = 1
        while offset < json.count - 1 {
            let byte = json.start[offset]
            if byte <= 0x20 || byte == UInt8(ascii: ",") {
                offset += 1
                continue
            }
            let end = max(RawWalk.valueEnd(json.start, offset, json.count - 1), offset + 1)
            let element = JSONBytes(json.start, offset..<end)
            let item = sink.openItem(1, about: element.count)
            content(of: element, depth, to: &sink)
            sink.close(item)
            offset = end
        }
        sink.closeList()
        sink.close(mark)
    }

    private static func object<Sink: OTLPSink & ~Copyable>(
        _ json: JSONBytes, _ depth: Int, to sink: inout Sink
    ) {
        let mark = sink.open(6, "kvlistValue", about: json.count)
        sink.openList("values")
        if !writeCompact(json, depth, to: &sink) {
            if hasUniqueNames(json) {
                forEachMember(of: json) { key, value in attribute(1, key, value, depth, to: &sink) }
            } else {
                var collected: [Collected] = []
                forEachMember(of: json) { collected.append(Collected(key: $0.decoded, value: .json($1))) }
                write(1, collected, depth, to: &sink)
            }
        }
        sink.closeList()
        sink.close(mark)
    }

    /// Writes the members of an object with one walk. Writes nothing and returns false if the object has
    /// blanks, or names that are not certainly unique.
    private static func writeCompact<Sink: OTLPSink & ~Copyable>(
        _ json: JSONBytes, _ depth: Int, to sink: inout Sink
    ) -> Bool {
        let most = 16
        return withUnsafeTemporaryAllocation(of: cscan_member.self, capacity: most) { members in
            guard json.count < Int(UInt32.max), let memory = members.baseAddress else { return false }
            var offset = 1
            let count = cscan_members(json.start, &offset, json.count, memory, most)
            guard count < most, offset == json.count - 1,
                areDifferent(UnsafeMutableBufferPointer(start: memory, count: count), json.start)
            else { return false }
            for index in 0..<count {
                let member = memory[index]
                let key = TextBytes(json.start + Int(member.name), Int(member.name_length), .plain)
                let value = JSONBytes(
                    json.start + Int(member.value), Int(member.value_length),
                    isEscaped: member.is_value_escaped)
                attribute(1, key, value, depth, to: &sink)
            }
            return true
        }
    }

    /// Whether names certainly differ: none has escapes, and names of one length have other bytes.
    private static func areDifferent(
        _ members: UnsafeMutableBufferPointer<cscan_member>, _ start: UnsafePointer<UInt8>
    ) -> Bool {
        for index in members.indices {
            let member = members[index]
            guard !member.is_name_escaped else { return false }
            for other in 0..<index where members[other].name_length == member.name_length {
                let isSame =
                    memcmp(
                        start + Int(members[other].name), start + Int(member.name),
                        Int(member.name_length)) == 0
                if isSame { return false }
            }
        }
        return true
    }

    /// Calls `body` with each member of an object.
    @inline(__always)
    static func forEachMember(of json: JSONBytes, _ body: (TextBytes, JSONBytes) -> Void) {
        guard json.isObject else { return }
        var walk = RawWalk(json.start, from: 0, to: json.count)
        while let member = walk.next(), !member.value.isEmpty {
            let name = json.start + member.name.lowerBound
            body(
                TextBytes(name, member.name.count, member.isEscaped ? .escaped : .plain),
                JSONBytes(json.start, member.value))
        }
    }

    /// Whether the names of an object are certainly different. Names with escapes, and more than can be
    /// compared, are not certain.
    private static func hasUniqueNames(_ json: JSONBytes) -> Bool {
        let factor = NameTable.known.factor
        return withUnsafeTemporaryAllocation(of: UInt32.self, capacity: mostCompared) { hashes in
            var count = 0
            var walk = RawWalk(json.start, from: 0, to: json.count)
            while let member = walk.nextName() {
                walk.skipValue()
                guard !member.isEscaped, count < mostCompared else { return false }
                let key = NameTable.Key(json.start + member.name.lowerBound, member.name.count)
                let hash = UInt32(truncatingIfNeeded: key.hash(factor) &>> 32)
                for index in 0..<count where hashes[index] == hash { return false }
                hashes[count] = hash
                count += 1
            }
            return true
        }
    }
}
