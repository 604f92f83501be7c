/// Offsets of a member in an object that was written.
public struct WrittenMember {
    /// Offset of the name's opening quote.
    public let key: Int
    /// Offset of the value's opening quote.
    public let value: Int
    /// Offset after the value's closing quote.
    public let end: Int
}

/// The members of a record, noted while it is written, so that nobody has to scan it for them.
struct WrittenMembers: ~Copyable {
    /// Most members that are noted; a record with more is scanned.
    private static let most = 32

    /// The noted members, in the order of the record; owned.
    private let noted = UnsafeMutablePointer<WrittenMember>.allocate(capacity: WrittenMembers.most)
    /// Number of members; beyond `most` the last ones are not in `noted`.
    private var count = 0
    /// Whether each member of the record was noted.
    var areAll = false

    deinit { noted.deallocate() }

    /// All members of the record; nil if some were not noted. Valid until the next change.
    var all: UnsafeBufferPointer<WrittenMember>? {
        areAll && count <= WrittenMembers.most ? UnsafeBufferPointer(start: noted, count: count) : nil
    }

    /// Begins another record.
    mutating func removeAll() {
        count = 0
        areAll = false
    }

    @inline(__always)
    mutating func append(_ member: WrittenMember) {
        if count < WrittenMembers.most {
            noted[count] = member
        }
        count += 1
    }
}
