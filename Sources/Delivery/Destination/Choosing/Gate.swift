internal import EventLoops
internal import Model

/// What overrides the destination's own state; made by `DeliveryMachine.gate` for each input.
struct Gate: Sendable, Equatable {
    /// When events are sent without a command.
    struct Automatic: Sendable, Equatable {
        /// How long the oldest event of a lane may wait.
        var waits: PerPriority<Duration>
        /// Whether a full batch is sent before its wait is over.
        var batchOnSize: Bool
        /// See `DeliveryOptions.phase`.
        var phase: Double?

        /// When events accepted at a time are sent: after half the wait at the earliest, at its end at
        /// the latest.
        ///
        /// In between, the machine's phase decides: the points lie half a wait apart, shifted by the
        /// phase. Agents that got events at the same moment then send at different times, and an agent
        /// with a constant flow of events still sends once per wait.
        func due(_ priority: Priority, since accepted: BootInstant) -> BootInstant {
            let wait = waits[priority]
            let half = wait.nanosecondsClamped / 2
            guard let phase, half > 0 else { return accepted + wait }
            let earliest = accepted.nanoseconds.addingSaturating(half)
            let late = (Int64(Double(half) * phase) - earliest % half + half) % half
            return BootInstant(nanoseconds: earliest.addingSaturating(late))
        }
    }

    /// Why nothing at all may be sent; nil if sending is allowed.
    var block: DestinationStateName?
    /// Nil: nothing is sent unless a command wants it.
    var automatic: Automatic?
}
