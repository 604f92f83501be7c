/// Cuts a JSON text (a value, an array of values, or objects that each begin on a new line) into events of
/// one line each, block by block, in bounded memory. A value without I/O.
///
/// The values before the first error in the text are events, which the sink checks one by one; everything
/// from the error on is lost. Line breaks between tokens are removed from an event, all other bytes stay as
/// they are.
struct ObjectSplitter {
    /// The result of reading on.
    enum Find: Equatable {
        /// All bytes that were given are used; more are needed.
        case more
        /// `event` holds a complete event and an LF.
        case event
        /// An event exceeds the limit; with its length in the file. `event` holds its first bytes.
        case tooLong(Int64)
        /// The text is not valid JSON from here on, so all behind `resumption` is lost; with the text that
        /// was expected and its offset.
        case fault(String)
    }

    /// A position between two events, at which reading can continue after a restart.
    struct Resumption: Equatable {
        /// The syntactic state, which determines what may follow. The numbers are stored in checkpoints.
        enum State: UInt8 {
            /// Only white space was seen.
            case start = 0
            /// A value and a line break after it were seen: another object may follow.
            case nextLine = 2
            /// In the outer array, between values; written by earlier versions only.
            case inArray = 3
            /// After the bracket that opens the outer array.
            case arrayStart = 8
            /// After a comma in the outer array.
            case afterComma = 9
            /// After a value in the outer array.
            case afterElement = 10
            /// After a value outside of an array, on the same line.
            case afterValue = 11
            /// After the bracket that closes the outer array.
            case afterArray = 16
        }

        /// Bytes of the text before the position.
        var offset: Int64
        var state: State

        static let start = Resumption(offset: 0, state: .start)

        /// A position in an archive of lines.
        static func lines(_ offset: Int64) -> Resumption { Resumption(offset: offset, state: .nextLine) }
    }

    /// Bytes of an oversized event that are kept for the quarantine.
    static let excerpt = 4096

    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// The longest event in bytes, after removal of line breaks.
    let longest: Int
    /// The event that was found, with an LF at its end; or the beginning of the event that is being read.
    private(set) var event: [UInt8] = []
    /// Offset of the event in the text.
    private(set) var eventOffset: Int64 = 0
    /// The position behind the last complete event and the comma and white space after it.
    private(set) var resumption: Resumption

    /// Bytes used so far, including those of the open event.
    private(set) var position: Int64
    /// The grammar of the event that is being read; nil between two events.
    private var value: JSONGrammar?
    /// Length of the event so far, without line breaks.
    private var length = 0
    /// The error in the text, after which nothing is read.
    private var fault: String?
    /// Bytes of a byte order mark that were seen at the beginning of the text.
    private var marks = 0

    init(longest: Int, from resumption: Resumption = .start) {
        self.longest = longest
        self.resumption = resumption
        position = resumption.offset
    }

    /// Whether the text may end here: it has a value, and every bracket is closed.
    var isComplete: Bool {
        guard fault == nil else { return false }
        switch resumption.state {
        case .nextLine, .afterValue, .afterArray: return value?.mayEnd ?? true
        case .start: return value?.mayEnd ?? false
        case .inArray, .arrayStart, .afterComma, .afterElement: return false
        }
    }

    /// Whether only white space was seen.
    var isBlank: Bool { resumption.state == .start && value == nil && fault == nil }

    /// The detail for a text that ends too early.
    var earlyEnd: String {
        guard isBlank else { return "the text ends too early" }
        return position == 0 ? "the file is empty" : "the file contains only white space"
    }

    var hasOpenEvent: Bool { value != nil }

    /// Ends an event that only the end of the text can end: a bare number.
    mutating func finish() -> Find {
        guard value != nil else { return .more }
        return end()
    }

    /// Reads on until an event is found or all bytes are used.
    ///
    /// - Parameters:
    ///   - block: the next bytes of the text.
    ///   - used: bytes of the block that were used; the next call continues there.
    mutating func next(_ block: UnsafeRawBufferPointer, used: inout Int) -> Find {
        if let fault { return .fault(fault) }
        while used < block.count {
            if value == nil {
                guard between(block[used]) else { continue }
                if let fault { return .fault(fault) }
                used += 1
                position += 1
                continue
            }
            if value?.isInString == true {
                let run = ObjectSplitter.plainBytes(block[used...])
                collect(block[used..<(used + run)])
                used += run
                position += Int64(run)
                guard used < block.count else { break }
            }
            let byte = block[used]
            switch value?.advance(byte) {
            case .inside?: collect(CollectionOfOne(byte))
            case .lineBreak?: break
            case .last?:
                collect(CollectionOfOne(byte))
                used += 1
                position += 1
                return end()
            case .after?: return end()
            case .fault(let expected)?: return fail(expected)
            case nil: break
            }
            used += 1
            position += 1
        }
        return .more
    }

    /// Handles a byte between two events. False if an event begins with the byte.
    private mutating func between(_ byte: UInt8) -> Bool {
        if JSONGrammar.isSpace(byte) {
            if resumption.state == .afterValue, byte == 0x0A || byte == 0x0D {
                resumption.state = .nextLine
            }
            if resumption.state != .start {
                resumption.offset = position + 1
            }
            return true
        }
        // A byte order mark is skipped, which RFC 8259, section 8.1, allows.
        if resumption.state == .start, position == Int64(marks), marks < 3,
            byte == ObjectSplitter.byteOrderMark[marks]
        {
            marks += 1
            return true
        }
        guard marks == 0 || marks == 3 else {
            _ = fail("expected a value")
            return true
        }
        let old = resumption.state
        switch (byte, old) {
        case (UInt8(ascii: "["), .start): resumption.state = .arrayStart
        case (UInt8(ascii: "]"), .arrayStart), (UInt8(ascii: "]"), .afterElement),
            (UInt8(ascii: "]"), .inArray):
            resumption.state = .afterArray
        case (UInt8(ascii: ","), .afterElement), (UInt8(ascii: ","), .inArray): resumption.state = .afterComma
        case (_, .start), (_, .arrayStart), (_, .afterComma), (_, .inArray):
            return begin(byte, old == .arrayStart ? "expected a value or ]" : "expected a value")
        case (UInt8(ascii: "{"), .nextLine): return begin(byte, "expected an object")
        case (_, .nextLine): _ = fail("expected an object, or the end of the text")
        case (_, .afterElement): _ = fail("expected a comma or ]")
        case (_, .afterValue), (_, .afterArray): _ = fail("expected the end of the text")
        }
        if fault == nil {
            resumption.offset = position + 1
        }
        return true
    }

    /// Begins an event. True if no value can begin with the byte, which is an error.
    private mutating func begin(_ byte: UInt8, _ expected: StaticString) -> Bool {
        guard JSONGrammar.begins(byte) else {
            _ = fail(expected)
            return true
        }
        event.removeAll(keepingCapacity: true)
        value = JSONGrammar()
        eventOffset = position
        length = 0
        return false
    }

    /// Notes the first error of the text; each later call of `next` returns it again.
    private mutating func fail(_ expected: StaticString) -> Find {
        let text = "\(expected) at byte \(position) of the file"
        fault = text
        return .fault(text)
    }

    /// Count of leading bytes that are plain characters of a string: no quote, backslash or control
    /// character.
    private static func plainBytes(_ bytes: Slice<UnsafeRawBufferPointer>) -> Int {
        bytes.prefix { $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }.count
    }

    /// Appends bytes to the event; beyond the limit only an excerpt is kept.
    private mutating func collect(_ bytes: some Collection<UInt8>) {
        length += bytes.count
        if length <= longest {
            event.append(contentsOf: bytes)
        } else if event.count < ObjectSplitter.excerpt {
            event.append(contentsOf: bytes.prefix(ObjectSplitter.excerpt - event.count))
        } else if event.count > ObjectSplitter.excerpt {
            event.removeSubrange(ObjectSplitter.excerpt...)
        }
    }

    /// Ends the event that is being read.
    private mutating func end() -> Find {
        value = nil
        let isAtTop = resumption.state == .start || resumption.state == .nextLine
        resumption = Resumption(offset: position, state: isAtTop ? .afterValue : .afterElement)
        if length > longest { return .tooLong(position - eventOffset) }
        event.append(0x0A)
        return .event
    }
}
