package import Model

/// `[queue]`: the queue on disk, between the spool and the destinations.
public struct QueueSettings: SettingsSection {
    /// How chunks are stored.
    package enum ChunkCompression: String, Sendable, CaseIterable {
        /// In the compression that the destinations use, so that a chunk is sent as it is stored.
        case auto
        case zstd, gzip, none
    }

    /// Most bytes of queued events as they are stored, with their metadata, 256 MiB.
    package var maxSize = 256 << 20
    /// Age at which events expire, 25 days.
    package var maxAge = Duration.seconds(25 * 86_400)
    /// How chunks are stored.
    package var compression = ChunkCompression.auto
    /// What the queue survives. The default survives a power cut.
    package var durability = Durability.powerLoss

    /// The type of `max_age`, which a destination may set for itself within the same bounds (`OwnSettings`).
    static let maxAgeType = ValueType<Duration>.duration(.seconds(60) ... .seconds(3650 * 86_400))

    static let entries: [Entry<QueueSettings>] = [
        .setting(
            "max_size", \.maxSize, .size(24 << 10...1 << 47),
            "How much queued events may take, as stored. Raise it to outlast outages; a value below the"
                + " size stored is refused."
        ),
        .setting(
            "max_age", \.maxAge, maxAgeType,
            "Events older than this expire, counted. Set the age that your destination still accepts; in a"
                + " [[destination]], for it alone."),
        .setting(
            "compression", \.compression, .choice,
            "auto stores events as the destinations take them; none if CPU is scarcer than disk."
        ).retired("events are stored as the destinations take them, so that they are compressed once"),
        .setting(
            "durability", \.durability, .choice,
            "crash is faster and survives a crash of the process; a power cut may then repeat events, but "
                + "loses none.",
            restart: true),
    ]
}
