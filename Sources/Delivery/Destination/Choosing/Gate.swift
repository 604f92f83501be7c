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
        /// Largest share of a wait that is left out; see `DestinationOptions.jitter`.
        var jitter = DeliveryOptions.standardJitter

        /// When events accepted at a time are sent: at the end of the wait at the latest, and earlier by
        /// `jitter` at most.
        ///
        /// In between, the machine's phase decides: the points lie as far apart as the part that may be left
        /// out is long, shifted by the phase. Agents that got events at the same moment then send at
        /// different times, and an agent with a constant flow of events still sends once per wait.
        func due(_ priority: Priority, since accepted: BootInstant) -> BootInstant {
            let wait = waits[priority]
            let span = (wait * jitter).nanosecondsClamped
            guard let phase, span > 0 else { return accepted + wait }
            let earliest = accepted.nanoseconds.addingSaturating(wait.nanosecondsClamped - span)
            let late = (Int64(Double(span) * phase) - earliest % span + span) % span
            return BootInstant(nanoseconds: earliest.addingSaturating(late))
        }
    }

    /// Why nothing at all may be sent; nil if sending is allowed.
    var block: DestinationStateName?
    /// Nil: nothing is sent unless a command wants it.
    var automatic: Automatic?
}
