/// The options of a receiver, with defaults for development.
package struct ReceiverOptions: Sendable, Equatable {
    /// Where events are stored.
    package enum Store: Sendable, Equatable {
        /// Events are only counted.
        case none
        /// Events are appended to this file, one on each line; with `sync`, durably before each answer.
        case file(String, sync: Bool)
        /// Events are written to standard output, one on each line.
        case standardOutput
    }

    /// Address to listen on, in numbers; default 127.0.0.1.
    package var address = "127.0.0.1"
    /// Port; default 0, which lets the system choose.
    package var port: UInt16 = 0
    /// The server's certificate and key in PEM; nil for plain HTTP.
    package var identity: CertificateAuthority.Identity?
    /// Where events are stored; default nowhere.
    package var store = Store.none
    /// Number of threads that share the connections; default 2.
    package var threads = 2
    /// Largest body in bytes as it comes over the wire; default 64 MiB.
    package var largestBody = 64 << 20
    /// Largest body in bytes after unpacking; default 256 MiB.
    package var largestUnpacked = 256 << 20
    /// Number of keys that are remembered; default 1,000,000, about 100 MB when full.
    package var rememberedKeys = 1_000_000
    /// How the receiver misbehaves; default not at all.
    package var faults = FaultPlan()

    package init() {}
}
