internal import EventLoops
internal import Model

/// The tokens that pause sending, and when each runs out.
///
/// A token counts once, however often it is taken, so that each of several parties can pause without knowing
/// of the others; sending continues when the last token is released. Releasing a token that is not held
/// changes nothing.
struct PauseTokens: Sendable {
    /// Names a pause: the same token may be held for one destination and for all.
    struct Key: Sendable, Hashable {
        /// The destination that is held back; nil for all.
        let destination: DestinationName?
        let token: String
    }

    /// Beginning of a pause's switch name; the destination and the token follow.
    private static let prefix = "delivery.pause/"

    /// End of each pause on the boot clock; a value of nil holds until the token is released.
    private(set) var holds: [Key: BootInstant?] = [:]

    /// Whether any token holds a destination back.
    func holdsBack(_ destination: DestinationName) -> Bool {
        holds.keys.contains { $0.destination == nil || $0.destination == destination }
    }

    /// The tokens that hold a destination back, in alphabetical order; for nil, only those that hold back all
    /// destinations.
    func tokens(for destination: DestinationName?) -> [String] {
        holds.keys.filter { $0.destination == nil || $0.destination == destination }.map(\.token).sorted()
    }

    /// Order in which several tokens are released and logged: by destination, then by token. Without it the
    /// log would follow the order of a dictionary.
    static func comesBefore(_ left: Key, _ right: Key) -> Bool {
        (left.destination?.text ?? "", left.token) < (right.destination?.text ?? "", right.token)
    }

    /// When the next token runs out; nil if none does.
    var nextExpiry: BootInstant? { holds.values.compactMap { $0 }.min() }

    /// Takes a token, or changes the end of one that is held.
    mutating func take(_ key: Key, until: BootInstant?) { holds.updateValue(until, forKey: key) }

    mutating func release(_ key: Key) { holds.removeValue(forKey: key) }

    /// Expired tokens.
    func expired(at now: BootInstant) -> [Key] {
        holds.filter { $0.value.map { $0 <= now } ?? false }.map(\.key)
    }

    /// Name of the switch that makes a pause durable: the destination (empty for all) and the token.
    static func switchName(_ key: Key) -> String { "\(prefix)\(key.destination?.text ?? "")/\(key.token)" }

    /// Value of the switch: a `KeptWait` for a pause with an end, else `held`.
    static func switchValue(ttl: Duration?, at now: Moment) -> String {
        ttl.map { KeptWait.value(of: $0, at: now) } ?? "held"
    }

    /// Takes a token that an earlier run made durable; other switches are ignored.
    mutating func restore(name: String, value: String, at now: Moment) {
        let rest = name.dropFirst(PauseTokens.prefix.count)
        guard name.hasPrefix(PauseTokens.prefix), let slash = rest.firstIndex(of: "/") else { return }
        let destination = rest[..<slash]
        let key = Key(
            destination: destination.isEmpty ? nil : DestinationName(String(destination)),
            token: String(rest[rest.index(after: slash)...]))
        // An unreadable value still means that a person wanted sending to stop: the token is held without an
        // end.
        take(key, until: KeptWait.left(of: value, at: now).map { now.boot + $0 })
    }
}
