/// Top-level members of an event that the agent reads; all others travel untouched. The raw value is the
/// member's slot in the scanner. The order matters: of members before `hostName`, repeated ones are removed.
enum MemberName: Int, CaseIterable {
    case name, timestamp, priority, sessionID, id, country, type, properties, app, device, observedAt,
        process, pid,
        hostName
    /// The member that holds an address, whose name is configured.
    case address

    private static let spellings = [
        "name", "timestamp", "priority", "session_id", "id", "country", "type", "properties", "app", "device",
        "observed_at", "process", "pid", "host_name", "",
    ]

    /// The name as it is in an event; empty for the address, which is configured.
    var spelling: [UInt8] { Array(MemberName.spellings[rawValue].utf8) }

    /// The member's bit in `JSONScanner.present`.
    @inline(__always) var bit: UInt64 { 1 << UInt64(truncatingIfNeeded: rawValue) }
}

/// Range of a member, as offsets in the block.
struct Member {
    /// Opening quote of its name.
    var key = 0
    /// First byte of its value.
    var value = 0
    /// The byte after its value.
    var end = 0
    /// Whether its value is a string with escapes.
    var isEscaped = false

    /// Text of a string value, without its quotes.
    @inline(__always) var text: Range<Int> { Range(uncheckedBounds: (value + 1, end - 1)) }

    /// Whether the value is `null`, which counts as missing. In validated JSON nothing else begins with `n`.
    @inline(__always)
    func isNull(in line: UnsafePointer<UInt8>) -> Bool { line[value] == UInt8(ascii: "n") }

    /// Whether the value can be an id: a number, or a text that is not empty.
    func isIdentifier(in line: UnsafePointer<UInt8>) -> Bool {
        switch line[value] {
        case .quote: end - value > 2
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }
}
