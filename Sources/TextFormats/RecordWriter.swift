internal import CScan
public import EventLoops
internal import Glibc
public import TimeZones

/// A JSON object that is being written. Its storage is reused from record to record, so that no line
/// allocates.
///
/// Each member is written with a comma after it; `end` turns the last comma into the closing brace. A writer
/// is not copyable because it owns its storage. It belongs to one caller and is used by one thread at a time.
public struct RecordWriter: ~Copyable {
    /// The buffer of the object; owned, and replaced when it grows.
    private var storage: UnsafeMutablePointer<UInt8>
    /// Size of `storage` in bytes.
    private var capacity: Int
    /// The end of what is written, where the next byte goes. Only for the extensions of this type, which
    /// reserve the room that they write to.
    var out: UnsafeMutablePointer<UInt8>
    /// End of the memory that may be loaded while texts of the current record are copied, 16 bytes at a time.
    /// Without it the copy of the last value could read beyond the block, into a page that is not mapped.
    private(set) var readable: UnsafePointer<UInt8>
    /// The time that was read last: the next line often has the same text, and parsing is dearer than
    /// comparing.
    private var last = LastTime()
    /// Range of the value of `timestamp` in the object, with its quotes; empty without a time. With it a
    /// caller need not search the object for its time.
    public private(set) var timestamp = 0..<0

    /// Members of the current record that `plainPair` has written.
    private var pairs = WrittenMembers()

    /// The zone for times that do not name one. Setting it forgets the last time, whose text may now mean
    /// another time.
    public var zone = TimeZoneRules.utc {
        didSet {
            isUTC = zone.isAlwaysUTC
            last.text.removeAll(keepingCapacity: true)
        }
    }
    /// Whether `zone` is UTC; a shortcut, because then no rules of a zone are needed.
    private(set) var isUTC = true
    /// The current time. Times without a year or a date mean the one that is nearest to it. Setting it
    /// forgets the last time.
    public var now = Timestamp(nanoseconds: 0) {
        didSet { last.text.removeAll(keepingCapacity: true) }
    }
    /// Whether bytes of the last record were not UTF-8 and became U+FFFD.
    public private(set) var isRepaired = false

    /// Storage beyond 64 KiB is given back before the next record, so that one huge line does not keep its
    /// memory.
    private static let keptCapacity = 1 << 16

    /// Storage of a new writer. Each app has a writer, also for JSON, which never needs it.
    private static let firstCapacity = 256

    /// A writer without an object.
    public init() {
        capacity = RecordWriter.firstCapacity
        storage = .allocate(capacity: capacity)
        out = storage
        readable = UnsafePointer(storage)
    }

    deinit { storage.deallocate() }

    /// The object with its line feed. Valid until the next `begin`.
    public var bytes: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: storage, count: out - storage) }

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
        if capacity > RecordWriter.keptCapacity {
            storage.deallocate()
            capacity = 4096
            storage = .allocate(capacity: capacity)
        }
        readable = end
        isRepaired = false
        timestamp = 0..<0
        pairs.removeAll()
        storage[0] = UInt8(ascii: "{")
        out = storage + 1
    }

    /// Ends the object, and adds the line feed and the padding.
    mutating func end() {
        reserve(2 + RecordWriter.padding)
        closeObject()
        memset(out, 0x0A, 1 + RecordWriter.padding)
        out += 1
    }

    /// The time of a text, by `parse`, which is skipped if the text is the last one that was read.
    @inline(__always)
    mutating func time(of text: Bytes, _ parse: (Bytes, borrowing RecordWriter) -> Timestamp?) -> Timestamp? {
        if text.count == last.text.count, text.count > 0,
            last.text.withUnsafeBytes({
                memcmp($0.baseAddress.unsafelyUnwrapped, text.start, text.count) == 0
            })
        {
            return last.time
        }
        guard let time = parse(text, self) else { return nil }
        remember(time, text)
        return time
    }

    /// Keeps a time with its text. Out of line, because most lines do not come here.
    @inline(never)
    private mutating func remember(_ time: Timestamp, _ text: Bytes) {
        last.text.removeAll(keepingCapacity: true)
        last.text.append(contentsOf: text.buffer)
        last.time = time
    }

    /// Notes a member that was written at these offsets.
    @inline(__always)
    mutating func notePair(_ member: WrittenMember) { pairs.append(member) }

    /// Says whether `notePair` was called for each member of the record. If a member was written in another
    /// way and this is not said, `members` lacks it, and no rule finds it.
    mutating func noteMembersKnown(_ areKnown: Bool) { pairs.areAll = areKnown }

    /// The current length. `goBack(to:)` drops what was written after it, for formats that try one layout and
    /// then another.
    @inline(__always) var mark: Int { out - storage }

    /// Drops what was written after a mark. Does not reset `timestamp`: the caller must write another one, or
    /// none.
    mutating func goBack(to mark: Int) { out = storage + mark }

    /// Begins a member that is an object. Its members follow, and then `closeInnerObject`.
    mutating func openObject(_ name: Bytes) {
        string(name)
        reserve(2)
        out[0] = UInt8(ascii: ":")
        out[1] = UInt8(ascii: "{")
        out += 2
    }

    /// Ends an inner object.
    mutating func closeInnerObject() {
        closeObject()
        comma()
    }

    /// Turns the last comma into a brace, or adds a brace if the object is empty.
    private mutating func closeObject() {
        reserve(2)
        if out[-1] == UInt8(ascii: ",") {
            out[-1] = UInt8(ascii: "}")
        } else {
            out[0] = UInt8(ascii: "}")
            out += 1
        }
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
            writer.string(bytes)
            return Array(writer.bytes.dropFirst()) + [UInt8(ascii: ":")]
        }
    }

    /// The name inside what `quotedName` has made; its escapes stay.
    static func name(quoted name: [UInt8]) -> [UInt8] { Array(name.dropFirst().dropLast(2)) }

    /// Writes a text, even if it is empty.
    mutating func text(_ name: StaticString, _ value: Bytes) {
        self.name(name)
        string(value)
        comma()
    }

    /// Writes a text, unless it is empty or `-`, which mean that the value is missing.
    mutating func present(_ name: StaticString, _ value: Bytes) {
        guard !value.isEmpty, !value.equals("-") else { return }
        text(name, value)
    }

    /// Writes a number if the text is one by JSON's grammar, otherwise a text; nothing if it is empty or `-`.
    mutating func number(_ name: StaticString, _ value: Bytes) {
        guard !value.isEmpty, !value.equals("-") else { return }
        self.name(name)
        if value.isNumber {
            copy(value)
        } else {
            string(value)
        }
        comma()
    }

    /// Writes a text under a name that `quotedName` has made, which must be in memory of a `Template`: the
    /// copy reads `shortCopy` bytes.
    @inline(__always)
    mutating func member(quoted name: Bytes, _ value: Bytes) {
        copyName(name)
        string(value)
        comma()
    }

    /// Writes a number, or a text if it is not one. The name must be in memory of a `Template`.
    @inline(__always)
    mutating func number(quoted name: Bytes, _ value: Bytes) {
        copyName(name)
        numberOrText(value)
    }

    /// Writes a text without its backslashes. The name must be in memory of a `Template`.
    mutating func unescaped(quoted name: Bytes, _ value: Bytes) {
        copy(name)
        openString()
        unescape(value)
        closeString()
    }

    /// Writes a text under a name that `quotedName` has made, in an array.
    @inline(__always)
    mutating func member(quoted name: [UInt8], _ value: Bytes) {
        raw(name)
        string(value)
        comma()
    }

    /// Writes a number, or a text if it is not one, under a name in an array.
    mutating func number(quoted name: [UInt8], _ value: Bytes) {
        raw(name)
        if value.isNumber {
            copy(value)
        } else {
            string(value)
        }
        comma()
    }

    /// Writes a text under a name from the line, which is escaped.
    mutating func member(_ name: Bytes, _ value: Bytes) {
        string(name)
        colon()
        string(value)
        comma()
    }

    /// Writes `true` under a name from the line.
    mutating func flag(_ name: Bytes) {
        string(name)
        colon()
        append("true,")
    }

    /// Writes a text that was between quotes in the line, without the backslashes before quotes and
    /// backslashes.
    mutating func unescaped(quoted name: [UInt8], _ value: Bytes) {
        raw(name)
        openString()
        unescape(value)
        closeString()
    }

    /// Writes one text that consists of several pieces of the line.
    mutating func text(_ name: StaticString, _ pieces: Bytes...) {
        self.name(name)
        openString()
        for piece in pieces { content(piece) }
        closeString()
    }

    /// Writes a constant text, which needs no escapes.
    mutating func word(_ name: StaticString, _ value: StaticString) {
        self.name(name)
        openString()
        append(value)
        closeString()
    }

    /// Writes a whole number that is not negative.
    mutating func whole(_ name: StaticString, _ value: Int) {
        self.name(name)
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
            copy(Bytes(UnsafePointer(digits.baseAddress.unsafelyUnwrapped + index), 20 - index))
        }
        comma()
    }

    /// Writes `timestamp`, as RFC 3339 in UTC, and notes where it is. At most one for each record: a second
    /// one would be a duplicate name.
    ///
    /// The fraction has 3, 6 or 9 digits, whichever shows the time without loss. The text of the date is
    /// cached, because nearly all lines are of one day.
    @inline(__always)
    mutating func time(_ time: Timestamp) {
        guard time == last.written else {
            newTime(time)
            return
        }
        reserve(LastTime.mostText)
        let begin = mark
        memcpy(out, &last.writtenText, LastTime.mostText)
        out += last.writtenCount
        timestamp = begin + LastTime.nameLength..<mark - 1
    }

    /// Writes `timestamp`, and keeps its text: the next line often has the same time.
    @inline(never)
    private mutating func newTime(_ time: Timestamp) {
        let whole = mark
        append("\"timestamp\":\"")
        let begin = mark - 1
        reserve(LastTime.mostText)
        let seconds = time.nanoseconds.floored(by: 1_000_000_000)
        let days = seconds.quotient.floored(by: 86_400)
        if days.quotient != last.day {
            dateText(days.quotient)
        }
        UnsafeMutableRawPointer(out).storeBytes(of: last.dayText.0, as: UInt64.self)
        UnsafeMutableRawPointer(out + 8).storeBytes(of: last.dayText.1, as: UInt16.self)
        out[10] = UInt8(ascii: "T")
        let ofDay = Int(days.remainder)
        out += 11
        pair(ofDay / 3600, then: UInt8(ascii: ":"))
        pair(ofDay / 60 % 60, then: UInt8(ascii: ":"))
        pair(ofDay % 60, then: UInt8(ascii: "."))
        let rest = Int(seconds.remainder)
        let digits = rest % 1_000_000 == 0 ? 3 : rest % 1000 == 0 ? 6 : 9
        var left = digits == 3 ? rest / 1_000_000 : digits == 6 ? rest / 1000 : rest
        var index = digits - 1
        while index >= 0 {
            // bounded: the rest of a division by ten.
            out[index] = 0x30 + UInt8(left % 10)
            left /= 10
            index -= 1
        }
        out += digits
        append("Z\",")
        timestamp = begin..<mark - 1
        last.written = time
        last.writtenCount = mark - whole
        assert(begin - whole == LastTime.nameLength && last.writtenCount <= LastTime.mostText)
        memcpy(&last.writtenText, storage + whole, last.writtenCount)
    }

    /// Writes two digits and a byte.
    @inline(__always)
    private mutating func pair(_ value: Int, then byte: UInt8) {
        // bounded: hours, minutes and seconds.
        out[0] = 0x30 + UInt8(value / 10)
        out[1] = 0x30 + UInt8(value % 10)
        out[2] = byte
        out += 3
    }

    /// Makes the text of a day, as a word of eight bytes and one of two, which two stores write.
    @inline(never)
    private mutating func dateText(_ day: Int64) {
        last.day = day
        var text = (UInt64(0), UInt16(0))
        withUnsafeMutableBytes(of: &text.0) { first in
            let bytes = Array(LocalDate(dayNumber: Int(day)).description.utf8.prefix(10))
            assert(bytes.count == 10)
            first.copyBytes(from: bytes[..<8])
            text.1 = UInt16(bytes[8]) | UInt16(bytes[9]) << 8
        }
        last.dayText = (text.0, text.1.littleEndian)
    }

    /// Begins a text under a name from the line. `content` and `closeString` follow.
    mutating func openMember(_ name: Bytes) {
        openString()
        content(name)
        closeName()
        openString()
    }

    /// Writes a number, or a text if it is not one, under a name from the line in small letters. The name is
    /// copied, because the line must not change.
    mutating func lowercased(_ name: Bytes, _ value: Bytes) {
        openString()
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: name.count) { small in
            for index in 0..<name.count {
                let byte = name[index]
                small[index] = byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
            }
            if let start = small.baseAddress {
                content(Bytes(UnsafePointer(start), name.count), readable: name.count)
            }
        }
        closeName()
        numberOrText(value)
    }

    /// Writes one character as content of a text.
    mutating func scalar(_ value: UInt32) {
        guard let scalar = Unicode.Scalar(value) else { return }
        var bytes = Array(String(Character(scalar)).utf8)
        bytes.withUnsafeMutableBufferPointer { text in
            guard let start = text.baseAddress else { return }
            content(Bytes(UnsafePointer(start), text.count), readable: text.count)
        }
    }

    /// Ends a name that was begun with `openString`.
    mutating func closeName() {
        reserve(2)
        out[0] = UInt8(ascii: "\"")
        out[1] = UInt8(ascii: ":")
        out += 2
    }

    /// Writes a number, or a text if it is not one, and the comma.
    mutating func numberOrText(_ value: Bytes) {
        if value.isNumber {
            copyShort(value)
        } else {
            string(value)
        }
        comma()
    }

    /// Copies a value of at most 16 bytes by one load and one store, if that many bytes are readable there;
    /// else by `memcpy` of the exact length.
    @inline(__always)
    private mutating func copyShort(_ value: Bytes) {
        guard value.count <= 16, readable - value.start >= 16 else {
            copy(value)
            return
        }
        reserve(16)
        memcpy(out, value.start, 16)
        out += value.count
    }

    /// Writes content that is not in the line, but in other memory, of which `count` bytes are readable. The
    /// limit of the line does not apply there.
    mutating func content(_ text: Bytes, readable count: Int) {
        let end = readable
        readable = text.start + count
        content(text)
        readable = end
    }

    // MARK: Pieces

    /// Writes a constant name, its quotes and its colon.
    @inline(__always)
    private mutating func name(_ name: StaticString) {
        let length = name.utf8CodeUnitCount
        reserve(length + 4)
        out[0] = UInt8(ascii: "\"")
        memcpy(out + 1, name.utf8Start, length)
        out[length + 1] = UInt8(ascii: "\"")
        out[length + 2] = UInt8(ascii: ":")
        out += length + 3
    }

    /// Writes the colon after a name.
    private mutating func colon() {
        reserve(1)
        out[0] = UInt8(ascii: ":")
        out += 1
    }

    /// Writes the comma after a member.
    @inline(__always)
    private mutating func comma() {
        reserve(1)
        out[0] = UInt8(ascii: ",")
        out += 1
    }

    /// Writes bytes that are JSON already.
    mutating func raw(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { copy(Bytes($0)) }
    }

    /// Writes a constant text, as it is.
    @inline(__always)
    private mutating func append(_ text: StaticString) {
        copy(Bytes(text.utf8Start, text.utf8CodeUnitCount))
    }

    /// Copies a name by the fixed length `shortCopy`, beyond its end. The memory after it must be readable.
    @inline(__always)
    private mutating func copyName(_ name: Bytes) {
        reserve(name.count + RecordWriter.shortCopy)
        guard name.count <= RecordWriter.shortCopy else {
            copy(name)
            return
        }
        // A fixed length costs two instructions, a variable length a call.
        memcpy(out, name.start, RecordWriter.shortCopy)
        out += name.count
    }

    /// Length of a copy with a fixed length, 32 bytes: more than nearly all names have, and compiled without
    /// a call. So each name's memory must have 32 readable bytes, however short the name is.
    static let shortCopy = 32

    /// Copies bytes as they are.
    @inline(__always)
    private mutating func copy(_ bytes: Bytes) {
        reserve(bytes.count)
        memcpy(out, bytes.start, bytes.count)
        out += bytes.count
    }

    /// Begins a text: its opening quote. `content` may follow several times, and then `closeString` or
    /// `closeName`.
    @inline(__always)
    mutating func openString() {
        reserve(1)
        out[0] = UInt8(ascii: "\"")
        out += 1
    }

    /// Ends a text that is a value: its quote and the comma.
    @inline(__always)
    mutating func closeString() {
        reserve(2)
        out[0] = UInt8(ascii: "\"")
        out[1] = UInt8(ascii: ",")
        out += 2
    }

    /// Writes a whole text: quotes and escaped content.
    @inline(__always)
    private mutating func string(_ text: Bytes) {
        openString()
        content(text)
        reserve(1)
        out[0] = UInt8(ascii: "\"")
        out += 1
    }

    /// Writes the content of a text, escaped. Plain bytes are copied 16 at a time; quotes, backslashes,
    /// control characters and bytes beyond ASCII go through `special`.
    @inline(__always)
    mutating func content(_ text: Bytes) {
        // A control character takes six bytes, which is the most; and each copy writes 16 bytes, however many
        // count.
        reserve(text.count * 6 + 16)
        var p = text.start
        let end = text.end
        while p < end {
            let left = end - p
            if readable - p >= 16 {
                let stops = cscan_stops(p)
                memcpy(out, p, 16)
                let plain = min(Int((stops | 0x10000).trailingZeroBitCount), left)
                p += plain
                out += plain
                guard plain < 16, p < end else { continue }
                let byte = p.pointee
                // Quotes are by far the most frequent: six in a line of an access log.
                if byte == 0x22 || byte == 0x5C {
                    out[0] = 0x5C
                    out[1] = byte
                    out += 2
                    p += 1
                } else {
                    special(&p, end)
                }
            } else if p.pointee >= 0x20, p.pointee < 0x80, p.pointee != 0x22, p.pointee != 0x5C {
                out[0] = p.pointee
                p += 1
                out += 1
            } else {
                special(&p, end)
            }
        }
    }

    /// Writes one character that is not plain. `content` has reserved the room for it.
    ///
    /// Source: RFC 8259, section 7.
    @inline(never)
    private mutating func special(_ p: inout UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) {
        let c = p.pointee
        if c >= 0x80 {
            character(&p, end)
            return
        }
        p += 1
        let short: UInt8 =
            switch c {
            case 0x22, 0x5C: c
            case 0x0A: UInt8(ascii: "n")
            case 0x09: UInt8(ascii: "t")
            case 0x0D: UInt8(ascii: "r")
            default: 0
            }
        out[0] = UInt8(ascii: "\\")
        if short != 0 {
            out[1] = short
            out += 2
            return
        }
        let hex: StaticString = "0123456789abcdef"
        out[1] = UInt8(ascii: "u")
        out[2] = UInt8(ascii: "0")
        out[3] = UInt8(ascii: "0")
        out[4] = hex.utf8Start[Int(c >> 4)]
        out[5] = hex.utf8Start[Int(c & 15)]
        out += 6
    }

    /// Writes one character beyond ASCII, or U+FFFD for bytes that are not UTF-8.
    ///
    /// Source: Unicode 15.0, table 3-7 (well-formed UTF-8 byte sequences): the second byte has a narrower
    /// range after E0, ED, F0 and F4, which excludes overlong forms, surrogates and what is beyond U+10FFFF.
    private mutating func character(_ p: inout UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) {
        let c = p.pointee
        var length = 0
        var (low, high): (UInt8, UInt8) = (0x80, 0xBF)
        switch c {
        case 0xC2...0xDF: length = 2
        case 0xE0...0xEF:
            length = 3
            low = c == 0xE0 ? 0xA0 : 0x80
            high = c == 0xED ? 0x9F : 0xBF
        case 0xF0...0xF4:
            length = 4
            low = c == 0xF0 ? 0x90 : 0x80
            high = c == 0xF4 ? 0x8F : 0xBF
        default: break
        }
        var good = 1
        while good < length, p + good < end {
            let next = p[good]
            guard next >= low, next <= high else { break }
            low = 0x80
            high = 0xBF
            good += 1
        }
        if length > 0, good == length {
            memcpy(out, p, length)
            p += length
            out += length
            return
        }
        // A character that is cut off becomes one replacement, as in `String(decoding:as:)`; the bytes of an
        // invalid one are replaced one by one.
        p += good
        isRepaired = true
        out[0] = 0xEF
        out[1] = 0xBF
        out[2] = 0xBD
        out += 3
    }

    /// Writes content without the backslashes before quotes and backslashes. Other backslashes stay: nginx
    /// writes `\x16` for a byte, which is kept as it is.
    mutating func unescape(_ text: Bytes) {
        var left = text
        while let index = left.firstIndex(of: UInt8(ascii: "\\")), index + 1 < left.count {
            let next = left[index + 1]
            guard next == UInt8(ascii: "\"") || next == UInt8(ascii: "\\") else {
                content(left.prefix(index + 2))
                left = left.dropping(index + 2)
                continue
            }
            content(left.prefix(index))
            content(Bytes(left.start + index + 1, 1))
            left = left.dropping(index + 2)
        }
        content(left)
    }

    /// Makes room for more bytes. Callers write behind `out` without further checks.
    @inline(__always)
    mutating func reserve(_ more: Int) {
        if storage + capacity - out < more {
            grow(more)
        }
    }

    /// Moves the object to storage of at least twice the size, so that the cost of moving stays linear.
    @inline(never)
    private mutating func grow(_ more: Int) {
        let count = out - storage
        let larger = max(capacity * 2, count + more)
        let moved = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
        memcpy(moved, storage, count)
        storage.deallocate()
        storage = moved
        capacity = larger
        out = moved + count
    }
}

/// The time that was read last, and the day that was written last.
private struct LastTime {
    /// The time's text as it was in the line; empty before the first.
    var text: [UInt8] = []
    /// The time that the text says.
    var time = Timestamp(nanoseconds: 0)
    /// Number of the day that was written last (days since 1970), and its text in two words. `Int64.min` is
    /// not a day.
    var day = Int64.min
    var dayText: (UInt64, UInt16) = (0, 0)
    /// The time that was written last; nil before the first.
    var written: Timestamp?
    /// The whole member that was written, with its comma: `writtenCount` bytes count.
    var writtenText: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0)
    var writtenCount = 0

    /// Size of `writtenText`. The longest member has 45 bytes, with nine digits of the second.
    static let mostText = 48
    /// Length of `"timestamp":`.
    static let nameLength = 12
}
