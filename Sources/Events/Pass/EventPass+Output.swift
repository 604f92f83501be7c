internal import EventLoops
internal import Glibc

/// A piece written otherwise: bytes `from` to `to` of the block become those of `inserted` in the pass's scratch.
struct Edit {
    let from: Int
    let to: Int
    var inserted = 0..<0
}

struct Additions: OptionSet {
    let rawValue: UInt8

    static let app = Additions(rawValue: 1)
    static let sessionID = Additions(rawValue: 2)
    static let country = Additions(rawValue: 4)
    static let device = Additions(rawValue: 8)
    static let observedAt = Additions(rawValue: 16)
    static let id = Additions(rawValue: 32)

    /// What an event that has none of them gets.
    static let usual: Additions = [.app, .sessionID, .country, .device, .observedAt, .id]

    /// What records have of their own, as members of the scanner.
    static let ofRecords =
        MemberName.app.bit | MemberName.country.bit | MemberName.hostName.bit | MemberName.observedAt.bit
        | MemberName.id.bit

    static let members =
        MemberName.app.bit | MemberName.sessionID.bit | MemberName.country.bit | MemberName.device.bit
        | MemberName.observedAt.bit | MemberName.id.bit
}

/// What the members that are added say: `app` and `device` as JSON text, the others without their quotes.
struct AddedMembers {
    var app: [UInt8] = []
    var sessionID: [UInt8] = []
    var country: [UInt8] = []
    /// An object; of records a text, the machine's name.
    var device: [UInt8] = []
    var observedAt: [UInt8] = []
    /// The time of events for which `device` is right.
    var deviceFrom = Timestamp(nanoseconds: .min)
    var deviceUntil = Timestamp(nanoseconds: .max)
}

/// The members that are the same for the events of a block, as the bytes that go before an event's closing bracket.
///
/// One run of bytes, so that the usual event takes one copy.
struct Tail: ~Copyable {
    private static let idName: StaticString = ",\"id\":\""
    /// What an id takes at most, with its name, quotes and comma.
    static let idLength = 17 + EventIDs.length + 1

    /// What the agent's id is called beside a record's own `id`.
    enum OtherIDName {
        case recordID
        /// Where the record has a `record_id`, too.
        case spoolshipID

        fileprivate var text: StaticString {
            switch self {
            case .recordID: ",\"record_id\":\""
            case .spoolshipID: ",\"spoolship_id\":\""
            }
        }
    }

    private var text = LineBuffer(capacity: 64)
    private var ends = (0, 0, 0, 0, 0)

    @inline(__always) var start: UnsafeMutablePointer<UInt8> { text.start }
    @inline(__always) var count: Int { text.count }

    /// Sets what is known; an empty text leaves its member out.
    mutating func set(_ members: AddedMembers) {
        text.removeAll()
        ends.0 = add("app", members.app, isText: false)
        ends.1 = add("session_id", members.sessionID, isText: true)
        ends.2 = add("country", members.country, isText: true)
        ends.3 = add(members.device.first == .quote ? "host_name" : "device", members.device, isText: false)
        ends.4 = add("observed_at", members.observedAt, isText: true)
    }

    /// Changes the session's id where the one before was as long; false when the members must be set again.
    mutating func replaceSession(_ id: [UInt8]) -> Bool {
        guard ends.1 - ends.0 == id.count + 16 else { return false }
        memcpy(start + ends.1 - 1 - id.count, id, id.count)
        return true
    }

    private mutating func add(_ name: StaticString, _ value: [UInt8], isText: Bool) -> Int {
        guard !value.isEmpty else { return count }
        text.append(",\"")
        text.append(name)
        text.append(isText ? "\":\"" : "\":")
        text.append(value[...])
        if isText { text.append("\"") }
        return count
    }

    /// Writes the members that are wanted; the id is not one of them here.
    mutating func write(_ wanted: Additions, to out: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
        // One after the other: a loop over a list of them makes the list again for each event.
        var out = copy(0, ends.0, if: wanted.contains(.app), to: out)
        out = copy(ends.0, ends.1, if: wanted.contains(.sessionID), to: out)
        out = copy(ends.1, ends.2, if: wanted.contains(.country), to: out)
        out = copy(ends.2, ends.3, if: wanted.contains(.device), to: out)
        return copy(ends.3, ends.4, if: wanted.contains(.observedAt), to: out)
    }

    @inline(__always)
    private func copy(
        _ from: Int, _ to: Int, if isWanted: Bool, to out: UnsafeMutablePointer<UInt8>
    ) -> UnsafeMutablePointer<UInt8> {
        guard isWanted else { return out }
        memcpy(out, start + from, to - from)
        return out + (to - from)
    }

    @inline(__always)
    static func writeIDName(to out: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
        memcpy(out, idName.utf8Start, 7)
        return out + 7
    }

    static func write(_ name: OtherIDName, to out: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
        let text = name.text
        memcpy(out, text.utf8Start, text.utf8CodeUnitCount)
        return out + text.utf8CodeUnitCount
    }
}

extension EventPass {
    /// Notes that a member is to be taken out, with the comma after it.
    mutating func remove(_ member: Member) {
        var to = member.end
        while base[to] <= .blank { to += 1 }
        if base[to] == .comma {
            to += 1
        }
        edits.append(Edit(from: member.key, to: to))
    }

    /// Notes that bytes are to be written otherwise.
    mutating func replace(_ range: Range<Int>, with bytes: [UInt8]) {
        let start = scratch.count
        scratch += bytes
        edits.append(Edit(from: range.lowerBound, to: range.upperBound, inserted: start..<scratch.count))
    }

    /// Writes the event up to its closing bracket, with the edits made and the line breaks between tokens taken out.
    ///
    /// Line breaks are between tokens only: inside a string the scanner refuses them.
    @inline(never)
    mutating func copyEdited(to start: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
        edits.sort { $0.from < $1.from }
        var out = start
        var position = scanner.open
        for edit in edits {
            out = copy(position, edit.from, to: out)
            for index in edit.inserted where scratch[index] != .lineFeed && scratch[index] != 0x0D {
                out[0] = scratch[index]
                out += 1
            }
            position = edit.to
        }
        out = copy(position, scanner.close, to: out)
        // What was taken out at the end leaves a comma behind; the members that follow bring their own.
        while out > start, out[-1] <= .blank { out -= 1 }
        if !edits.isEmpty, out > start, out[-1] == .comma { out -= 1 }
        return out
    }

    private mutating func copy(_ from: Int, _ to: Int, to start: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<
        UInt8
    > {
        guard to > from else { return start }
        guard scanner.hasLineBreaks else {
            memcpy(start, base + from, to - from)
            return start + (to - from)
        }
        var out = start
        for index in from..<to where base[index] != .lineFeed && base[index] != 0x0D {
            out[0] = base[index]
            out += 1
        }
        return out
    }

    /// Writes the members in `front`; they may be the first of an empty object.
    @inline(never)
    mutating func writeFront(_ start: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
        var out = start
        while out[-1] <= .blank { out -= 1 }
        if out[-1] != .openBrace {
            out[0] = .comma
            out += 1
        }
        front.withUnsafeBufferPointer { text in
            guard let from = text.baseAddress else { return }
            memcpy(out, from, text.count)
        }
        return out + front.count
    }

    mutating func addFront(_ name: StaticString, _ value: (inout [UInt8]) -> Void) {
        if !front.isEmpty { front.append(.comma) }
        front.append(.quote)
        front.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        front.append(.quote)
        front.append(.colon)
        value(&front)
    }

    /// Adds the time that was found elsewhere.
    mutating func addTimestamp(_ time: Timestamp) {
        let text = timeWriter.text(of: time)
        addFront("timestamp") { $0 += [.quote] + text + [.quote] }
    }
}
