package import EventLoops
package import Model

/// What every kind of destination does and reports besides sending a batch.
package protocol MeasuredOutput: BatchSender, LoopActor {
    /// What was told of since the last attempt, and what is known of certificates.
    var measures: OutputMeasures { get set }

    /// When certificates expired when this was made; nil where there can be none.
    nonisolated var firstCertificates: OutputCertificates? { get }

    /// What events fill in; nil where nothing is.
    nonisolated var templates: EventTemplates? { get }

    /// Whether the header of a batch has to say whose its events are.
    nonisolated var asksWhose: Bool { get }

    /// Connects and authenticates as sending would, and sends no event.
    ///
    /// - Returns: what failed, in words that say what to do; nil when nothing did, and where there is nobody to connect to.
    func probe() async -> Failure?
}

extension MeasuredOutput {
    package nonisolated var firstCertificates: OutputCertificates? { nil }

    package nonisolated var templates: EventTemplates? { nil }

    package nonisolated var asksWhose: Bool { templates?.areOfEvents == true }

    package func probe() async -> Failure? { nil }

    /// One attempt, with what it took: one call to the output's actor.
    package func sendMeasured(_ batch: Batch) async -> (outcome: Outcome, measures: OutputMeasures) {
        let outcome = await send(batch)
        if let templates { measures.templates = templates.takeCounts() }
        defer {
            (measures.sentBytes, measures.leftOutValues, measures.templates, measures.repeats) = (0, 0, .init(), [:])
        }
        return (outcome, measures)
    }

    /// Notes that a destination knows events of a batch by their ids already, if the batch was never sent before: it has others'.
    func note(repeats places: [Int], of batch: Batch) {
        guard !batch.mayHaveBeenSent, !places.isEmpty else { return }
        measures.repeats[batch.header.id, default: []] += places
    }
}

package struct OutputMeasures: Sendable {
    /// The bytes that were handed over: bodies as they go over the wire; for Kafka keys and events before they are packed.
    package var sentBytes = 0
    /// How many values of events the format had no place for or had to change, in batches that were acknowledged.
    package var leftOutValues = 0
    /// How many events had no values of their own for a template.
    package var templates = EventTemplates.Counts()
    /// Places of events that were taken for repeats, though their batch was never sent before.
    package var repeats: [BatchID: [Int]] = [:]
    /// When certificates expire, as of the last look.
    package var certificates = OutputCertificates()

    package init() {}
}

package struct OutputCertificates: Sendable, Equatable {
    /// When the first of the agent's own certificates expires; nil without one.
    package var ownExpiry: Timestamp?
    /// When the first of the certificates of `tls.ca_file` expires; nil without one.
    package var authorityExpiry: Timestamp?
    /// When the destination's own certificate expires, as of the last handshake; nil before one, and without TLS.
    package var serverExpiry: Timestamp?
    /// How often they could not be read again, so that older ones stayed in force.
    package var failedReloads = 0

    package init(ownExpiry: Timestamp? = nil, authorityExpiry: Timestamp? = nil) {
        (self.ownExpiry, self.authorityExpiry) = (ownExpiry, authorityExpiry)
    }
}
