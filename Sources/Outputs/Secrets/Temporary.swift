internal import EventLoops

/// What a service gives for a time.
protocol Expiring: Sendable {
    /// How long it is good when it is asked for now; nil: it has no end.
    func lifetime(from now: Timestamp) -> Duration?
    /// How long before its end it is asked for again.
    func margin(of lifetime: Duration) -> Duration
}

/// The last thing of its kind that a service gave: asked for again before its end, by one request at a time. Where that fails, it
/// is used until its end. Its life is measured by the clock that nobody sets. Belongs to one output.
final class Temporary<Value: Expiring> {
    private var last: Given?
    private var count = 0
    private let turn = Turnstile()

    struct Given {
        let value: Value
        /// Tells it from what was given before and after.
        let number: Int
        let since: BootInstant
        let renewal: BootInstant?
        let expires: BootInstant?
    }

    /// What is good now; throws why there is none.
    func current(
        _ time: any TimeSource, renew: () async throws(CredentialFailure) -> Value
    ) async throws(CredentialFailure) -> Given {
        if let last, !Temporary.isReached(last.renewal, time) { return last }
        await turn.takeTurn(turn.drawTicket())
        defer { turn.passTurn() }
        // Another request may have renewed it meanwhile.
        if let last, !Temporary.isReached(last.renewal, time) { return last }
        do throws(CredentialFailure) {
            let (since, today) = (time.bootTime, time.wallTime)
            let value = try await renew()
            count += 1
            let lifetime = value.lifetime(from: today)
            let given = Given(
                value: value, number: count, since: since,
                renewal: lifetime.map { since + ($0 - value.margin(of: $0)) }, expires: lifetime.map { since + $0 })
            last = given
            return given
        } catch {
            if let last, !Temporary.isReached(last.expires, time) { return last }
            throw error
        }
    }

    /// Lets go of what is in hand: the next request asks for another.
    func forget() { last = nil }

    /// Lets go of what a destination has refused, unless that was done.
    ///
    /// - Parameters:
    ///   - number: what the request carried; nil: nothing of these.
    ///   - isOver: whether the destination says that its time is over. Otherwise only what is older than a minute is dropped: what
    ///     is newer and refused would be refused again, and a person must look.
    /// - Returns: whether the next request carries another.
    func renewRefused(_ number: Int?, isOver: Bool, at now: BootInstant) -> Bool {
        guard let number else { return false }
        // Several requests carried it, and one was answered before.
        guard let last, last.number == number else { return true }
        guard isOver || last.since + .seconds(60) <= now else { return false }
        self.last = nil
        return true
    }

    private static func isReached(_ end: BootInstant?, _ time: any TimeSource) -> Bool {
        end.map { time.bootTime >= $0 } ?? false
    }
}
