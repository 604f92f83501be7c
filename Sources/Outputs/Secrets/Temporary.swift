internal import EventLoops

/// A credential that a service issues for a limited time.
protocol Expiring: Sendable {
    /// Lifetime of a credential that was requested at `now`, the time of day; nil if it never expires.
    func lifetime(from now: Timestamp) -> Duration?
    /// How long before its expiry a credential with this lifetime is renewed.
    func margin(of lifetime: Duration) -> Duration
}

/// Caches the latest credential that a service issued, and renews it before it expires, one request at a
/// time. If renewal fails, the credential is used until its expiry.
///
/// Expiry is measured on the boot-time clock: a step of the time of day must not make a credential look
/// valid. Belongs to one output, on its loop.
final class Temporary<Value: Expiring> {
    /// The latest credential; nil before the first one, and after it was refused.
    private var last: Given?
    /// Number of credentials issued so far; the source of `Given.number`.
    private var count = 0
    /// Whether the last one was dropped because it was refused.
    private var wasRefused = false
    /// How often another one was wished for, however young the last is, and how many of these wishes were
    /// met by a request that began after them.
    private var wishes = (made: 0, met: 0)
    /// Number of calls of `forget`: a credential that was requested before the last one is not kept.
    private var forgotten = 0
    /// Lets one caller renew while the others wait for its result. Otherwise all batches in flight would
    /// ask at the same moment, and a token service would throttle the agent.
    private let turnstile = Turnstile()

    /// An issued credential with its times on the boot-time clock.
    struct Given {
        let value: Value
        /// Number of the credential, to recognise which one a refused request carried.
        let number: Int
        /// Time of the request for it. Age and expiry count from here, not from the answer, to be on the
        /// safe side.
        let since: BootInstant
        /// When to renew it; nil if it never expires.
        let renewal: BootInstant?
        /// Time at which the credential expires; nil if it never does.
        let expires: BootInstant?
        /// Whether the request was made because the previous credential was refused.
        let replacesRefused: Bool
    }

    /// The credential to use now.
    ///
    /// - Parameter renew: requests a new one from the service.
    /// - Throws: the reason of `renew`; never while the last credential has not expired.
    func current(
        _ time: any TimeSource, renew: () async throws(CredentialFailure) -> Value
    ) async throws(CredentialFailure) -> Given {
        if let last, !isDue, !Temporary.isReached(last.renewal, time) { return last }
        await turnstile.takeTurn(turnstile.drawTicket())
        defer { turnstile.passTurn() }
        // While this call waited for its turn, another one may have renewed the credential.
        if let last, !isDue, !Temporary.isReached(last.renewal, time) { return last }
        while true {
            let before = forgotten
            do throws(CredentialFailure) {
                let given = try await request(time, renew)
                guard before == forgotten else { continue }
                last = given
                return given
            } catch {
                // The secret has changed meanwhile: the refusal may be of the old one.
                guard before == forgotten else { continue }
                if let last, !Temporary.isReached(last.expires, time) { return last }
                throw error
            }
        }
    }

    /// Requests another credential.
    private func request(
        _ time: any TimeSource, _ renew: () async throws(CredentialFailure) -> Value
    ) async throws(CredentialFailure) -> Given {
        let since = time.bootTime
        let today = time.wallTime
        // A wish that is made during the request is for the next one.
        wishes.met = wishes.made
        let value = try await renew()
        count += 1
        let lifetime = value.lifetime(from: today)
        defer { wasRefused = false }
        return Given(
            value: value, number: count, since: since,
            renewal: lifetime.map { since + ($0 - value.margin(of: $0)) },
            expires: lifetime.map { since + $0 },
            replacesRefused: wasRefused)
    }

    /// Whether the next call requests another credential, however young the last one is.
    private var isDue: Bool { wishes.made != wishes.met }

    /// Drops the credential, so that the next call requests another.
    func forget() {
        last = nil
        wasRefused = false
        forgotten += 1
    }

    /// Has the next call request another credential. If that fails, the last one is used until its expiry:
    /// the service may be down, and the destination may be well.
    func renewNext() {
        wishes.made += 1
        wasRefused = false
    }

    /// Drops a credential that the destination has refused, if it is still the current one.
    ///
    /// - Parameters:
    ///   - number: number of the credential that the request carried; nil if the request carried none.
    ///   - isOver: whether the destination says that the credential has expired. Otherwise the replacement of
    ///     a refused one stays for its first minute: the next one would be refused too, and the loop of
    ///     requests and refusals would look like progress. A person must look.
    /// - Returns: whether the next request carries another credential, so that a retry makes sense.
    func renewRefused(_ number: Int?, isOver: Bool, at now: BootInstant) -> Bool {
        guard let number else { return false }
        // Several requests carried this credential, and an earlier refusal has already replaced it.
        guard let last, last.number == number else { return true }
        guard isOver || !last.replacesRefused || last.since + .seconds(60) <= now else { return false }
        self.last = nil
        wasRefused = true
        return true
    }

    /// Whether a time has passed; false for nil.
    private static func isReached(_ end: BootInstant?, _ time: any TimeSource) -> Bool {
        end.map { time.bootTime >= $0 } ?? false
    }
}
