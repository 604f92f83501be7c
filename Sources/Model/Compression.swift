/// How bytes are compressed, in the queue and in request bodies. The raw values are stored in the
/// database.
public enum Compression: UInt8, Sendable, CaseIterable {
    case none = 0
    /// One gzip member (RFC 1952).
    case gzip = 1
    /// One Zstandard frame (RFC 8878).
    case zstd = 2

    /// The word for it in settings, metrics and the database.
    public var name: String {
        switch self {
        case .none: "none"
        case .gzip: "gzip"
        case .zstd: "zstd"
        }
    }

    /// The compression with that name; nil for any other word.
    public init?(name: some StringProtocol) {
        guard let found = Compression.allCases.first(where: { $0.name == name }) else { return nil }
        self = found
    }
}
