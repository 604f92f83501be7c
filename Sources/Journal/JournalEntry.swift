internal import EventLoops
internal import Events
internal import Glibc
internal import Model

/// The fields of one entry, and the line that they become. Its buffers are used again for the next entry.
///
/// Most fields say what they said in entries before: the unit, the host, the boot. Their texts are kept, each with the member that it
/// becomes, and what is found again, byte for byte, is not looked into again.
struct JournalEntry: ~Copyable {
    /// A field, `NAME=value`. Where its parts are in `bytes`.
    private struct Part {
        /// Which of `fields`; nil: one that nobody named.
        var field: Int?
        /// Whether it names the stream that the line is of.
        var isStream = false
        /// Whether it becomes a member: nobody may have asked for it but the filter.
        var isTaken = false
        var name = 0..<0
        var value = 0..<0
        /// The member, behind a comma; empty where it is not made yet.
        var member = 0..<0
        var findings: JournalFilter.Findings = []
    }

    private let filter: JournalFilter
    private let fields: [JournalField]
    /// The entry in which each field was last taken, and this one's number.
    private var lastTaken: [Int]
    private var number = 0
    private let takesAll: Bool
    private var check: ObjectCheck
    private var timeWriter = TimestampWriter()

    /// The texts that are kept, one after the other, then what else this entry says.
    private var bytes: [UInt8] = []
    private var kept = 0
    /// The texts that are kept, each at a place that its address in the library's memory gives: a text that is stored once is read there
    /// again and again. Whatever is there, it is compared.
    private var known = [Part](repeating: Part(), count: JournalEntry.mostKnown)
    private var parts: [Part] = []
    /// Where the stream of this entry is in `bytes`.
    private var stream = 0..<0
    /// The streams whose last entry was such a piece.
    private var unfinished: Set<[UInt8]> = []
    private var findings: JournalFilter.Findings = []
    private var line = LineBuffer()

    private static let timeName = "__REALTIME_TIMESTAMP"
    private static let mostKnown = 512
    /// Longer texts are hardly ever the same.
    private static let longestKnown = 256
    /// With more than this all texts are forgotten.
    private static let mostKept = 64 << 10

    /// The message is the first field, its priority the second.
    init(_ options: JournalOptions) {
        var names = ["MESSAGE"] + JournalField.usual
        takesAll = options.fields.contains("*")
        let wanted = takesAll ? JournalField.withOtherNames : options.fields
        for name in wanted where !names.contains(name) { names.append(name) }
        fields = names.map { JournalField($0) }
        check = ObjectCheck(fields.map { String(decoding: $0.member, as: UTF8.self) } + [JournalEntry.timeName])
        lastTaken = Array(repeating: 0, count: fields.count)
        filter = JournalFilter(options)
    }

    mutating func begin() {
        if kept > JournalEntry.mostKept {
            kept = 0
            for index in known.indices { known[index] = Part() }
        }
        bytes.removeLast(bytes.count - kept)
        parts.removeAll(keepingCapacity: true)
        number += 1
        findings = []
        stream = 0..<0
    }

    var passes: Bool { filter.passes(findings) }

    /// Takes a field as the journal has it, `NAME=value`. Of several of one name the first counts.
    mutating func take(_ text: UnsafeBufferPointer<UInt8>) {
        guard let base = text.baseAddress, !text.isEmpty else { return }
        let place = Int(bitPattern: base) >> 3 & (JournalEntry.mostKnown - 1)
        let start = known[place].name.lowerBound
        if known[place].value.upperBound - start == text.count,
            bytes.withUnsafeBytes({ memcmp($0.baseAddress.unsafelyUnwrapped + start, base, text.count) == 0 })
        {
            return add(known[place])
        }
        guard let part = read(text, base) else { return }
        // Of messages hardly one is like the one before.
        if part.field != 0, text.count <= JournalEntry.longestKnown {
            known[place] = part
            kept = bytes.count
        }
        add(part)
    }

    private mutating func add(_ part: Part) {
        if let field = part.field {
            guard lastTaken[field] != number else { return }
            lastTaken[field] = number
        }
        findings.formUnion(part.findings)
        if part.isStream { stream = part.value }
        if part.isTaken, part.field != nil || !parts.contains(where: { bytes[$0.name] == bytes[part.name] }) {
            parts.append(part)
        }
    }

    /// Looks into a field and keeps its text; nil for what is none.
    private mutating func read(_ text: UnsafeBufferPointer<UInt8>, _ base: UnsafePointer<UInt8>) -> Part? {
        guard let found = memchr(base, Int32(UInt8(ascii: "=")), text.count) else { return nil }
        let length = UnsafeRawPointer(found) - UnsafeRawPointer(base)
        let name = UnsafeBufferPointer(start: base, count: length)
        let value = UnsafeBufferPointer(start: base + length + 1, count: text.count - length - 1)
        let field = fields.indices.first {
            fields[$0].name.count == length && memcmp(fields[$0].name, base, length) == 0
        }
        var part = Part(field: field, findings: filter.findings(name, value))
        // What journald would take in a name: capital letters, digits, underscores.
        part.isTaken =
            field != nil || takesAll && name.allSatisfy { 0x41...0x5A ~= $0 || 0x30...0x39 ~= $0 || $0 == 0x5F }
        part.isStream = name.elementsEqual("_STREAM_ID".utf8)
        if text.elementsEqual("_LINE_BREAK=line-max".utf8) { part.findings.insert(.goesOn) }
        guard part.isTaken || text.count <= JournalEntry.longestKnown else { return part }
        let start = bytes.count
        bytes.append(contentsOf: text)
        part.name = start..<start + length
        part.value = start + length + 1..<bytes.count
        // A message may be an object.
        if part.isTaken, field != 0 || value.first != UInt8(ascii: "{") { part.member = makeMember(part, value) }
        return part
    }

    // MARK: Members

    private mutating func makeMember(_ part: Part, _ value: UnsafeBufferPointer<UInt8>) -> Range<Int> {
        let start = bytes.count
        bytes += part.field.map { fields[$0].opening } ?? JournalField.opening(bytes[part.name])
        if let field = part.field, fields[field].isNumber, JournalEntry.isNumber(value) {
            bytes.append(contentsOf: value)
        } else {
            JSONString.append(value, to: &bytes)
        }
        return start..<bytes.count
    }

    /// Makes the member of a part whose value is another now, or was left as it is.
    private mutating func remake(_ part: Int) {
        parts[part].member = Array(bytes[parts[part].value]).withUnsafeBufferPointer { makeMember(parts[part], $0) }
    }

    /// Whether a text is a whole number as JSON writes it, of at most 18 digits.
    private static func isNumber(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        (1...18).contains(text.count) && (text.count == 1 || text[0] != 0x30) && text.allSatisfy { 0x30...0x39 ~= $0 }
    }

    /// The name of a part's member: only capital letters, digits and underscores where journald's name is kept.
    private func memberName(_ part: Part) -> ArraySlice<UInt8> {
        part.field.map { fields[$0].member[...] } ?? bytes[part.name]
    }

    // MARK: The line

    /// Appends the entry as a line of JSON with its line feed.
    ///
    /// A message that is a JSON object is the line, and the other fields follow its own members; any other message, and one that
    /// contradicts journald, is the member `message`. Bytes that are not UTF-8 stay as they are. What is longer than `limit` is cut in its longest field; the members
    /// `truncated_member` and `truncated_bytes` say so.
    ///
    /// - Parameters:
    ///   - time: when journald took the entry.
    ///   - limit: the longest line in bytes, its line feed not counted.
    /// - Returns: whether it was cut.
    mutating func write(into lines: inout [UInt8], time: Timestamp, limit: Int) -> Bool {
        var cut: (part: Int, bytes: Int)?
        noteSeam()
        if !writeObject(time, limit: limit) {
            writeText(time, cut: nil)
            while line.count > limit + 1 {
                // Each byte of a value is at least one of the line.
                guard let longest = parts.indices.max(by: { parts[$0].value.count < parts[$1].value.count }),
                    !parts[longest].value.isEmpty
                else { break }
                let before = parts[longest].value.count
                shorten(longest, by: line.count - limit - 1 + (cut == nil ? JournalEntry.markBytes : 0))
                cut = (cut?.part ?? longest, (cut?.bytes ?? 0) + before - parts[longest].value.count)
                writeText(time, cut: cut)
            }
        }
        lines.append(contentsOf: line.bytes.bindMemory(to: UInt8.self))
        return cut != nil
    }

    /// Marks the rest of a line that journald has split: the entry itself does not say that it is one.
    private mutating func noteSeam() {
        let goesOn = findings.contains(.goesOn)
        guard goesOn || !unfinished.isEmpty else { return }
        guard goesOn else {
            guard unfinished.remove(Array(bytes[stream])) != nil else { return }
            let start = bytes.count
            bytes += ",\"_LINE_BREAK\":\"rest\"".utf8
            return parts.append(Part(isTaken: true, member: start..<bytes.count))
        }
        if unfinished.count >= 4096 { unfinished.removeFirst() }
        unfinished.insert(Array(bytes[stream]))
    }

    /// What the two members that mark a cut take at most, the name of the field not counted.
    private static let markBytes = 80

    /// Cuts a value, never within a character of UTF-8.
    private mutating func shorten(_ part: Int, by count: Int) {
        let value = parts[part].value
        var end = max(value.lowerBound, value.upperBound - count)
        while end > value.lowerBound, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        parts[part].value = value.lowerBound..<end
        remake(part)
    }

    /// Writes the line of an entry whose message is a JSON object; false for any other, and where it would be too long.
    private mutating func writeObject(_ time: Timestamp, limit: Int) -> Bool {
        // A message that may be one has no member yet.
        guard let message = parts.firstIndex(where: { $0.member.isEmpty }) else { return false }
        line.removeAll()
        line.append(bytes[parts[message].value])
        line.append("\n")
        if let (close, hasLineBreaks) = check.end(of: line.bytes), !contradictsJournald() {
            var others = parts
            others.removeAll { $0.field == 0 || check.has($0.field, Array(memberName($0))) }
            var object = bytes[parts[message].value].prefix(close)
            // Line breaks are white space between its tokens: within a string there can be none.
            if hasLineBreaks { object = ArraySlice(object.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }) }
            let isEmpty = object.last { $0 != 0x20 && $0 != 0x09 } == UInt8(ascii: "{")
            if isEmpty, let first = others.first?.member {
                others[0].member = first.lowerBound + 1..<first.upperBound
            }
            line.removeAll()
            line.append(object)
            JournalEntry.append(others, of: bytes, to: &line)
            let comma = isEmpty && others.isEmpty ? "" : ","
            line.append(Array("\(comma)\"\(JournalEntry.timeName)\":\(time.nanoseconds / 1000)}\n".utf8)[...])
            if line.count <= limit + 1 { return true }
        }
        remake(message)
        return false
    }

    /// Whether the object that is the message has a member that only journald may set, with another value than journald's.
    private func contradictsJournald() -> Bool {
        for index in fields.indices where fields[index].isTrusted && check.has(index, fields[index].member) {
            let part = parts.first { $0.field == index }
            let value = part.map { bytes[$0.member].dropFirst(fields[index].opening.count) }
            if !check.hasOnly(value ?? [], fields[index].member) { return true }
        }
        return check.has(fields.count, Array(JournalEntry.timeName.utf8))
            || parts.contains {
                $0.field == nil && JournalField.isTrusted(bytes[$0.name]) && check.has(nil, Array(bytes[$0.name]))
            }
    }

    private mutating func writeText(_ time: Timestamp, cut: (part: Int, bytes: Int)?) {
        line.removeAll()
        line.append("{\"timestamp\":\"")
        line.append(timeWriter.text(of: time))
        line.append("\"")
        JournalEntry.append(parts, of: bytes, to: &line)
        if let cut {
            let name = String(decoding: memberName(parts[cut.part]), as: UTF8.self)
            let marks = ",\"truncated_bytes\":\(cut.bytes),\"truncated_member\":\"\(name)\""
            line.append(Array(marks.utf8)[...])
        }
        line.append("}\n")
    }

    /// Static, because what is part of an entry may not be reached while another part of it is in use.
    private static func append(_ parts: [Part], of bytes: [UInt8], to line: inout LineBuffer) {
        bytes.withUnsafeBytes { bytes in
            for part in parts { line.append(UnsafeRawBufferPointer(rebasing: bytes[part.member])) }
        }
    }
}
