internal import EventLoops
internal import Model

/// Whether an app that was not tried yet is asked while requests fail as a whole: one app's content may be
/// the cause, for example a firewall before the receiver that refuses what the app writes.
///
/// Without that, a batch of the bad app, tried again and again as the probe, would keep all others waiting.
struct Asking: Sendable {
    enum Plan: Equatable {
        /// A kept piece of another app is the next probe, at a time.
        case probe(BootInstant)
        /// The queue is searched for events of another app, at a time.
        case search(BootInstant)
    }

    /// Whether the apps of a batch's events may matter: without an order, and after an acknowledgement with
    /// the present settings. Before that, settings are the likely cause.
    let matters: Bool
    /// Whether requests fail as a whole: held, breaker open or in trouble, but not about rejected events.
    let isFailing: Bool

    init(_ order: DestinationOptions.Order, _ blame: Blame, _ standing: Standing) {
        matters = order == .free && blame.acknowledged.isWithSettings
        isFailing =
            standing.hold.map { $0.doubt == nil } ?? (standing.breaker != nil || standing.trouble != nil)
    }

    /// Whether the app of each event must be looked up before a batch is sent and after it was accepted. The
    /// look-up reads the batch, so it is done only while an app may be at fault.
    func needsApps(_ blame: Blame) -> Bool { matters && (blame.hasSuspects || isFailing) }

    /// The next attempt with another app, after 1, 2 or 4 s; nil if the usual waits continue. At most five
    /// apps are tried, so that an outage costs only a few more requests.
    func plan(
        _ blame: Blame, _ kept: Kept, isForProbesOnly: Bool, waitingEvents: Int, at now: BootInstant
    ) -> Plan? {
        guard isFailing, needsApps(blame) else { return nil }
        let asked = blame.asked
        guard asked.count < Blame.mostAsked else { return nil }
        let soon = now + .seconds(1 << min(asked.count, 2))
        let numbers = kept.numbers(of: asked)
        if isForProbesOnly, kept.contains(where: { $0.isOfUntriedApp(numbers) }) { return .probe(soon) }
        return !asked.isEmpty && waitingEvents > 0 ? .search(soon) : nil
    }
}
