internal import EventLoops
internal import Model

/// What the values of a row come to, kept in its last column: a row whose end is another version's, or another row's, as after
/// a power cut in the middle of a page, comes to something else. Not against anybody who means harm.
enum RowCheck {
    /// 32 bits of all values, each in its place.
    static func of(_ values: Int64...) -> Int64 {
        var sum: UInt64 = 0
        for value in values {
            sum = (sum ^ UInt64(bitPattern: value)) &* 0x9E37_79B9_7F4A_7C15
            sum ^= sum >> 32
        }
        return Int64(sum & 0xFFFF_FFFF)
    }
}

extension DeliveryRow {
    func check(in lane: LaneKey) -> Int64 {
        var names: Int64 = -1
        for byte in deadlines?.text.utf8 ?? "".utf8 { names = RowCheck.of(names, Int64(byte)) }
        return RowCheck.of(
            lane.destination, Int64(lane.priority.rawValue), chunk, Int64(first), Int64(events), Int64(bytes),
            firstTime.nanoseconds, acceptedAt.nanoseconds, Int64(bitPattern: batch?.high ?? 0),
            Int64(bitPattern: batch?.low ?? 0), isFormed ? 1 : 0, names)
    }
}
