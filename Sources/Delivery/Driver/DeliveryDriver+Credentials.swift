internal import EventLoops
internal import Logs
internal import Model

/// A destination that is held or whose breaker is open is tried again as soon as its token, key or certificate changes.
extension DeliveryDriver {
    /// How often the files are looked at, and only while such a destination waits: else nothing wakes the agent for them.
    private static let credentialInterval = Duration.seconds(10)

    private var stuckWithFiles: [DestinationName] {
        machine.stuck.filter { senders[$0]?.followsFiles ?? false }
    }

    func lookForCredentialsLater() {
        guard credentialTimer == nil, !isStopped, !stuckWithFiles.isEmpty else { return }
        credentialTimer = loop.after(DeliveryDriver.credentialInterval) {
            Task(executorPreference: self.loop) { await self.lookForCredentials() }
        }
    }

    private func lookForCredentials() async {
        for name in stuckWithFiles where await senders[name]?.hasNewCredentials() ?? false {
            log.warning("credentials have changed: trying the destination again", ["destination": name])
            handle(.newCredentials(name))
        }
        credentialTimer = nil
        lookForCredentialsLater()
    }
}
