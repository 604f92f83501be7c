internal import Model

/// The names under which delivery keeps what must survive a restart.
enum SwitchName {
    /// `network off`: present with the value `off`.
    static let network = "delivery.network"
    /// An interval that was set with `--persist`.
    static let interval = "delivery.interval"

    /// Until when a destination said to wait, in milliseconds since 1970.
    static func retryAfter(_ destination: DestinationName) -> String { "delivery.retry_after/\(destination.text)" }

    /// The fingerprint of the settings with which a destination last acknowledged something first.
    static func acknowledged(_ destination: DestinationName) -> String {
        "delivery.acknowledged/\(destination.text)"
    }
}
