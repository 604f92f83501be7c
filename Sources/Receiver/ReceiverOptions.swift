/// How a receiver runs. Plain values, with defaults for development.
package struct ReceiverOptions: Sendable, Equatable {
    package enum Store: Sendable, Equatable {
        /// They are counted only.
        case none
        /// They are appended to this file, one a line; with `sync`, durably before each answer.
        case file(String, sync: Bool)
        /// They are written to standard output, one a line.
        case standardOutput
    }

    /// The address to listen on: a number, not a name. Default 127.0.0.1.
    package var address = "127.0.0.1"
    /// The port; default 0: any free one.
    package var port: UInt16 = 0
    /// The server's certificate and key in PEM; nil: plain HTTP.
    package var identity: CertificateAuthority.Identity?
    /// Where events go; default nowhere.
    package var store = Store.none
    /// How many threads share the connections; default 2.
    package var threads = 2
    /// The largest body that is taken, as it comes over the wire; default 64 MiB.
    package var largestBody = 64 << 20
    /// The largest body unpacked; default 256 MiB.
    package var largestUnpacked = 256 << 20
    /// How many keys are remembered, the latest; default 1,000,000, some 100 MB when full.
    package var rememberedKeys = 1_000_000
    /// How it misbehaves; default not.
    package var faults = FaultPlan()

    package init() {}
}
