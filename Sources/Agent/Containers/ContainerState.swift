internal import Configuration
internal import Containers
internal import EventLoops
internal import Model

/// The state of a container: the keeper's, of which it publishes copies, read from any thread.
struct ContainerState: Sendable {
    /// Its settings; a change of more than timing makes a new slot.
    var settings: ContainerSettings
    var machine: ContainerMachine
    /// The document in force, made ready; nil for none.
    var current: CompiledContainer?
    /// Its values without an event, in their order; those that depend on one are in `needEvent`.
    var values: [JSONValue.Member] = []
    /// Keys whose values depend on an event.
    var needEvent: [String] = []
    /// Refreshes since the start, by type and result.
    var results: [RefreshType: [RefreshResult: Int]] = [:]
    /// How the last fetch ended; nil before the first.
    var lastFetch: RefreshResult?
    /// Why there is no default file, or what is wrong with it; nil where there is a good one, or none is configured.
    var defaultProblem: String?
    /// Values of `may_set` that were refused, and why, by setting.
    var refused: [String: String] = [:]

    init(_ settings: ContainerSettings, _ facts: AgentFacts = AgentFacts()) {
        self.settings = settings
        machine = ContainerMachine(settings.machineOptions(on: facts))
    }

    var id: String { settings.id }
    var source: ContainerSource { machine.source }
    var version: Int? { machine.inForce?.copy.version }
    /// When the network last confirmed what is in force; nil where it never did.
    var confirmed: Timestamp? { machine.inForce?.confirmed }
    /// What went wrong last; nil when nothing did.
    var problem: String? { machine.problem ?? defaultProblem ?? current?.mistake }
    /// Whether events of its apps are not to be read: what is required does not rule, or a document may come at any moment.
    var isAwaited: Bool { lack != nil || current == nil && !machine.isOpen }
    /// Whether events wait for what is required, though the container is open.
    var isHolding: Bool { lack != nil && machine.isOpen }
    /// Why what is required does not rule; nil when it does, or nothing is.
    var lack: String? {
        guard !settings.required.isEmpty else { return nil }
        guard let current else { return "has no document" }
        if source == .preview { return "has a draft in force, which does not count" }
        guard settings.required.contains(.redaction), !current.hides else { return nil }
        return "its version \(current.document.version) redacts nothing"
    }

    var refreshes: [(type: RefreshType, result: RefreshResult, count: Int)] {
        RefreshType.allCases.flatMap { type in
            (results[type] ?? [:]).sorted { $0.key.rawValue < $1.key.rawValue }.map { (type, $0.key, $0.value) }
        }
    }

    /// Whether it is as new as it should be: confirmed within `fresh_for`; without an address a default file will do.
    func isFresh(at now: Timestamp) -> Bool {
        guard settings.url != nil else { return version != nil }
        return confirmed.map { (Duration.zero...settings.freshFor).contains(now - $0) } ?? false
    }

    func previewEnd(by time: any TimeSource) -> Timestamp? {
        machine.previewEnd.map { time.wallTime + ($0 - time.bootTime) }
    }

    func report(by time: any TimeSource) -> StatusReport.Container {
        let refusals = refused.sorted { $0.key < $1.key }.map(\.value)
        return StatusReport.Container(
            id: id, source: machine.isOpen ? source.rawValue : "opening", version: version.map { "\($0)" } ?? "none",
            confirmed: confirmed, problem: problem ?? refusals.first, previewEnds: previewEnd(by: time))
    }
}
