public import EventLoops
public import TimeZones

/// A JSON object that is being written. Its storage is reused from record to record, so that no line
/// allocates.
///
/// Each member is written with a comma after it; `end` turns the last comma into the closing brace. A writer
/// is not copyable because it owns its storage. It belongs to one caller and is used by one thread at a time.
public struct RecordWriter: ~Copyable {
    /// The object.
    var json = JSONBuffer()
    /// How the record's times are read.
    private var times = LogTimes()
    /// The text of the time that was written last.
    private var written = TimestampMember()
    /// Range of the value of `timestamp` in the object, with its quotes; empty without a time. With it a
    /// caller need not search the object for its time.
    public private(set) var timestamp = 0..<0
    /// Members of the current record that `plainPair` has written.
    private var pairs = WrittenMembers()

    /// The zone for times that do not name one.
    public var zone: TimeZoneRules {
        get { times.zone }
        set { times.zone = newValue }
    }
    /// The current time. Times without a year or a date mean the one that is nearest to it.
    public var now: Timestamp {
        get { times.now }
        set { times.now = newValue }
    }
    /// Whether bytes of the last record were not UTF-8 and became U+FFFD.
    public var isRepaired: Bool { json.isRepaired }

    /// A writer without an object.
    public init() {}

    /// The object with its line feed. Valid until the next `begin`.
    public var bytes: UnsafeBufferPointer<UInt8> { json.bytes }

    /// All members of the object, if they are known and their names and values have no escapes; otherwise
    /// nil. With them a caller need not scan the object. Valid until the next `begin`.
    public var members: UnsafeBufferPointer<WrittenMember>? { pairs.all }

    /// Number of line feeds that follow `bytes`, so that the scanner of events, which loads 16 bytes at a
    /// time, stops before the end of the storage.
    public static let padding = 32

    // MARK: The object

    /// Begins an object, and drops the one before.
    ///
    /// - Parameter end: end of the memory that may be loaded around the values that follow.
    mutating func begin(readableTo end: UnsafePointer<UInt8>) {
        timestamp = 0..<0
        pairs.removeAll()
        json.begin(readableTo: end)
    }

    /// Ends the object, and adds the line feed and the padding.
    mutating func end() { json.end(padding: RecordWriter.padding) }

    /// The time of a text in a log of this machine; see `LogTimes`.
    @inline(__always)
    mutating func time(of text: Bytes) -> Timestamp? { times.time(of: text) }

    /// Writes `key=value` of plain text as a member, and notes where it is; see `JSONBuffer.plainPair`.
    ///
    /// - Returns: the address after the value; nil, and nothing written, if the text is not plain.
    @inline(__always)
    mutating func plainPair(
        from start: UnsafePointer<UInt8>, before end: UnsafePointer<UInt8>
    ) -> UnsafePointer<UInt8>? {
        guard let (member, after) = json.plainPair(from: start, before: end) else { return nil }
        pairs.append(member)
        return after
    }

    /// Says whether `plainPair` wrote each member of the record. If a member was written in another
    /// way and this is not said, `members` lacks it, and no rule finds it.
    mutating func noteMembersKnown(_ areKnown: Bool) { pairs.areAll = areKnown }

    /// The current length. `goBack(to:)` drops what was written after it, for formats that try one layout and
    /// then another.
    @inline(__always) var mark: Int { json.mark }

    /// Drops what was written after a mark. Does not reset `timestamp`: the caller must write another one, or
    /// none.
    mutating func goBack(to mark: Int) { json.goBack(to: mark) }

    /// Begins a member that is an object. Its members follow, and then `closeInnerObject`.
    mutating func openObject(_ name: Bytes) {
        json.string(name)
        json.openObject()
    }

    /// Ends an inner object.
    mutating func closeInnerObject() {
        json.closeObject()
        json.comma()
    }

    // MARK: Members

    /// A name as it is written: in quotes, escaped, with its colon. Formats make it once, so that no line
    /// escapes it.
    static func quotedName(_ name: String) -> [UInt8] {
        var writer = RecordWriter()
        var name = name
        return name.withUTF8 { text in
            let bytes = Bytes(UnsafeRawBufferPointer(text))
            writer.begin(readableTo: bytes.end)
            writer.json.string(bytes)
            return Array(writer.bytes.dropFirst()) + [UInt8(ascii: ":")]
        }
    }

    /// The name inside what `quotedName` has made; its escapes stay.
    static func name(quoted name: [UInt8]) -> [UInt8] { Array(name.dropFirst().dropLast(2)) }

    /// Writes a text, even if it is empty.
    mutating func text(_ name: StaticString, _ value: Bytes) {
        json.name(name)
        json.string(value)
        json.comma()
    }

    /// Writes a text, unless it is empty or `-`, which mean that the value is missing.
    mutating func present(_ name: StaticString, _ value: Bytes) {
        guard !value.isEmpty, !value.equals("-") else { return }
        text(name, value)
    }

    /// Writes a number if the text is one by JSON's grammar, otherwise a text; nothing if it is empty or `-`.
    mutating func number(_ name: StaticString, _ value: Bytes) {
        guard !value.isEmpty, !value.equals("-") else { return }
        json.name(name)
        if value.isNumber {
            json.copy(value)
        } else {
            json.string(value)
        }
        json.comma()
    }

    /// Writes a text under a name that `quotedName` has made, which must be in memory of a `Template`: the
    /// copy reads `JSONBuffer.shortCopy` bytes.
    @inline(__always)
    mutating func member(quoted name: Bytes, _ value: Bytes) {
        json.copyName(name)
        json.string(value)
        json.comma()
    }

    /// Writes a number, or a text if it is not one. The name must be in memory of a `Template`.
    @inline(__always)
    mutating func number(quoted name: Bytes, _ value: Bytes) {
        json.copyName(name)
        numberOrText(value)
    }

    /// Writes a text without its backslashes. The name must be in memory of a `Template`.
    mutating func unescaped(quoted name: Bytes, _ value: Bytes) {
        json.copy(name)
        json.openString()
        json.unescape(value)
        json.closeString()
    }

    /// Writes a text under a name that `quotedName` has made, in an array.
    @inline(__always)
    mutating func member(quoted name: [UInt8], _ value: Bytes) {
        json.raw(name)
        json.string(value)
        json.comma()
    }

    /// Writes a number, or a text if it is not one, under a name in an array.
    mutating func number(quoted name: [UInt8], _ value: Bytes) {
        json.raw(name)
        if value.isNumber {
            json.copy(value)
        } else {
            json.string(value)
        }
        json.comma()
    }

    /// Writes a text under a name from the line, which is escaped.
    mutating func member(_ name: Bytes, _ value: Bytes) {
        json.string(name)
        json.colon()
        json.string(value)
        json.comma()
    }

    /// Writes `true` under a name from the line.
    mutating func flag(_ name: Bytes) {
        json.string(name)
        json.colon()
        json.append("true,")
    }

    /// Writes a text that was between quotes in the line, without the backslashes before quotes and
    /// backslashes.
    mutating func unescaped(quoted name: [UInt8], _ value: Bytes) {
        json.raw(name)
        json.openString()
        json.unescape(value)
        json.closeString()
    }

    /// Writes one text that consists of several pieces of the line.
    mutating func text(_ name: StaticString, _ pieces: Bytes...) {
        json.name(name)
        json.openString()
        for piece in pieces { json.content(piece) }
        json.closeString()
    }

    /// Writes a constant text, which needs no escapes.
    mutating func word(_ name: StaticString, _ value: StaticString) {
        json.name(name)
        json.openString()
        json.append(value)
        json.closeString()
    }

    /// Writes a whole number that is not negative.
    mutating func whole(_ name: StaticString, _ value: Int) {
        json.name(name)
        var value = value
        // Digits are found from the right, so they are written from the right.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var index = 20
            repeat {
                index -= 1
                // bounded: the rest of a division by ten.
                digits[index] = 0x30 + UInt8(value % 10)
                value /= 10
            } while value > 0
            json.copy(Bytes(UnsafePointer(digits.baseAddress.unsafelyUnwrapped + index), 20 - index))
        }
        json.comma()
    }

    /// Writes `timestamp`, as RFC 3339 in UTC, and notes where it is. At most one for each record: a second
    /// one would be a duplicate name.
    @inline(__always)
    mutating func time(_ time: Timestamp) {
        written.set(time)
        let begin = mark
        json.reserve(TimestampMember.most)
        written.copy(to: json.out)
        json.out += written.count
        timestamp = begin + TimestampMember.nameLength..<mark - 1
    }

    /// Writes a number, or a text if it is not one, and the comma.
    mutating func numberOrText(_ value: Bytes) {
        if value.isNumber {
            json.copyShort(value)
        } else {
            json.string(value)
        }
        json.comma()
    }

    /// Begins a text under a name from the line. Its content and `closeString` follow.
    mutating func openMember(_ name: Bytes) {
        json.openString()
        json.content(name)
        json.closeName()
        json.openString()
    }

    /// Writes a number, or a text if it is not one, under a name from the line in small letters. The name is
    /// copied, because the line must not change.
    mutating func lowercased(_ name: Bytes, _ value: Bytes) {
        json.openString()
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: name.count) { small in
            for index in 0..<name.count {
                let byte = name[index]
                small[index] = byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
            }
            if let start = small.baseAddress {
                json.content(Bytes(UnsafePointer(start), name.count), readable: name.count)
            }
        }
        json.closeName()
        numberOrText(value)
    }

    /// Writes one character as content of a text.
    mutating func scalar(_ value: UInt32) {
        guard let scalar = Unicode.Scalar(value) else { return }
        var bytes = Array(String(Character(scalar)).utf8)
        bytes.withUnsafeMutableBufferPointer { text in
            guard let start = text.baseAddress else { return }
            json.content(Bytes(UnsafePointer(start), text.count), readable: text.count)
        }
    }
}
