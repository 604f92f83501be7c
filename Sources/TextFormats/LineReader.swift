internal import Glibc

/// The position of reading in a record. Methods either step forward, or note what was expected at
/// which column, and return false or nil.
struct LineReader {
    /// The whole record.
    let record: Bytes
    /// The position: the next byte to read.
    var p: UnsafePointer<UInt8>
    /// Position at which the field that is being read began. A template needs it for a record that ends
    /// early.
    var fieldFrom: UnsafePointer<UInt8>
    /// The address after the record's last byte.
    let end: UnsafePointer<UInt8>
    /// Offset of the last failure, from the record's beginning.
    private var failedAt = 0
    /// The expected text there. Only the last failure is kept: each layout that is tried leaves one.
    private var expected = ""

    /// A reader at the beginning of a record.
    init(_ record: Bytes) {
        self.record = record
        p = record.start
        fieldFrom = record.start
        end = record.end
    }

    /// The part of the record that was not read yet.
    @inline(__always) var rest: Bytes { Bytes(p, end - p) }
    @inline(__always) var isAtEnd: Bool { p >= end }
    /// The next byte, or a line feed at the end of the record: no field is read from a line feed, so a caller
    /// needs no check of its own.
    @inline(__always) var next: UInt8 { p < end ? p.pointee : 0x0A }

    /// The record from the beginning of the current field on.
    var fieldStart: Bytes { Bytes(fieldFrom, end - fieldFrom) }

    /// The last failure, for the caller of the format.
    var failure: TextFailure { TextFailure(column: failedAt + 1, expected: expected) }

    /// Notes what was expected at the position, and returns false, so that a parser can end with `return
    /// fail(…)`.
    @inline(never)
    mutating func fail(_ expected: String) -> Bool {
        failedAt = p - record.start
        self.expected = expected
        return false
    }

    /// Consumes a text; returns false, and consumes nothing, if another text is next.
    @inline(__always)
    mutating func skip(_ text: StaticString) -> Bool {
        guard rest.hasPrefix(text) else { return false }
        p += text.utf8CodeUnitCount
        return true
    }

    /// Steps over a text that must be here; otherwise notes it as expected.
    @inline(__always)
    mutating func expect(_ text: StaticString) -> Bool { skip(text) ? true : fail("\(text)") }

    /// Returns the bytes before the next `byte`, and consumes both. Nil, with a note, if `byte` does not
    /// occur.
    @inline(__always)
    mutating func until(_ byte: UInt8) -> Bytes? {
        guard let index = rest.firstIndex(of: byte) else {
            _ = fail(String(Unicode.Scalar(byte)))
            return nil
        }
        let found = Bytes(p, index)
        p += index + 1
        return found
    }

    /// Returns the bytes before the next `text`, and consumes both. Nil, with a note, if `text` does not
    /// occur.
    mutating func until(_ text: StaticString) -> Bytes? {
        guard let index = rest.firstIndex(of: text) else {
            _ = fail("\(text)")
            return nil
        }
        let found = Bytes(p, index)
        p += index + text.utf8CodeUnitCount
        return found
    }

    /// Reads a word, which ends before a blank, a control character or the end. It may be empty.
    mutating func word() -> Bytes {
        let start = p
        while p < end, p.pointee > 0x20 { p += 1 }
        return Bytes(start, p - start)
    }

    /// Steps over blanks, not over tabs.
    mutating func skipBlanks() {
        while p < end, p.pointee == UInt8(ascii: " ") { p += 1 }
    }

    /// Reads at least one digit; otherwise returns nil, with a note.
    mutating func digits() -> Bytes? {
        let start = p
        while p < end, p.pointee &- 0x30 < 10 { p += 1 }
        guard p > start else {
            _ = fail("a number")
            return nil
        }
        return Bytes(start, p - start)
    }

    /// Consumes a text; returns false, and consumes nothing, if another text is next.
    @inline(__always)
    mutating func skip(_ text: [UInt8]) -> Bool {
        let left = rest
        guard left.count >= text.count else { return false }
        guard
            text.withUnsafeBufferPointer({ memcmp(left.start, $0.baseAddress ?? left.start, text.count) == 0 }
            )
        else { return false }
        p += text.count
        return true
    }

    /// Consumes a text; returns false, and consumes nothing, if another text is next.
    @inline(__always)
    mutating func skip(_ text: Bytes) -> Bool {
        guard rest.count >= text.count, begins(with: text) else { return false }
        p += text.count
        return true
    }

    /// Whether a text is here, which must not be longer than what is left. Most literals have one to three
    /// bytes, for which a call of memcmp costs more than it saves.
    @inline(__always)
    private func begins(with text: Bytes) -> Bool {
        switch text.count {
        case 0: true
        case 1: p[0] == text[0]
        case 2: p[0] == text[0] && p[1] == text[1]
        case 3: p[0] == text[0] && p[1] == text[1] && p[2] == text[2]
        default: memcmp(p, text.start, text.count) == 0
        }
    }

    /// Returns the bytes before a text of at least two bytes, and steps over both; nil, with a note, if it is
    /// not there.
    @inline(__always)
    mutating func until(_ text: Bytes) -> Bytes? {
        let left = rest
        var from = 0
        while let index = left.dropping(from).firstIndex(of: text[0]) {
            let start = from + index
            guard left.count - start >= text.count else { break }
            if memcmp(left.start + start, text.start, text.count) == 0 {
                p += start + text.count
                return Bytes(left.start, start)
            }
            from = start + 1
        }
        _ = fail(String(decoding: text.buffer, as: UTF8.self))
        return nil
    }

    /// Reads the text between the bracket here and the one that closes it. Brackets inside belong to the
    /// text, as in the names of threads. Returns nil, with a note, if no bracket closes it on this line.
    mutating func bracketed() -> Bytes? {
        let start = p + 1
        var depth = 0
        // A stack trace follows after the first line, and can have brackets of its own.
        while !isAtEnd, next != 0x0A {
            if next == UInt8(ascii: "[") {
                depth += 1
            }
            if next == UInt8(ascii: "]") {
                depth -= 1
            }
            p += 1
            if depth == 0 { return Bytes(start, p - 1 - start) }
        }
        _ = fail("]")
        return nil
    }

    // MARK: Parts of key=value

    /// Reads a key: all before `=`, a quote or a blank. May be empty.
    mutating func pairKey() -> Bytes {
        let start = p
        while !isAtEnd, next > 0x20, next != UInt8(ascii: "="), next != UInt8(ascii: "\"") { p += 1 }
        return Bytes(start, p - start)
    }

    /// Reads a value without quotes: all before a blank.
    mutating func pairValue() -> Bytes {
        let start = p
        while !isAtEnd, next > 0x20 { p += 1 }
        return Bytes(start, p - start)
    }
}
