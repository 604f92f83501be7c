internal import Configuration
internal import Control
internal import Logs
internal import Model
internal import Synchronization

/// What the control API asks of the agent as a whole.
struct AgentCollection: CollectionControl {
    let agent: AgentService

    func setEnabled(_ isEnabled: Bool) async throws(ControlRefusal) -> DiscardedEvents {
        try await agent.setEnabled(isEnabled)
    }

    func startSession(app: String?) async throws(ControlRefusal) -> String {
        await agent.startSession(of: app ?? "default")
    }

    func setCountry(_ code: String?) async throws(ControlRefusal) { try await agent.setCountry(code) }

    func setLogLevel(_ level: String) async throws(ControlRefusal) {
        let configured = agent.sharedSettings.withLock { $0.agent.logLevel }
        guard let level = level == "default" ? configured : LogLevel(name: level) else {
            let names = (LogLevel.allCases.map(\.name) + ["default"]).joined(separator: ", ")
            throw ControlRefusal(status: 400, code: "out_of_range", message: "the level is one of \(names)")
        }
        agent.sink.level = level
    }

    func reload() async throws(ControlRefusal) -> ReloadResult { try await agent.reload() }
}
