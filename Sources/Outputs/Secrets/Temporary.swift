internal import EventLoops

/// What a service gives for a time.
protocol Expiring: Sendable {
    /// When it is asked for again; nil: never by itself.
    var renewal: Timestamp? { get }
    /// When it ends; nil: never by itself.
    var expires: Timestamp? { get }
}

/// The last thing of its kind that a service gave: asked for again before its end, by one request at a time. Where that fails, it
/// is used until its end. Belongs to one output.
final class Temporary<Value: Expiring> {
    private var last: (given: Given, at: Timestamp)?
    private var count = 0
    private let turn = Turnstile()

    /// What was given, and a number that tells it from what was given before and after.
    typealias Given = (value: Value, number: Int)

    /// What is good now; throws why there is none.
    func current(
        _ now: () -> Timestamp, renew: () async throws(CredentialFailure) -> Value
    ) async throws(CredentialFailure) -> Given {
        if let given = last?.given, !Temporary.isReached(given.value.renewal, now()) { return given }
        await turn.takeTurn(turn.drawTicket())
        defer { turn.passTurn() }
        // Another request may have renewed it meanwhile.
        if let given = last?.given, !Temporary.isReached(given.value.renewal, now()) { return given }
        do throws(CredentialFailure) {
            let renewed = try await renew()
            count += 1
            last = ((renewed, count), now())
            return (renewed, count)
        } catch {
            if let given = last?.given, !Temporary.isReached(given.value.expires, now()) { return given }
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
    func renewRefused(_ number: Int?, isOver: Bool, at now: Timestamp) -> Bool {
        guard let number else { return false }
        // Several requests carried it, and one was answered before.
        guard let last, last.given.number == number else { return true }
        guard isOver || last.at + .seconds(60) <= now else { return false }
        self.last = nil
        return true
    }

    private static func isReached(_ time: Timestamp?, _ now: Timestamp) -> Bool { time.map { now >= $0 } ?? false }
}
