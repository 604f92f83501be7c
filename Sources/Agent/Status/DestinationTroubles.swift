internal import Control
internal import EventLoops
internal import Model

/// The destinations that fail at this moment, for the first line of `status` and for "Needs attention" on the
/// page.
///
/// Readiness waits ten minutes before one failing destination makes the whole agent unready
/// (`StatusReport.patience`), because an orchestrator must not restart an agent for a short failure of a
/// receiver. A person who looks in those ten minutes must still see it.
struct DestinationTroubles: Sendable {
    /// The most destinations that the summary names.
    private static let namesInSummary = 3

    /// Number of destinations in the configuration.
    private let configured: Int
    /// The destinations that fail, in the order of the report.
    private let failing: [StatusReport.Destination]
    /// Names of destinations that the report's obstacles name already.
    private let obstacles: Set<String>
    private let now: Timestamp

    init(_ report: StatusReport) {
        configured = report.destinations.count { $0.state != .orphaned }
        failing = report.destinations.filter(\.isFailing)
        obstacles = report.standingStill
        now = report.now
    }

    /// How many destinations fail and which: `1 of 3 destinations failing: backup`; nil if all work.
    var summary: String? {
        guard !failing.isEmpty else { return nil }
        let names = failing.prefix(DestinationTroubles.namesInSummary).map(\.name).joined(separator: ", ")
        let more = failing.count - DestinationTroubles.namesInSummary
        let others = more > 0 ? " and \(more) more" : ""
        return "\(failing.count) of \(HumanText.plural(configured, "destination")) failing: \(names)\(others)"
    }

    /// A sentence for each failing destination that no obstacle names: the reason, and the number of waiting
    /// events.
    ///
    /// - Parameter reason: why the destination is in its state, and since when.
    func sentences(reason: (StatusReport.Destination) -> String) -> [String] {
        failing.filter { !obstacles.contains($0.name) }.map { destination in
            let count = destination.queued
            let waiting = "\(HumanText.plural(count, "event")) \(count == 1 ? "waits" : "wait")"
            let oldest = destination.oldest.map { ", the oldest for \(HumanText.duration(now - $0))" } ?? ""
            return
                "\(destination.name): \(reason(destination)); "
                + "\(count == 0 ? "nothing waits" : waiting + oldest)"
        }
    }
}

extension StatusReport.Destination {
    /// True if the destination does not accept what it gets. What a person ordered (paused, disabled, network
    /// off) is not a failure.
    var isFailing: Bool {
        switch state {
        case .held, .breakerOpen, .offline, .waitingForRetry, .retryAfter: true
        case .active: queued > 0 && standingFailure != nil
        case .paused, .networkOff, .disabled, .stopping, .orphaned: false
        }
    }
}
