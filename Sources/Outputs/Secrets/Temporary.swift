internal import EventLoops
internal import Model

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
    private(set) var value: Value?
    private let turn = Turnstile()

    /// What is good now.
    ///
    /// - Throws: why there is none.
    func current(
        _ now: () -> Timestamp, renew: () async throws(CredentialFailure) -> Value
    ) async throws(CredentialFailure) -> Value {
        if let value, !Temporary.isReached(value.renewal, now()) { return value }
        await turn.takeTurn(turn.drawTicket())
        defer { turn.passTurn() }
        // Another request may have renewed it meanwhile.
        if let value, !Temporary.isReached(value.renewal, now()) { return value }
        do throws(CredentialFailure) {
            let renewed = try await renew()
            value = renewed
            return renewed
        } catch {
            if let value, !Temporary.isReached(value.expires, now()) { return value }
            throw error
        }
    }

    /// Lets go of what is in hand: the next request asks for another.
    func forget() { value = nil }

    private static func isReached(_ time: Timestamp?, _ now: Timestamp) -> Bool { time.map { now >= $0 } ?? false }
}
