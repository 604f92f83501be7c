internal import EventLoops
internal import Model

/// A check value of a row's other columns, stored in its last column.
///
/// A power cut in the middle of a page write can join halves of two rows, or of two versions of one
/// row; the check then differs. It detects accidents, not manipulation.
enum RowCheck {
    /// Mixes all values into 32 bits; their order matters.
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
    /// The check of a delivery row. All columns take part, the lane's included: halves of rows of two
    /// lanes on one page would otherwise pass.
    func check(in lane: LaneKey) -> Int64 {
        var names: Int64 = -1
        for byte in deadlines?.text.utf8 ?? "".utf8 { names = RowCheck.of(names, Int64(byte)) }
        return RowCheck.of(
            lane.destination, Int64(lane.priority.rawValue), chunk, Int64(first), Int64(events), Int64(bytes),
            firstTime.nanoseconds, acceptedAt.nanoseconds, Int64(bitPattern: batch?.high ?? 0),
            Int64(bitPattern: batch?.low ?? 0), isFormed ? 1 : 0, names)
    }
}
