internal import Configuration
internal import Containers
internal import EventLoops
internal import Model

/// The state of a container. The keeper owns it and publishes copies, which are read from any thread.
struct ContainerState: Sendable {
    /// The container's settings. A change of anything but timing and permissions makes a new slot.
    var settings: ContainerSettings
    /// Decides which document is in force.
    var machine: ContainerMachine
    /// The document in force, compiled; nil without a document.
    var current: CompiledContainer?
    /// The values that depend on no event, in the order of the document.
    var values: [JSONValue.Member] = []
    /// Answers of the configuration's functions, for the values of the document in force.
    var answers: [FunctionCall: JSONValue] = [:]
    /// Keys of the values that depend on an event.
    var needEvent: [String] = []
    /// Number of refreshes since the start, by type and result.
    var results: [RefreshType: [RefreshResult: Int]] = [:]
    /// The result of the last fetch; nil before the first.
    var lastFetch: RefreshResult?
    /// What is wrong with the default file; nil if it is good or none is configured.
    var defaultProblem: String?
    /// Settings of `may_set` whose values were refused, each with the reason.
    var refused: [String: String] = [:]

    init(_ settings: ContainerSettings, _ facts: AgentFacts = AgentFacts()) {
        self.settings = settings
        machine = ContainerMachine(settings.machineOptions(on: facts))
    }

    var id: String { settings.id }
    var source: ContainerSource { machine.source }
    /// The version in force; nil without a document.
    var version: Int? { machine.inForce?.copy.version }
    /// When the server last confirmed the document in force; nil if it never did.
    var confirmed: Timestamp? { machine.inForce?.confirmed }
    /// The last problem with a document, the default file or a rule; nil if all is well.
    var problem: String? { machine.problem ?? defaultProblem ?? current?.mistake }
    /// True if events of its apps must not be read yet: a required document is not in force, or the container
    /// is still opening and has none.
    var isAwaited: Bool { lack != nil || current == nil && !machine.isOpen }
    /// True if events wait for a required document although opening has ended: only a person can fix that.
    var isHolding: Bool { lack != nil && machine.isOpen }
    /// Why the required document is not in force; nil if it is, or none is required.
    var lack: String? {
        guard !settings.required.isEmpty else { return nil }
        guard let current else { return "has no document" }
        if source == .preview { return "has a draft in force, which does not count" }
        guard settings.required.contains(.redaction), !current.hides else { return nil }
        return "its version \(current.document.version) redacts nothing"
    }

    /// The number of refreshes, sorted by type and result.
    var refreshes: [(type: RefreshType, result: RefreshResult, count: Int)] {
        RefreshType.allCases.flatMap { type in
            (results[type] ?? [:]).sorted { $0.key.rawValue < $1.key.rawValue }.map {
                (type, $0.key, $0.value)
            }
        }
    }

    /// True if the document was confirmed within `fresh_for`. Without a `url` any document is fresh.
    func isFresh(at now: Timestamp) -> Bool {
        guard settings.url != nil else { return version != nil }
        return confirmed.map { (Duration.zero...settings.freshFor).contains(now - $0) } ?? false
    }

    /// When the preview ends, by the time of day; nil without a preview. The machine measures it by the boot
    /// clock.
    func previewEnd(by time: any TimeSource) -> Timestamp? {
        machine.previewEnd.map { time.wallTime + ($0 - time.bootTime) }
    }

    /// The container's line in the status report.
    func report(by time: any TimeSource) -> StatusReport.Container {
        let refusals = refused.sorted { $0.key < $1.key }.map(\.value)
        return StatusReport.Container(
            id: id, source: machine.isOpen ? source.rawValue : "opening",
            version: version.map { "\($0)" } ?? "none",
            confirmed: confirmed, problem: problem ?? refusals.first, previewEnds: previewEnd(by: time))
    }
}
