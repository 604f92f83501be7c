package import Model

/// `[queue]`: the queue on disk, between the spool and the destinations.
public struct QueueSettings: SettingsSection {
    package enum ChunkCompression: String, Sendable, CaseIterable {
        /// As the destinations take it, so that a chunk is sent as it is stored.
        case auto
        case zstd, gzip, none
    }

    /// How many bytes the queued events may take as they are stored, metadata included.
    package var maxSize = 256 << 20
    package var maxAge = Duration.seconds(25 * 86_400)
    package var compression = ChunkCompression.auto
    package var durability = Durability.powerLoss

    /// A destination may set it for itself, within the same bounds.
    static let maxAgeType = ValueType<Duration>.duration(.seconds(60) ... .seconds(3650 * 86_400))

    static let entries: [Entry<QueueSettings>] = [
        .setting(
            "max_size", \.maxSize, .size(24 << 10...1 << 47),
            "How much queued events may take, as stored. Raise it to outlast outages; a value below the"
                + " size stored is refused."
        ),
        .setting(
            "max_age", \.maxAge, maxAgeType,
            "Events older than this expire, counted. Set the age that your destination still accepts."),
        .setting(
            "compression", \.compression, .choice,
            "auto stores events as the destinations take them; none if CPU is scarcer than disk."),
        .setting(
            "durability", \.durability, .choice,
            "crash is faster and survives a crash of the process; a power cut may then repeat events, but loses none.",
            restart: true),
    ]
}
