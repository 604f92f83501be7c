internal import EventLoops
internal import Model

/// The values that a destination's events currently use in one template, up to a bound.
///
/// The bound is twice what one app may use, and an app gets at most half of what the others leave: an app
/// with thousands of values uses up its own share and does not push the others' events into `other`. A
/// value is forgotten when no batch had it for a day, so that `{date}` does not fill the bound for ever.
struct TemplateRoom {
    /// Time without a batch after which a value is forgotten. An hour would let a runaway member make 24
    /// times as many indexes a day.
    static let patience = Duration.seconds(86_400)

    /// The values in use, each with the holder whose share it uses and the time of its last batch.
    private var known: [[String]: (holder: String, usedAt: BootInstant)] = [:]
    /// Number of values that each holder uses.
    private var holdings = Holdings()
    /// Time before which no value is old enough to be forgotten, so that a full room is not searched for
    /// each event.
    private var fullUntil: BootInstant?

    /// Whether a value may be used: it is in use already, or there is room for it.
    ///
    /// - Parameter mostValues: most values of one app.
    mutating func admit(_ values: [String], of holder: String, mostValues: Int, at now: BootInstant) -> Bool {
        if let value = known[values] {
            known[values] = (value.holder, now)
            return true
        }
        if !holdings.takeFair(for: holder, of: 2 * mostValues) {
            if let until = fullUntil, now < until { return false }
            for (old, value) in known where value.usedAt + TemplateRoom.patience <= now {
                known[old] = nil
                holdings.release(value.holder)
            }
            fullUntil = known.values.map(\.usedAt).min().map { $0 + TemplateRoom.patience }
            guard holdings.takeFair(for: holder, of: 2 * mostValues) else { return false }
        }
        known[values] = (holder, now)
        return true
    }
}
