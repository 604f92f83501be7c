internal import Containers
internal import Control
internal import EventLoops
internal import Model

/// How a container stands: published by the keeper, read from any thread.
struct ContainerState: Sendable {
    /// Its id.
    var id: String
    /// Whether it is open.
    var isOpen = false
    /// Where what is in force comes from.
    var source = ContainerSource.none
    /// The version in force; nil for none.
    var version: Int?
    /// The version that is published for other machines first; nil for none.
    var heldBack: Int?
    /// When the network last confirmed it; nil where it never did.
    var confirmed: Timestamp?
    /// When the document in force ends; nil for never.
    var expires: Timestamp?
    /// How old a confirmed copy may be to count as fresh.
    var freshFor = Duration.zero
    /// Whether it has an address at all.
    var hasAddress = false
    /// What went wrong last; nil when nothing did.
    var problem: String?
    /// When the draft's time is over; nil without a draft.
    var previewEnd: Timestamp?
    /// Refreshes since the start, by type and result.
    var results: [RefreshType: [RefreshResult: Int]] = [:]
    /// How the last fetch ended; nil before the first.
    var lastFetch: RefreshResult?
    /// Its values, evaluated without an event, in their order.
    var values: [JSONValue.Member] = []
    /// Keys whose values depend on an event.
    var needEvent: [String] = []
    /// The settings that its values may set.
    var maySet: [String] = []
    /// Values of `may_set` that were refused, and why, by setting.
    var refused: [String: String] = [:]
    /// Whether events are read only while a document rules.
    var isRequired = false
    /// Why what is required does not rule; nil when it does, or nothing is.
    var lack: String?
    /// The apps that it concerns; empty for all.
    var apps: [String] = []
    /// The document in force; nil for none.
    var current: CompiledContainer?

    /// Whether events wait for what is required.
    var isAwaited: Bool { lack != nil }

    /// Whether it is as new as it should be: confirmed within `fresh_for`; without an address a default file will do.
    func isFresh(at now: Timestamp) -> Bool {
        guard hasAddress else { return version != nil }
        return confirmed.map { (Duration.zero...freshFor).contains(now - $0) } ?? false
    }
}

extension ContainerState {
    /// How it stands, for `status` and the status page.
    var report: StatusReport.Container {
        let refusals = refused.sorted { $0.key < $1.key }.map(\.value)
        return StatusReport.Container(
            id: id, source: isOpen ? source.rawValue : "opening", version: version.map { "\($0)" } ?? "none",
            confirmed: confirmed, problem: problem ?? refusals.first, previewEnds: previewEnd)
    }
}
