internal import EventLoops
internal import Events
internal import Glibc
internal import Model

/// The fields of one entry, and the line that they become. Its buffers are used again for the next entry.
struct JournalEntry {
    /// A field of the entry that is taken.
    private struct Part {
        /// Which of `fields`; nil: one of those that nobody named, whose name is in `bytes`.
        var field: Int?
        var name: Range<Int>
        var value: Range<Int>
    }

    private let fields: [JournalField]
    /// Their names, one after the other, and where each is: each field of each entry is looked for in them.
    private let names: [UInt8]
    private let places: [(start: Int, count: Int)]
    /// The entry in which each field was last taken, and this one's number.
    private var lastTaken: [Int]
    private var number = 0
    private let takesAll: Bool
    private let looksAtUnits: Bool
    private var check = ObjectCheck()

    /// What the parts say, one after the other.
    private var bytes: [UInt8] = []
    private var parts: [Part] = []
    /// What the filter looks at.
    private(set) var subject = JournalFilter.Subject()

    /// The message is the first field, its priority the second.
    init(_ options: JournalOptions) {
        var names = ["MESSAGE"] + JournalField.usual
        takesAll = options.fields.contains("*")
        let wanted = takesAll ? JournalField.withOtherNames : options.fields
        for name in wanted where !names.contains(name) { names.append(name) }
        fields = names.map { JournalField($0) }
        var all: [UInt8] = []
        places = fields.map { field in
            defer { all += field.name }
            return (all.count, field.name.count)
        }
        self.names = all
        lastTaken = Array(repeating: 0, count: fields.count)
        looksAtUnits = !options.units.isEmpty
    }

    /// Forgets the entry before.
    mutating func begin() {
        bytes.removeAll(keepingCapacity: true)
        parts.removeAll(keepingCapacity: true)
        number += 1
        subject = JournalFilter.Subject()
    }

    /// Takes a field as the journal has it, `NAME=value`. Of several of one name the first counts.
    mutating func take(_ text: UnsafeBufferPointer<UInt8>) {
        guard let base = text.baseAddress, let found = memchr(base, Int32(UInt8(ascii: "=")), text.count) else {
            return
        }
        let length = UnsafeRawPointer(found) - UnsafeRawPointer(base)
        let name = UnsafeBufferPointer(start: base, count: length)
        let value = UnsafeBufferPointer(start: base + length + 1, count: text.count - length - 1)
        if looksAtUnits { lookAtUnit(name, value) }
        if let field = field(base, length) {
            guard lastTaken[field] != number else { return }
            lastTaken[field] = number
            if field == 1, value.count == 1, (0x30...0x37).contains(value[0]) {
                subject.priority = Int(value[0]) - 0x30
            }
            parts.append(Part(field: field, name: 0..<0, value: keep(value)))
        } else if takesAll, name.allSatisfy(JournalEntry.isNameByte),
            !parts.contains(where: { $0.field == nil && bytes[$0.name].elementsEqual(name) })
        {
            parts.append(Part(field: nil, name: keep(name), value: keep(value)))
        }
    }

    private func field(_ name: UnsafePointer<UInt8>, _ length: Int) -> Int? {
        names.withUnsafeBufferPointer { names in
            guard let base = names.baseAddress else { return nil }
            for (index, place) in places.enumerated()
            where place.count == length && memcmp(base + place.start, name, length) == 0 { return index }
            return nil
        }
    }

    /// Whether journald would take it in a field's name: capital letters, digits, underscores.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        (0x41...0x5A).contains(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "_")
    }

    private mutating func keep(_ text: UnsafeBufferPointer<UInt8>) -> Range<Int> {
        let start = bytes.count
        bytes.append(contentsOf: text)
        return start..<bytes.count
    }

    private mutating func lookAtUnit(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        switch name.count {
        case 4 where name.elementsEqual("UNIT".utf8): subject.managedUnit = Array(value)
        case 4 where name.elementsEqual("_PID".utf8): subject.isManager = value.elementsEqual("1".utf8)
        case 4 where name.elementsEqual("_UID".utf8): subject.isRoot = value.elementsEqual("0".utf8)
        case 13 where name.elementsEqual("_SYSTEMD_UNIT".utf8): subject.unit = Array(value)
        case 13 where name.elementsEqual("COREDUMP_UNIT".utf8): subject.coredumpUnit = Array(value)
        case 19 where name.elementsEqual("OBJECT_SYSTEMD_UNIT".utf8): subject.objectUnit = Array(value)
        default: break
        }
    }

    // MARK: The line

    /// Appends the entry as a line of JSON with its line feed.
    ///
    /// A message that is a JSON object is the line, and the other fields follow its own members; any other message is the member
    /// `message`. Bytes that are not UTF-8 stay as they are. What is longer than `limit` is cut in its longest field; the members
    /// `truncated_member` and `truncated_bytes` say so.
    ///
    /// - Parameters:
    ///   - time: when journald took the entry.
    ///   - limit: the longest line in bytes, its line feed not counted.
    /// - Returns: whether it was cut.
    mutating func write(into lines: inout [UInt8], time: Timestamp, limit: Int) -> Bool {
        let start = lines.count
        // Its members may be in any order; what is looked for is the message.
        if let message = parts.firstIndex(where: { $0.field == 0 }), appendObject(message, to: &lines) {
            appendMembers(to: &lines, behind: start..<lines.count)
            append("__REALTIME_TIMESTAMP", number: time.nanoseconds / 1000, to: &lines)
            end(&lines)
            if lines.count - start <= limit + 1 { return false }
            lines.removeSubrange(start...)
        }
        appendText(to: &lines, time, cut: nil)
        var cut: (part: Int, bytes: Int)?
        while lines.count - start > limit + 1 {
            // Each byte of a value is at least one of the line.
            guard let longest = parts.indices.max(by: { parts[$0].value.count < parts[$1].value.count }),
                !parts[longest].value.isEmpty
            else { break }
            let before = parts[longest].value.count
            shorten(longest, by: lines.count - start - limit - 1 + (cut == nil ? JournalEntry.markBytes : 0))
            cut = (cut?.part ?? longest, (cut?.bytes ?? 0) + before - parts[longest].value.count)
            lines.removeSubrange(start...)
            appendText(to: &lines, time, cut: cut)
        }
        return cut != nil
    }

    /// What the two members that mark a cut take at most, the name of the field not counted.
    private static let markBytes = 80

    /// Cuts a value, never within a character of UTF-8.
    private mutating func shorten(_ part: Int, by count: Int) {
        let value = parts[part].value
        var end = max(value.lowerBound, value.upperBound - count)
        while end > value.lowerBound, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        parts[part].value = value.lowerBound..<end
    }

    /// Appends the message if it is a JSON object, without its closing bracket.
    private mutating func appendObject(_ message: Int, to lines: inout [UInt8]) -> Bool {
        let value = parts[message].value
        guard bytes[value].first == UInt8(ascii: "{") else { return false }
        let start = lines.count
        lines.append(contentsOf: bytes[value])
        lines.append(UInt8(ascii: "\n"))
        guard let close = check.end(of: lines, from: start) else {
            lines.removeSubrange(start...)
            return false
        }
        lines.removeSubrange(close...)
        // Line breaks are white space between its tokens: within a string there can be none.
        for index in start..<lines.count where lines[index] == 0x0A || lines[index] == 0x0D { lines[index] = 0x20 }
        return true
    }

    private func appendText(to lines: inout [UInt8], _ time: Timestamp, cut: (part: Int, bytes: Int)?) {
        lines.append(UInt8(ascii: "{"))
        lines.append(contentsOf: "\"timestamp\":\"".utf8)
        TimestampText.append(time, to: &lines)
        lines.append(contentsOf: "\",".utf8)
        appendMembers(to: &lines, behind: nil)
        if let cut {
            append("truncated_bytes", number: Int64(cut.bytes), to: &lines)
            append("truncated_member", text: String(decoding: member(parts[cut.part]), as: UTF8.self), to: &lines)
        }
        end(&lines)
    }

    /// The closing bracket in place of the comma after the last member.
    private func end(_ lines: inout [UInt8]) {
        if lines.last == UInt8(ascii: ",") { lines.removeLast() }
        lines.append(contentsOf: "}\n".utf8)
    }

    /// Appends the parts, each followed by a comma.
    ///
    /// - Parameter object: where the message is that is the line's beginning: it is left out, and so is what has the name of one
    ///   of its members, or might have.
    private func appendMembers(to lines: inout [UInt8], behind object: Range<Int>?) {
        if let object, lines[object].last != UInt8(ascii: "{") { lines.append(UInt8(ascii: ",")) }
        bytes.withUnsafeBufferPointer { bytes in
            for part in parts {
                if let object {
                    guard part.field != 0, !JournalEntry.has(lines[object], quoted: member(part)) else { continue }
                }
                if let field = part.field {
                    lines.append(contentsOf: fields[field].opening)
                } else {
                    lines.append(UInt8(ascii: "\""))
                    lines.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[part.name]))
                    lines.append(contentsOf: "\":".utf8)
                }
                let value = UnsafeBufferPointer(rebasing: bytes[part.value])
                if let field = part.field, fields[field].isNumber, JournalEntry.isNumber(value) {
                    lines.append(contentsOf: value)
                } else {
                    JSONString.append(value, to: &lines)
                }
                lines.append(UInt8(ascii: ","))
            }
        }
    }

    /// Whether a text is a whole number as JSON writes it, of at most 18 digits.
    private static func isNumber(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard (1...18).contains(text.count), text.count == 1 || text[0] != 0x30 else { return false }
        for byte in text where byte < 0x30 || byte > 0x39 { return false }
        return true
    }

    /// A part's member: only capital letters, digits and underscores where journald's name is kept.
    private func member(_ part: Part) -> ArraySlice<UInt8> {
        if let field = part.field { return fields[field].member[...] }
        return bytes[part.name]
    }

    private static func has(_ object: ArraySlice<UInt8>, quoted name: ArraySlice<UInt8>) -> Bool {
        object.withUnsafeBytes { object in name.withUnsafeBytes { contains(object, quoted: $0) } }
    }

    private static func contains(_ text: UnsafeRawBufferPointer, quoted name: UnsafeRawBufferPointer) -> Bool {
        guard text.count >= name.count + 2 else { return false }
        for start in 0...(text.count - name.count - 2)
        where text[start] == UInt8(ascii: "\"") && text[start + name.count + 1] == UInt8(ascii: "\"") {
            if text[(start + 1)...].starts(with: name) { return true }
        }
        return false
    }

    private func append(_ name: StaticString, text: String, to lines: inout [UInt8]) {
        lines.append(contentsOf: "\"\(name)\":\"\(text)\",".utf8)
    }

    private func append(_ name: StaticString, number: Int64, to lines: inout [UInt8]) {
        lines.append(contentsOf: "\"\(name)\":\(number),".utf8)
    }
}
