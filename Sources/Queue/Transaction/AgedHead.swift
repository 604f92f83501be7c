internal import EventLoops
internal import Model

/// The chunks at the head of a lane that wait in the minutes after a step of the clock, because all their
/// events look too old.
///
/// Nothing expires in these minutes, so all of them would be sent, although sending can wait: they expire
/// soon, or the clock is corrected and they are sent. Only the head waits, so nothing that looks young waits
/// behind it, and one number says what waits: no search looks at these chunks.
struct AgedHead {
    /// Rows that one look examines: about as long as a commit takes.
    private static let mostExamined = 2_000

    /// All events of the lane's chunks below this one look too old.
    private(set) var end: Int64 = 0
    /// The time of day of the last look. If the clock is set back even by little, the head is looked at anew.
    private var lookedAt = Timestamp(nanoseconds: .min)

    /// Rows whose chunks lie before this one were added to the lane.
    mutating func rewind(to chunk: Int64) { end = min(end, chunk) }

    /// Moves the end past chunks that look too old.
    ///
    /// - Returns: whether the end is reached; false if another look must follow.
    mutating func look(
        at key: LaneKey, _ sifter: Sifter, now: Timestamp, of file: QueueFile,
        isDone: (DeliveryRow) -> Bool
    ) throws(QueueError) -> Bool {
        if now < lookedAt {
            end = 0
        }
        lookedAt = now
        var left = AgedHead.mostExamined
        var reached = end
        var isOver = true
        try file.walk(key, from: end) { row throws(QueueError) in
            // The rows of a chunk are never separated.
            guard left > 0 || row.chunk < reached else {
                isOver = false
                return false
            }
            left -= 1
            let waits = isDone(row) ? true : try sifter.looksTooOld(row)
            guard waits else {
                // Another row of the chunk may be an app's whose events look too old.
                reached = row.chunk
                return false
            }
            reached = row.chunk + 1
            return true
        }
        end = reached
        return isOver
    }
}
