internal import EventLoops
internal import Glibc
internal import Model

/// A set of the members that the agent adds. `LineDraft.wanted` begins with all of them; what an event has
/// itself is removed from the set.
struct Additions: OptionSet {
    let rawValue: UInt8

    static let app = Additions(rawValue: 1)
    static let sessionID = Additions(rawValue: 2)
    static let country = Additions(rawValue: 4)
    static let device = Additions(rawValue: 8)
    static let observedAt = Additions(rawValue: 16)
    static let id = Additions(rawValue: 32)
    /// The file that a record was read from. Events never get it, so it is not one of the usual additions.
    static let filePath = Additions(rawValue: 64)

    /// What an event gets that has none of these members. The whole tail is copied at once in this case.
    static let usual: Additions = [.app, .sessionID, .country, .device, .observedAt, .id]

    /// Scanner bits of the members that a record may have itself. If none of them is present, the record
    /// needs no closer look.
    static let ofRecords =
        MemberName.app.bit | MemberName.country.bit | MemberName.hostName.bit | MemberName.observedAt.bit
        | MemberName.id.bit

    /// Scanner bits of the members that an event may have itself.
    static let members =
        MemberName.app.bit | MemberName.sessionID.bit | MemberName.country.bit | MemberName.device.bit
        | MemberName.observedAt.bit | MemberName.id.bit
}

/// Values of the additions: `app`, `device` and `filePath` as JSON text, the others without their quotes. An
/// empty value leaves its member out.
struct AddedMembers {
    var app: [UInt8] = []
    var sessionID: [UInt8] = []
    var country: [UInt8] = []
    /// The device as an object. For records it is a string, the machine's name, and the member is called
    /// `host_name`.
    var device: [UInt8] = []
    var observedAt: [UInt8] = []
    /// Path of the file, as JSON text.
    var filePath: [UInt8] = []
}

/// What the lines of a source get: the pass and its features fill it when the source begins.
struct SourceAdditions {
    var ofEvents = AddedMembers()
    var ofRecords = AddedMembers()
}

/// Additions that are the same for the events of a block, as the bytes that go before an event's closing
/// brace.
///
/// One run of bytes, so that the usual event costs one copy; each member begins with its comma.
struct Tail: ~Copyable {
    private static let idName: StaticString = ",\"id\":\""
    /// Most bytes of an id with its name, quotes and comma. 17 is the length of the longest `OtherIDName`
    /// text; the last byte is the closing quote.
    static let idLength = 17 + EventIDs.length + 1

    /// Name of the agent's id in a record that has an `id` of its own.
    enum OtherIDName {
        case recordID
        /// If the record has a `record_id`, too.
        case spoolshipID

        fileprivate var text: StaticString {
            switch self {
            case .recordID: ",\"record_id\":\""
            case .spoolshipID: ",\"spoolship_id\":\""
            }
        }
    }

    /// All members, one after the other.
    private var text = LineBuffer(capacity: 64)
    /// The offset after each member, in the order of `set`. A tuple and not an array: no bounds check, no
    /// allocation.
    private var ends = (0, 0, 0, 0, 0, 0)

    @inline(__always) var start: UnsafeMutablePointer<UInt8> { text.start }
    @inline(__always) var count: Int { text.count }

    /// Gives the memory back; `set` comes before the next line.
    mutating func release() {
        text.removeAll(keepingCapacity: 64)
        ends = (0, 0, 0, 0, 0, 0)
    }

    /// Renders the members; an empty value leaves its member out.
    mutating func set(_ members: AddedMembers) {
        text.removeAll()
        ends.0 = add("app", members.app, isText: false)
        ends.1 = add("session_id", members.sessionID, isText: true)
        ends.2 = add("country", members.country, isText: true)
        ends.3 = add(members.device.first == .quote ? "host_name" : "device", members.device, isText: false)
        ends.4 = add("observed_at", members.observedAt, isText: true)
        ends.5 = add("log.file.path", members.filePath, isText: false)
    }

    /// Replaces the session's id in place if the new one has the same length. Returns false, without a
    /// change, if the members must be set again.
    mutating func replaceSession(_ id: [UInt8]) -> Bool {
        guard ends.1 - ends.0 == id.count + 16 else { return false }
        memcpy(start + ends.1 - 1 - id.count, id, id.count)
        return true
    }

    /// Appends a member; returns the offset after it.
    private mutating func add(_ name: StaticString, _ value: [UInt8], isText: Bool) -> Int {
        guard !value.isEmpty else { return count }
        text.append(",\"")
        text.append(name)
        text.append(isText ? "\":\"" : "\":")
        text.append(value[...])
        if isText {
            text.append("\"")
        }
        return count
    }

    /// Writes the members in `wanted` except the id, which `writeEnd` writes. Returns the address after them.
    mutating func write(_ wanted: Additions, to out: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<
        UInt8
    > {
        // Written out, because a loop over an array of the members would make the array again for each event.
        var out = copy(0, ends.0, if: wanted.contains(.app), to: out)
        out = copy(ends.0, ends.1, if: wanted.contains(.sessionID), to: out)
        out = copy(ends.1, ends.2, if: wanted.contains(.country), to: out)
        out = copy(ends.2, ends.3, if: wanted.contains(.device), to: out)
        out = copy(ends.3, ends.4, if: wanted.contains(.observedAt), to: out)
        return copy(ends.4, ends.5, if: wanted.contains(.filePath), to: out)
    }

    /// Copies the bytes of one member if it is wanted.
    @inline(__always)
    private func copy(
        _ from: Int, _ to: Int, if isWanted: Bool, to out: UnsafeMutablePointer<UInt8>
    ) -> UnsafeMutablePointer<UInt8> {
        guard isWanted else { return out }
        memcpy(out, start + from, to - from)
        return out + (to - from)
    }

    /// Writes `,"id":"`; the id follows.
    @inline(__always)
    static func writeIDName(to out: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
        memcpy(out, idName.utf8Start, 7)
        return out + 7
    }

    /// Writes the other name of the agent's id.
    static func write(_ name: OtherIDName, to out: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8>
    {
        let text = name.text
        memcpy(out, text.utf8Start, text.utf8CodeUnitCount)
        return out + text.utf8CodeUnitCount
    }
}

/// The tails of a source's events and records, and what they were made of. They are made once a block; the
/// session and the device of an event are exchanged later, by the features that know them.
struct AddedTails: ~Copyable {
    /// Additions to events.
    private(set) var ofEvents = Tail()
    /// Additions to records: as those to events, with the host's name instead of the device, and the file's
    /// path.
    private(set) var ofRecords = Tail()
    /// The values that `ofEvents` was made of.
    private var added = AddedMembers()

    /// Gives memory back, because no source is read.
    mutating func release() {
        ofEvents.release()
        ofRecords.release()
    }

    /// Makes the tails of a source.
    mutating func begin(_ additions: SourceAdditions) {
        added = additions.ofEvents
        ofEvents.set(added)
        ofRecords.set(additions.ofRecords)
    }

    /// Gives the events another device.
    mutating func use(device: [UInt8]) {
        added.device = device
        ofEvents.set(added)
    }

    /// Gives the events a session's id; an empty one leaves the member out. Ids are mostly equally long, so
    /// the tail is rarely set again.
    mutating func use(session id: [UInt8]) {
        added.sessionID = id
        if !ofEvents.replaceSession(id) {
            ofEvents.set(added)
        }
    }

    /// Writes what a line gets, except its id. Returns the address after it. If an event gets all usual
    /// members, they are one copy.
    @inline(__always)
    mutating func write(
        _ wanted: Additions, isRecord: Bool, to start: UnsafeMutablePointer<UInt8>
    ) -> UnsafeMutablePointer<UInt8> {
        if isRecord { return ofRecords.write(wanted, to: start) }
        guard wanted == .usual else { return ofEvents.write(wanted, to: start) }
        memcpy(start, ofEvents.start, ofEvents.count)
        return start + ofEvents.count
    }
}
