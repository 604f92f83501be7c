internal import EventLoops

/// When a container is fetched next: the pauses between fetches, after failures, and what the server asks
/// for. It knows no documents.
struct FetchPlan: Sendable {
    /// Whether a fetch is under way.
    private(set) var isFetching = false
    /// Time of the next fetch; nil during one.
    private(set) var next: BootInstant?
    /// Failed fetches since the last good one.
    private(set) var failures = 0
    /// Time of the last scheduled fetch, which no person asked for.
    private var lastOwn: BootInstant?
    /// Time of the last fetch that a returning network route caused.
    private var lastReturn: BootInstant?
    /// Time before which the server wants no fetch.
    private var notBefore: BootInstant?

    /// Begins a fetch, unless one is under way or the shortest pause is not over.
    ///
    /// - Parameter isOwn: whether the fetch is scheduled, so that the shortest pause applies; false if a
    ///   person asked for it.
    /// - Returns: whether to fetch.
    mutating func begin(at now: BootInstant, isOwn: Bool) -> Bool {
        guard !isFetching else { return false }
        if isOwn {
            let earliest = earliestOwn
            guard now >= earliest else {
                next = earliest
                return false
            }
            lastOwn = now
        }
        isFetching = true
        next = nil
        return true
    }

    /// Begins a fetch because the network is back, at most once a minute if the route flaps.
    ///
    /// - Returns: whether to fetch.
    mutating func beginAfterReturn(at now: BootInstant) -> Bool {
        let pause = lastReturn.map { $0 + ContainerMachine.leastPause } ?? now
        let earliest = max(pause, notBefore ?? pause)
        guard now >= earliest else {
            next = earliest
            return false
        }
        lastReturn = now
        lastOwn = now
        return begin(at: now, isOwn: false)
    }

    /// The fetch has ended.
    mutating func end() { isFetching = false }

    /// The server wants no fetch for a time; it is spread by a quarter.
    mutating func delay(by wait: Duration, at now: BootInstant, _ random: inout some RandomNumberGenerator) {
        notBefore = now + wait * Double.random(in: 1...1.25, using: &random)
    }

    /// The fetch was good.
    mutating func succeed() {
        failures = 0
        notBefore = nil
    }

    /// The fetch failed: the pause doubles, up to an hour, and is spread by a quarter.
    mutating func fail(at now: BootInstant, _ random: inout some RandomNumberGenerator) {
        failures += 1
        let wait = min(
            ContainerMachine.leastPause * (1 << min(failures - 1, 10)), ContainerMachine.longestBackoff)
        let own = now + wait * Double.random(in: 1...1.25, using: &random)
        next = max(own, notBefore ?? own)
    }

    /// Plans the next fetch of a copy that was confirmed some time ago: at random up to a tenth of the
    /// interval earlier than due.
    mutating func schedule(
        each interval: Duration, after age: Duration, at now: BootInstant,
        _ random: inout some RandomNumberGenerator
    ) {
        // A time sooner than the least pause is moved a little behind it, at random: a fleet that waits
        // exactly the least pause would fetch at one moment.
        let wait = max(
            interval * Double.random(in: 0.9...1, using: &random),
            ContainerMachine.leastPause * Double.random(in: 1...1.1, using: &random))
        // Confirmed in the future: the clock was set back, and the age of the copy is not known.
        next = now + (age < .zero ? .zero : max(.zero, wait - age))
    }

    /// Plans a fetch as soon as it is allowed.
    mutating func soon(at now: BootInstant) { next = max(now, earliestOwn) }

    /// The earliest time for a fetch that no person asked for; the distant past before the first fetch.
    private var earliestOwn: BootInstant {
        let past = BootInstant(nanoseconds: .min)
        return max(lastOwn.map { $0 + ContainerMachine.leastPause } ?? past, notBefore ?? past)
    }
}
