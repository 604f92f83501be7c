internal import EventLoops
internal import Model

/// The tokens that pause sending, and until when (ac16).
///
/// A token counts once, however often it is taken; releasing one that nobody holds changes nothing.
struct PauseTokens: Sendable {
    struct Key: Sendable, Hashable {
        /// Nil holds back all destinations.
        let destination: DestinationName?
        let token: String
    }

    private static let prefix = "delivery.pause/"

    /// Until when, on the clock for waits; nil until it is released.
    private(set) var holds: [Key: BootInstant?] = [:]

    func holdsBack(_ destination: DestinationName) -> Bool {
        holds.keys.contains { $0.destination == nil || $0.destination == destination }
    }

    /// The tokens that hold a destination back, or all of them when it is nil, in alphabetical order.
    func tokens(for destination: DestinationName?) -> [String] {
        holds.keys.filter { $0.destination == nil || $0.destination == destination }.map(\.token).sorted()
    }

    /// The order in which several are released.
    static func comesBefore(_ left: Key, _ right: Key) -> Bool {
        (left.destination?.text ?? "", left.token) < (right.destination?.text ?? "", right.token)
    }

    /// When the next one runs out by itself.
    var nextExpiry: BootInstant? { holds.values.compactMap { $0 }.min() }

    mutating func take(_ key: Key, until: BootInstant?) { holds.updateValue(until, forKey: key) }

    mutating func release(_ key: Key) { holds.removeValue(forKey: key) }

    /// Those whose time is over.
    func expired(at now: BootInstant) -> [Key] {
        holds.filter { $0.value.map { $0 <= now } ?? false }.map(\.key)
    }

    /// The switch's name: the destination (none for all) and the token.
    static func switchName(_ key: Key) -> String { "\(prefix)\(key.destination?.text ?? "")/\(key.token)" }

    /// The switch's value: how long, or `held`.
    static func switchValue(ttl: Duration?, at now: Moment) -> String {
        ttl.map { KeptWait.value(of: $0, at: now) } ?? "held"
    }

    /// Takes up a token that was kept; other switches change nothing.
    mutating func restore(name: String, value: String, at now: Moment) {
        let rest = name.dropFirst(PauseTokens.prefix.count)
        guard name.hasPrefix(PauseTokens.prefix), let slash = rest.firstIndex(of: "/") else { return }
        let destination = rest[..<slash]
        let key = Key(
            destination: destination.isEmpty ? nil : DestinationName(String(destination)),
            token: String(rest[rest.index(after: slash)...]))
        // A value that cannot be read still means that somebody wanted sending to stop.
        take(key, until: KeptWait.left(of: value, at: now).map { now.boot + $0 })
    }
}
