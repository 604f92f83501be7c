internal import EventLoops

/// What a destination has acknowledged, as evidence that the destination and its settings are right.
struct Acknowledged: Sendable {
    /// Batches acknowledged in this run.
    private(set) var batches = 0
    /// Time of day of the last acknowledgement.
    private(set) var last: Timestamp?
    /// Last acknowledgement with the present settings and credentials in this run.
    private(set) var trustedAt: BootInstant?
    /// Latest beginning of an attempt that was acknowledged. Events rejected before it are at fault
    /// themselves: the destination accepted others afterwards.
    private(set) var latestBeginning: BootInstant?
    /// Largest of the last hundred or fewer acknowledged batches, in uncompressed bytes.
    private(set) var largestBytes = 0
    /// Whether anything was acknowledged with the present settings, also by an earlier run.
    private(set) var isWithSettings: Bool

    init(isWithSettings: Bool) { self.isWithSettings = isWithSettings }

    /// Notes the acknowledgement of an attempt.
    ///
    /// - Returns: whether it is the first with the present settings.
    mutating func note(bytes: Int, began: BootInstant?, at now: Moment) -> Bool {
        largestBytes = batches % 100 == 99 ? bytes : max(largestBytes, bytes)
        if let began {
            latestBeginning = max(latestBeginning ?? began, began)
        }
        batches += 1
        last = now.wall
        trustedAt = now.boot
        defer { isWithSettings = true }
        return !isWithSettings
    }

    /// The settings have changed: earlier acknowledgements prove nothing about them.
    mutating func forgetSettings() { (isWithSettings, latestBeginning, trustedAt) = (false, nil, nil) }

    /// Patience with refusals of the request itself, if anything was acknowledged in the last ten minutes.
    func patience(at now: BootInstant) -> Patience? {
        guard let trustedAt, now < trustedAt + Patience.trusted else { return nil }
        return Patience(at: now)
    }

    /// The credentials have changed: the next refusal holds the destination at once.
    mutating func forgetCredentials() { trustedAt = nil }
}
