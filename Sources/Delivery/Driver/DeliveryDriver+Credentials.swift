internal import EventLoops
internal import Logs
internal import Model

/// Tries a held destination, or one with an open breaker, as soon as its token, key or certificate file
/// changes. Otherwise a rotated token would take effect only after the probe interval of 20 minutes.
extension DeliveryDriver {
    /// How often the files are checked, and only while such a destination waits: otherwise the agent would
    /// wake up for nothing.
    private static let credentialInterval = Duration.seconds(10)

    /// Destinations that new credentials may help and that have credential files.
    private var stuckWithFiles: [DestinationName] {
        machine.stuck.filter { senders[$0]?.followsFiles ?? false }
    }

    /// Plans the next check if a destination needs one.
    func lookForCredentialsLater() {
        guard credentialTimer == nil, !isStopped, !stuckWithFiles.isEmpty else { return }
        credentialTimer = loop.after(DeliveryDriver.credentialInterval) {
            Task(executorPreference: self.loop) { await self.lookForCredentials() }
        }
    }

    /// Checks the files, and plans the next check.
    private func lookForCredentials() async {
        for name in stuckWithFiles where await senders[name]?.hasNewCredentials() ?? false {
            log.warning("credentials have changed: trying the destination again", ["destination": name])
            handle(.newCredentials(name))
        }
        credentialTimer = nil
        lookForCredentialsLater()
    }
}
