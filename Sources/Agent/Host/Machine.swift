internal import EventLoops
internal import Logs
internal import Synchronization
internal import TimeZones

/// The facts about the machine as they are now. From any thread.
final class Machine: Sendable {
    private struct State {
        var facts: HostFacts
        /// What has changed since the start, for `status`; the last change of each kind.
        var news: [String: String] = [:]
    }

    private let state: Mutex<State>

    init(_ facts: HostFacts) { state = Mutex(State(facts: facts)) }

    var facts: HostFacts { state.withLock { $0.facts } }

    /// What has changed since the start, each as a sentence.
    var news: [String] { state.withLock { $0.news.sorted { $0.key < $1.key }.map(\.value) } }

    /// Looks again what may change while the agent runs. True if something has changed, which is logged.
    ///
    /// - Parameter variable: the value of `TZ`.
    func lookAgain(at now: Timestamp, log: Log, _ variable: String? = environment("TZ")) -> Bool {
        let old = facts
        let new = old.lookedAgain(variable, log: log)
        let zones = (old.zone?.name ?? "none", new.zone?.name ?? "none")
        state.withLock { state in
            state.facts = new
            if old.name != new.name {
                state.news["name"] = "the host was renamed from \(old.name) to \(new.name) at \(now)"
            }
            if old.zone != new.zone {
                state.news["zone"] = "the time zone was changed from \(zones.0) to \(zones.1) at \(now)"
            }
        }
        if old.name != new.name {
            log.info("host was renamed", ["before": old.name, "now": new.name])
        }
        if old.zone != new.zone {
            log.info("time zone was changed", ["before": zones.0, "now": zones.1])
        }
        return old.name != new.name || old.zone != new.zone
    }
}
