internal import Synchronization

/// Tells systemd what `/readyz` says, whenever that is another thing than before.
final class ToldManager: Sendable {
    private let told = Mutex("")

    func tell(_ manager: ServiceManager, _ obstacles: [String]) {
        let reason = obstacles.first.map { String($0.prefix { $0 != "\n" }.prefix(200)) }  // bounded: a line for people
        let text = reason.map { "not ready: \($0)" } ?? "ready"
        let isNew = told.withLock { told in
            defer { told = text }
            return told != text
        }
        if isNew { manager.notify("STATUS=\(text)") }
    }
}
