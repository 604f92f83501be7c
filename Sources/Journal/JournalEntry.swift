internal import EventLoops
internal import Events
internal import Glibc
internal import Model

/// The fields of one entry, and the line that they become. Its buffers are reused for the next entry.
///
/// Most fields repeat those of earlier entries: the unit, the host, the boot. Their texts are kept, each with
/// the member that it becomes. A text that is found again, and is equal byte for byte, is not parsed again.
///
/// For each entry: `begin`, `take` for each field, then `passes`, and `write` if it passes.
struct JournalEntry: ~Copyable {
    /// A field `NAME=value`, as ranges of `bytes`.
    private struct Part {
        /// Index in `fields`; nil for a field that no setting names.
        var field: Int?
        /// Whether the field is `_STREAM_ID`, which names the stream of stdout or stderr that the entry is
        /// from.
        var isStream = false
        /// Whether the field becomes a member. Only the filter reads the other fields.
        var isTaken = false
        /// The name.
        var name = 0..<0
        /// The value.
        var value = 0..<0
        /// The member with a comma before it; empty while it is not made.
        var member = 0..<0
        /// Findings of the filter about the field.
        var findings: JournalFilter.Findings = []
    }

    /// Selects entries.
    private let filter: JournalFilter
    /// Fields that become members: the message is the first, the priority the second, then the usual and the
    /// configured ones.
    private let fields: [JournalField]
    /// Which of `fields` this entry has had.
    private var occurrences: FieldOccurrences
    /// Whether all fields become members (`*`).
    private let takesAll: Bool
    /// Checks whether a message is a JSON object, and finds its own members among those that the entry would
    /// add.
    private var check: ObjectCheck
    /// Writes `timestamp`; caches the date.
    private var timeWriter = TimestampWriter()

    /// The kept texts, one after the other, and after them the texts of this entry.
    private var bytes: [UInt8] = []
    /// Length of the kept texts in `bytes`; what follows is dropped with the next entry.
    private var keptLength = 0
    /// The kept texts, each in the slot that its address in the library's memory selects. The library reads a
    /// text that is stored once always from the same mapped page. Two texts may share a slot, so the bytes
    /// are always compared.
    private var known = [Part](repeating: Part(), count: JournalEntry.mostKnown)
    /// The fields of this entry that become members, in its order.
    private var parts: [Part] = []
    /// Further values of fields that have several: the index in `parts`, and the value as JSON in `bytes`.
    private var others: [(part: Int, value: Range<Int>)] = []
    /// The id of this entry's stream in `bytes`; empty if it has no stream.
    private var stream = 0..<0
    /// Ids of streams whose last entry was cut by journald (`_LINE_BREAK=line-max`): the next entry continues
    /// the line. Bounded to 4096.
    private var unfinished: Set<[UInt8]> = []
    /// Findings of the filter about the fields of this entry.
    private var findings: JournalFilter.Findings = []
    /// The line of this entry.
    private var line = LineBuffer()

    /// Name of the member for journald's time, beside an object that has a `timestamp` of its own.
    private static let timeName = "__REALTIME_TIMESTAMP"
    /// Slots for kept texts; a power of two, because the address is masked.
    private static let mostKnown = 512
    /// Most values of an entry beside the first ones of their fields. The limit of their length is
    /// `longestKnown`.
    private static let mostOthers = 64
    /// Longest text that is kept, 256 bytes: longer ones hardly ever repeat.
    private static let longestKnown = 256
    /// With more than 64 KiB of kept texts all are forgotten.
    private static let mostKept = 64 << 10

    /// An entry of some options.
    init(_ options: JournalOptions) {
        var names = ["MESSAGE"] + JournalField.usual
        takesAll = options.fields.contains("*")
        let wanted = takesAll ? JournalField.withOtherNames : options.fields
        for name in wanted where !names.contains(name) { names.append(name) }
        fields = names.map { JournalField($0) }
        check = ObjectCheck(
            fields.map { String(decoding: $0.member, as: UTF8.self) } + [JournalEntry.timeName])
        occurrences = FieldOccurrences(count: fields.count)
        filter = JournalFilter(options)
    }

    /// Begins an entry: forgets the one before, and all kept texts if there are too many.
    mutating func begin() {
        if keptLength > JournalEntry.mostKept {
            keptLength = 0
            for index in known.indices { known[index] = Part() }
        }
        bytes.removeLast(bytes.count - keptLength)
        parts.removeAll(keepingCapacity: true)
        others.removeAll(keepingCapacity: true)
        occurrences.beginEntry()
        findings = []
        stream = 0..<0
    }

    /// Whether the filter lets the entry pass, after all its fields.
    var passes: Bool { filter.passes(findings) }

    /// Adds a field as the journal has it, `NAME=value`. Several values of one name become a list; of message
    /// and priority the first counts.
    mutating func addField(_ text: UnsafeBufferPointer<UInt8>) {
        guard let base = text.baseAddress, !text.isEmpty else { return }
        let slot = Int(bitPattern: base) >> 3 & (JournalEntry.mostKnown - 1)
        let start = known[slot].name.lowerBound
        if known[slot].value.upperBound - start == text.count,
            bytes.withUnsafeBytes({ memcmp($0.baseAddress.unsafelyUnwrapped + start, base, text.count) == 0 })
        {
            return add(known[slot])
        }
        guard let part = read(text, base) else { return }
        // A message hardly ever repeats, and would push kept texts out.
        if part.field != 0, text.count <= JournalEntry.longestKnown {
            known[slot] = part
            keptLength = bytes.count
        }
        add(part)
    }

    /// Adds a field that has been parsed.
    private mutating func add(_ part: Part) {
        if let field = part.field {
            guard occurrences.isFirst(field) else { return addAgain(part) }
        }
        findings.formUnion(part.findings)
        if part.isStream {
            stream = part.value
        }
        guard part.isTaken else { return }
        if part.field != nil || !parts.contains(where: { bytes[$0.name] == bytes[part.name] }) {
            parts.append(part)
        } else {
            addAgain(part)
        }
    }

    /// Notes a further value of a field, unless it is too long or there are too many.
    private mutating func addAgain(_ part: Part) {
        guard part.isTaken, part.field.map({ $0 > 1 }) ?? true, part.value.count <= JournalEntry.longestKnown,
            others.count < JournalEntry.mostOthers,
            let first = parts.firstIndex(where: {
                $0.field == part.field && (part.field != nil || bytes[$0.name] == bytes[part.name])
            })
        else { return }
        others.append((first, part.member.dropFirst(opening(part).count)))
    }

    /// Joins the values of fields that have several into a list.
    private mutating func joinValues() {
        if others.isEmpty { return }
        for (index, others) in Dictionary(grouping: others, by: \.part) {
            let start = bytes.count
            let opening = opening(parts[index])
            bytes += opening + [UInt8(ascii: "[")] + bytes[parts[index].member].dropFirst(opening.count)
            for other in others { bytes += [UInt8(ascii: ",")] + bytes[other.value] }
            bytes.append(UInt8(ascii: "]"))
            parts[index].member = start..<bytes.count
        }
    }

    /// The text before the value of a field's member.
    private func opening(_ part: Part) -> [UInt8] {
        part.field.map { fields[$0].opening } ?? JournalField.opening(bytes[part.name])
    }

    /// Parses a field and appends its text to `bytes`; nil if it has no `=`.
    private mutating func read(_ text: UnsafeBufferPointer<UInt8>, _ base: UnsafePointer<UInt8>) -> Part? {
        guard let found = memchr(base, Int32(UInt8(ascii: "=")), text.count) else { return nil }
        let length = UnsafeRawPointer(found) - UnsafeRawPointer(base)
        let name = UnsafeBufferPointer(start: base, count: length)
        let value = UnsafeBufferPointer(start: base + length + 1, count: text.count - length - 1)
        let field = fields.indices.first {
            fields[$0].name.count == length && memcmp(fields[$0].name, base, length) == 0
        }
        var part = Part(field: field, findings: filter.findings(name, value))
        // Only names that journald itself would accept, so that they need no escapes.
        part.isTaken =
            field != nil
            || takesAll && name.allSatisfy { 0x41...0x5A ~= $0 || 0x30...0x39 ~= $0 || $0 == 0x5F }
        part.isStream = name.elementsEqual("_STREAM_ID".utf8)
        if text.elementsEqual("_LINE_BREAK=line-max".utf8) {
            part.findings.insert(.goesOn)
        }
        // A field that only the filter looks at need not be stored, unless its text is kept for the next
        // entries.
        guard part.isTaken || text.count <= JournalEntry.longestKnown else { return part }
        let start = bytes.count
        bytes.append(contentsOf: text)
        part.name = start..<start + length
        part.value = start + length + 1..<bytes.count
        // If a message may be an object, `writeObject` decides how it is written.
        if part.isTaken, field != 0 || value.first != UInt8(ascii: "{") {
            part.member = makeMember(part, value)
        }
        return part
    }

    // MARK: Members

    /// Appends the member of a field to `bytes`.
    private mutating func makeMember(_ part: Part, _ value: UnsafeBufferPointer<UInt8>) -> Range<Int> {
        let start = bytes.count
        bytes += opening(part)
        if let field = part.field, fields[field].isNumber, JournalEntry.isNumber(value) {
            bytes.append(contentsOf: value)
        } else {
            JSONString.append(value, to: &bytes)
        }
        return start..<bytes.count
    }

    /// Makes the member again, after its value was cut or left unmade.
    private mutating func remake(_ part: Int) {
        parts[part].member = Array(bytes[parts[part].value]).withUnsafeBufferPointer {
            makeMember(parts[part], $0)
        }
    }

    /// Whether a text is a whole number by JSON's grammar with at most 18 digits, which fits in 64 bits.
    private static func isNumber(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        (1...18).contains(text.count) && (text.count == 1 || text[0] != 0x30)
            && text.allSatisfy { 0x30...0x39 ~= $0 }
    }

    /// Name of the member that a field becomes. Names of journald's own fields consist of capital letters,
    /// digits and underscores, and need no escape.
    private func memberName(_ part: Part) -> ArraySlice<UInt8> {
        part.field.map { fields[$0].member[...] } ?? bytes[part.name]
    }

    // MARK: The line

    /// Appends the entry as a line of JSON with a line feed.
    ///
    /// A message that is a JSON object becomes the line, and the other fields follow its own members. Any
    /// other message, and an object that contradicts journald, becomes the member `message`. Bytes that are
    /// not UTF-8 stay as they are. A line longer than `limit` is cut in its longest field, and the members
    /// `truncated_member` and `truncated_bytes` say so.
    ///
    /// - Parameters:
    ///   - lines: the lines so far.
    ///   - time: when journald received the entry.
    ///   - limit: longest line in bytes, without its line feed.
    /// - Returns: whether the entry was cut.
    mutating func write(into lines: inout [UInt8], time: Timestamp, limit: Int) -> Bool {
        var cut: (part: Int, bytes: Int)?
        noteSeam()
        joinValues()
        if !writeObject(time, limit: limit) {
            writeText(time, cut: nil)
            if line.count > limit + 1, let first = others.first {
                // Before any value is cut, fields with several values keep only the first.
                cut = (first.part, others.reduce(0) { $0 + $1.value.count })
                for part in Set(others.map(\.part)) { remake(part) }
                writeText(time, cut: cut)
            }
            while line.count > limit + 1 {
                // Shortening a value by a byte shortens the line by at least a byte, so the loop ends.
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

    /// Marks the continuation of a line that journald has split: the entry itself does not say that it is
    /// one.
    private mutating func noteSeam() {
        let goesOn = findings.contains(.goesOn)
        guard goesOn || !unfinished.isEmpty else { return }
        guard goesOn else {
            guard unfinished.remove(Array(bytes[stream])) != nil else { return }
            let start = bytes.count
            bytes += ",\"_LINE_BREAK\":\"rest\"".utf8
            return parts.append(Part(isTaken: true, member: start..<bytes.count))
        }
        if unfinished.count >= 4096 {
            unfinished.removeFirst()
        }
        unfinished.insert(Array(bytes[stream]))
    }

    /// Most bytes of the two members that mark a cut, without the name of the field.
    private static let markBytes = 80

    /// Cuts a value, never within a UTF-8 character.
    private mutating func shorten(_ part: Int, by count: Int) {
        let value = parts[part].value
        var end = max(value.lowerBound, value.upperBound - count)
        while end > value.lowerBound, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        parts[part].value = value.lowerBound..<end
        remake(part)
    }

    /// Writes the line of an entry whose message is a JSON object. Returns false if the message is something
    /// else, contradicts journald or would be too long: the caller then writes it as text.
    private mutating func writeObject(_ time: Timestamp, limit: Int) -> Bool {
        // A message that may be an object has no member yet.
        guard let message = parts.firstIndex(where: { $0.member.isEmpty }) else { return false }
        line.removeAll()
        line.append(bytes[parts[message].value])
        line.append("\n")
        if let (close, hasLineBreaks) = check.end(of: line.bytes), !contradictsJournald() {
            var others = parts
            others.removeAll { $0.field == 0 || check.has($0.field, Array(memberName($0))) }
            var object = bytes[parts[message].value].prefix(close)
            // Line breaks can only be white space between tokens, because JSON's strings have none; in the
            // line they are blanks.
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

    /// Whether the object in the message has a member that only journald may set, with another value. A
    /// program could otherwise claim another unit, user or host.
    private func contradictsJournald() -> Bool {
        for index in fields.indices where fields[index].isTrusted && check.has(index, fields[index].member) {
            let part = parts.first { $0.field == index }
            let value = part.map { bytes[$0.member].dropFirst(fields[index].opening.count) }
            if !check.hasOnly(value ?? [], fields[index].member) { return true }
        }
        return check.has(fields.count, Array(JournalEntry.timeName.utf8))
            || parts.contains {
                $0.field == nil && JournalField.isTrusted(bytes[$0.name])
                    && check.has(nil, Array(bytes[$0.name]))
            }
    }

    /// Writes the line of an entry whose message is a text.
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

    /// Appends members. Static, because a method could not have exclusive access to `line` while it reads
    /// `parts` and `bytes`.
    private static func append(_ parts: [Part], of bytes: [UInt8], to line: inout LineBuffer) {
        bytes.withUnsafeBytes { bytes in
            for part in parts { line.append(UnsafeRawBufferPointer(rebasing: bytes[part.member])) }
        }
    }
}

/// Tells the first value of a field in an entry from further values.
struct FieldOccurrences {
    /// Number of the last entry that had each field.
    private var last: [Int]
    /// Number of the current entry, counted from the start.
    private var entry = 0

    /// - Parameter count: number of fields.
    init(count: Int) { last = Array(repeating: 0, count: count) }

    /// Begins the next entry, which has had no field yet. Costs nothing for each field.
    mutating func beginEntry() { entry += 1 }

    /// Notes a value of a field; returns whether it is the first one in this entry.
    mutating func isFirst(_ field: Int) -> Bool {
        guard last[field] != entry else { return false }
        last[field] = entry
        return true
    }
}
