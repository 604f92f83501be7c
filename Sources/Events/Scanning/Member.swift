/// The top-level members of an event that the agent reads. All others travel untouched.
enum MemberName: Int, CaseIterable {
    case name, timestamp, priority, sessionID, id, country, type, properties, app, device, observedAt, process, pid,
        hostName
    /// The member that holds an address, as configured.
    case address

    private static let spellings = [
        "name", "timestamp", "priority", "session_id", "id", "country", "type", "properties", "app", "device",
        "observed_at", "process", "pid", "host_name", "",
    ]

    /// The name as it is in an event; empty for the address, which is configured.
    var spelling: [UInt8] { Array(MemberName.spellings[rawValue].utf8) }

    /// Its bit in a set of members.
    @inline(__always) var bit: UInt64 { 1 << UInt64(truncatingIfNeeded: rawValue) }
}

/// Where a member is, in bytes from the beginning of the block.
struct Member {
    /// The opening quote of its name.
    var key = 0
    var value = 0
    /// The byte after its value.
    var end = 0
    /// Whether its value is a string with escapes in it.
    var isEscaped = false

    /// The text of a string value is between these (quotes excluded).
    @inline(__always) var text: Range<Int> { Range(uncheckedBounds: (value + 1, end - 1)) }
}
