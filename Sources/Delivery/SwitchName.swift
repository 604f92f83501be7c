internal import Model

/// Names of the switches that survive a restart. A renamed switch would be forgotten by an upgrade.
enum SwitchName {
    /// Present with the value `off` while the network is switched off.
    static let network = "delivery.network"
    /// An interval set with `--persist`; see `DispatchInterval.kept`.
    static let interval = "delivery.interval"

    /// End of a wait that the destination asked for; see `KeptWait`.
    static func retryAfter(_ destination: DestinationName) -> String {
        "delivery.retry_after/\(destination.text)"
    }

    /// Largest body that the destination accepts, as learned from refusals; see `SizeCeiling`.
    static func ceiling(_ destination: DestinationName) -> String { "delivery.ceiling/\(destination.text)" }

    /// Fingerprint of the settings with which the destination has acknowledged something.
    static func acknowledged(_ destination: DestinationName) -> String {
        "delivery.acknowledged/\(destination.text)"
    }
}
