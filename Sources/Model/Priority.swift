//  Model: the words that all modules share. Values only; it knows nothing of I/O.

/// How much an event matters. There are exactly two.
///
/// Source: App Center's persistence flags (ac26).
public enum Priority: UInt8, Sendable, CaseIterable, Comparable {
    case normal = 1
    /// Sent first, evicted last.
    case critical = 2

    /// The word in events, settings, metrics and the database.
    public var name: String {
        switch self {
        case .normal: "normal"
        case .critical: "critical"
        }
    }

    /// The priority of that name; nil for any other word.
    public init?(name: some StringProtocol) {
        guard let found = Priority.allCases.first(where: { $0.name == name }) else { return nil }
        self = found
    }

    /// Whether the left one matters less.
    public static func < (left: Priority, right: Priority) -> Bool { left.rawValue < right.rawValue }
}
