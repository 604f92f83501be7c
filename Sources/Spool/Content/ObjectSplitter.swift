/// Cuts a JSON text (a value, an array of values, or objects that each begin on a new line) into events of one line each, block
/// by block, in bounded memory. A pure core.
///
/// One rule for whatever comes: the values before the text's first fault are events, each judged by whoever takes it; from
/// the fault on nothing is. Line breaks between tokens are left out of an event, all other bytes pass as they are.
struct ObjectSplitter {
    enum Find: Equatable {
        /// All bytes given were used.
        case more
        /// `event` holds a whole event and an LF.
        case event
        /// An event is longer than the limit: its length in the file. `event` holds its first bytes.
        case tooLong(Int64)
        /// The text is not JSON from here on, all behind `place` is lost: what was expected, and at which byte of the text.
        case fault(String)
    }

    /// Where reading can go on after a restart: between two events.
    struct Place: Equatable {
        /// What the text may go on with. The numbers are kept.
        enum State: UInt8 {
            /// Nothing was seen, but white space.
            case start = 0
            /// A value was seen, and a line break after it: another object may follow.
            case nextLine = 2
            /// Somewhere in the outer array, between values; told by earlier versions only.
            case inArray = 3
            case arrayStart = 8
            case afterComma = 9
            case afterElement = 10
            /// After a value that is no outer array, on the same line.
            case afterValue = 11
            case afterArray = 16
        }

        /// So many bytes of the text were used.
        var offset: Int64
        var state: State

        static let start = Place(offset: 0, state: .start)

        static func lines(_ offset: Int64) -> Place { Place(offset: offset, state: .nextLine) }
    }

    /// How many bytes of an event that is too long are kept.
    static let excerpt = 4096

    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// The longest event in bytes, brought to one line.
    let longest: Int
    /// The event that was found, with an LF at its end; or the beginning of the one that is being read.
    private(set) var event: [UInt8] = []
    private(set) var eventOffset: Int64 = 0
    /// The place after the last event that was found whole, and the comma after it.
    private(set) var place: Place

    /// The bytes used so far, those of the open event included.
    private(set) var position: Int64
    /// The event that is being read; nil between two.
    private var value: JSONGrammar?
    private var length = 0
    private var fault: String?
    private var marks = 0

    init(longest: Int, from place: Place = .start) {
        self.longest = longest
        self.place = place
        position = place.offset
    }

    /// Whether the text may end here: something was there, and every bracket is closed.
    var isComplete: Bool {
        guard fault == nil else { return false }
        switch place.state {
        case .nextLine, .afterValue, .afterArray: return value?.mayEnd ?? true
        case .start: return value?.mayEnd ?? false
        case .inArray, .arrayStart, .afterComma, .afterElement: return false
        }
    }

    /// Whether nothing was seen, but white space.
    var isBlank: Bool { place.state == .start && value == nil && fault == nil }

    /// What to tell of a text that ends before it should.
    var earlyEnd: String {
        guard isBlank else { return "the text ends too early" }
        return position == 0 ? "the file is empty" : "the file contains only white space"
    }

    var hasOpenEvent: Bool { value != nil }

    /// Ends the event that only the end of the text can end, such as a bare number.
    mutating func finish() -> Find {
        guard value != nil else { return .more }
        return end()
    }

    /// Reads on until an event is found or all bytes are used.
    ///
    /// - Parameters:
    ///   - block: the next bytes of the text.
    ///   - used: how many bytes of the block have been used; where to go on.
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
                keep(block[used..<(used + run)])
                used += run
                position += Int64(run)
                guard used < block.count else { break }
            }
            let byte = block[used]
            switch value?.take(byte) {
            case .inside?: keep(CollectionOfOne(byte))
            case .lineBreak?: break
            case .last?:
                keep(CollectionOfOne(byte))
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

    /// Looks at a byte between two events. False: an event begins with it.
    private mutating func between(_ byte: UInt8) -> Bool {
        if JSONGrammar.isSpace(byte) {
            if place.state == .afterValue, byte == 0x0A || byte == 0x0D { place.state = .nextLine }
            if place.state != .start { place.offset = position + 1 }
            return true
        }
        // An editor's byte order mark is no content, as JSON's rules allow.
        if place.state == .start, position == Int64(marks), marks < 3, byte == ObjectSplitter.byteOrderMark[marks] {
            marks += 1
            return true
        }
        guard marks == 0 || marks == 3 else {
            _ = fail("expected a value")
            return true
        }
        let old = place.state
        switch (byte, old) {
        case (UInt8(ascii: "["), .start): place.state = .arrayStart
        case (UInt8(ascii: "]"), .arrayStart), (UInt8(ascii: "]"), .afterElement), (UInt8(ascii: "]"), .inArray):
            place.state = .afterArray
        case (UInt8(ascii: ","), .afterElement), (UInt8(ascii: ","), .inArray): place.state = .afterComma
        case (_, .start), (_, .arrayStart), (_, .afterComma), (_, .inArray):
            return begin(byte, old == .arrayStart ? "expected a value or ]" : "expected a value")
        case (UInt8(ascii: "{"), .nextLine): return begin(byte, "expected an object")
        case (_, .nextLine): _ = fail("expected an object, or the end of the text")
        case (_, .afterElement): _ = fail("expected a comma or ]")
        case (_, .afterValue), (_, .afterArray): _ = fail("expected the end of the text")
        }
        if fault == nil { place.offset = position + 1 }
        return true
    }

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

    private mutating func fail(_ expected: StaticString) -> Find {
        let text = "\(expected) at byte \(position) of the file"
        fault = text
        return .fault(text)
    }

    /// How many bytes at the beginning are a string's, and neither end it nor mean anything to it.
    private static func plainBytes(_ bytes: Slice<UnsafeRawBufferPointer>) -> Int {
        bytes.prefix { $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }.count
    }

    private mutating func keep(_ bytes: some Collection<UInt8>) {
        length += bytes.count
        if length <= longest {
            event.append(contentsOf: bytes)
        } else if event.count < ObjectSplitter.excerpt {
            event.append(contentsOf: bytes.prefix(ObjectSplitter.excerpt - event.count))
        } else if event.count > ObjectSplitter.excerpt {
            event.removeSubrange(ObjectSplitter.excerpt...)
        }
    }

    private mutating func end() -> Find {
        value = nil
        let isAtTop = place.state == .start || place.state == .nextLine
        place = Place(offset: position, state: isAtTop ? .afterValue : .afterElement)
        if length > longest { return .tooLong(position - eventOffset) }
        event.append(0x0A)
        return .event
    }
}
