/// Cuts a JSON text (an object, an array of objects, or several one after another) into events of one line each,
/// block by block, in bounded memory. A pure core.
///
/// It knows strings and brackets and nothing else: line breaks and spaces between tokens are left out, all other bytes
/// pass as they are, and whoever takes the event checks that it is JSON. What stands where an event should be comes
/// out as an event as well, to be refused there: one bad element does not hurt its neighbours.
struct ObjectSplitter {
    /// What was found.
    enum Find: Equatable {
        /// All bytes given were used.
        case more
        /// `event` holds a whole event and an LF.
        case event
        /// An event is longer than the limit: its length in the file. `event` holds its first bytes.
        case tooLong(Int64)
        /// A string of the event has a raw line feed. `event` holds it, with an LF at its end as well.
        case brokenString
    }

    /// Where reading can go on after a restart: between two events.
    struct Place: Equatable {
        /// So many bytes of the text were used.
        var offset: Int64
        /// Whether that is inside the outer array.
        var isInArray: Bool
        /// Whether a value has been seen at all.
        var hasContent: Bool
    }

    /// How many bytes of an event that is too long are kept.
    static let excerpt = 4096
    /// How deeply brackets are followed; what lies deeper is taken as it is.
    private static let deepest = 4096

    /// The longest event in bytes, brought to one line.
    let longest: Int
    /// The event that was found, with an LF at its end; or the beginning of the one that is being read.
    private(set) var event: [UInt8] = []
    /// Where the event began in the text.
    private(set) var eventOffset: Int64 = 0
    /// The place after the last event that was found whole.
    private(set) var place: Place

    private var offset: Int64
    private var isInArray: Bool
    private var isInEvent = false
    private var isInString = false
    private var isEscaped = false
    private var isBroken = false
    private var isAfterSpace = false
    private var length = 0
    private var brackets: [UInt8] = []
    /// How many of `brackets` are braces.
    private var braces = 0

    init(longest: Int, from place: Place = Place(offset: 0, isInArray: false, hasContent: false)) {
        self.longest = longest
        self.place = place
        offset = place.offset
        isInArray = place.isInArray
    }

    /// Whether the text may end here: something was there, and every bracket is closed.
    var isComplete: Bool {
        (place.hasContent || isInEvent) && !isInArray && brackets.isEmpty && !isInString
    }

    /// Whether a value that has no bracket to end it (a number at the very end) is still open.
    var hasOpenEvent: Bool { isInEvent }

    /// The bytes used so far, those of the open event included.
    var position: Int64 { offset }

    /// Ends the event that only the end of the text can end, such as a bare number.
    mutating func finish() -> Find {
        guard isInEvent else { return .more }
        return end()
    }

    /// Reads on until an event is found or all bytes are used.
    ///
    /// - Parameters:
    ///   - block: the next bytes of the text.
    ///   - used: how many bytes of the block have been used; where to go on.
    mutating func next(_ block: UnsafeRawBufferPointer, used: inout Int) -> Find {
        if !isInEvent { event.removeAll(keepingCapacity: true) }
        while used < block.count {
            let byte = block[used]
            if isInString {
                used += 1
                offset += 1
                inString(byte)
                continue
            }
            switch byte {
            case 0x20, 0x09, 0x0A, 0x0D:
                used += 1
                offset += 1
                isAfterSpace = true
                if isInEvent, brackets.isEmpty, !isInArray { return end() }
                continue
            case UInt8(ascii: ","), UInt8(ascii: "]"):
                guard brackets.isEmpty, isInArray else { break }
                if isInEvent { return end() }
                used += 1
                offset += 1
                if byte == UInt8(ascii: "]") { isInArray = false }
                settle()
                continue
            case UInt8(ascii: "["):
                guard brackets.isEmpty, !isInArray, !isInEvent else { break }
                used += 1
                offset += 1
                isInArray = true
                settle()
                continue
            default: break
            }
            used += 1
            if !isInEvent { begin() }
            offset += 1
            if isAfterSpace {
                // A space between two bare words is kept: `1 2` must not become `12`.
                if let last = event.last, ObjectSplitter.isBare(last), ObjectSplitter.isBare(byte) { keep(0x20) }
                isAfterSpace = false
            }
            keep(byte)
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                if brackets.count < ObjectSplitter.deepest {
                    brackets.append(byte)
                    if byte == UInt8(ascii: "{") { braces += 1 }
                }
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                close(byte == UInt8(ascii: "}") ? UInt8(ascii: "{") : UInt8(ascii: "["))
                // In an array the comma ends the element, and what stands before it belongs to it.
                if brackets.isEmpty, !isInArray { return end() }
            default: break
            }
        }
        return .more
    }

    private mutating func inString(_ byte: UInt8) {
        keep(byte)
        if isEscaped {
            isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
            isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
            isInString = false
        }
        if byte == 0x0A { isBroken = true }
    }

    /// Closes the nearest bracket of that kind, and whatever was left open inside it.
    private mutating func close(_ opener: UInt8) {
        // Where none is open, none is looked for: a text of such would take for ever.
        guard opener == UInt8(ascii: "{") ? braces > 0 : braces < brackets.count else { return }
        while let last = brackets.popLast() {
            if last == UInt8(ascii: "{") { braces -= 1 }
            if last == opener { return }
        }
    }

    private mutating func keep(_ byte: UInt8) {
        length += 1
        if length <= longest {
            event.append(byte)
        } else if length == longest + 1 {
            event.removeSubrange(min(event.count, ObjectSplitter.excerpt)...)
        }
    }

    /// Whether the byte stands in a number or a word, not in a string.
    private static func isBare(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: ","),
            UInt8(ascii: ":"), UInt8(ascii: "\""):
            false
        default: true
        }
    }

    private mutating func begin() {
        isInEvent = true
        isAfterSpace = false
        eventOffset = offset
        length = 0
        isBroken = false
    }

    private mutating func end() -> Find {
        isInEvent = false
        isInString = false
        isEscaped = false
        brackets.removeAll(keepingCapacity: true)
        braces = 0
        settle()
        if length > longest { return .tooLong(offset - eventOffset) }
        event.append(0x0A)
        return isBroken ? .brokenString : .event
    }

    private mutating func settle() {
        place = Place(offset: offset, isInArray: isInArray, hasContent: true)
    }
}
