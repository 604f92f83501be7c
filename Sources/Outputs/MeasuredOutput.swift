// Outputs: sends batches to destinations. A batch goes in, and every answer becomes an `Outcome`.
//
// What the module promises:
// * An attempt ends within the destination's timeouts, whatever the other side does.
// * The same batch is sent as the same uncompressed bytes under the same key or id at every attempt, in
//   this process and in the next, so that a receiver can recognise a repeat.
// * An answer that was not expected never counts as an acknowledgement.
// * A secret goes only to the host that it is meant for, and appears in no message and no log.
//
// Its parts:
// * `MeasuredOutput` (this file) is what the agent sees of a destination: send a batch, probe, figures.
// * `HTTP/HTTPOutput` sends to every destination that speaks HTTP. `HTTPClient` runs libcurl on the loop,
//   `Transfer` is one request, `AnswerReader` and `AnswerTable` decide what an answer means,
//   `TransferFailure` and `TimeoutStep` say why there was none.
// * `Formats` has an encoder for each format of bodies (`BatchEncoder`); several also read the answers.
// * `S3`, `NATS`, `Kafka`, `Syslog` and `File` have the outputs that need more than a format.
// * `TLS` and `Secrets` have certificates, keys and secrets that are read again when their files change,
//   and credentials that a service issues for a limited time (`Temporary`); `AWS` signs with them.
// * `Templates` fills placeholders such as `{app}` with values of events (`EventTemplates`).
// * `BodyBuilder` unpacks, divides, encodes and compresses stored batches.
//
// Its rules:
// * Each output is an actor on the loop that it is given. Those that block (files, Kafka's start) get a
//   loop of their own from the agent. Nothing here starts a thread except librdkafka and libcurl's name
//   resolver.
// * Hostile: every byte that a server sends, and every value of an event. The configuration is trusted.
// * Bounded: bytes kept of an answer, its head, protocol lines, distinct values of templates, connections.
// * The module decides nothing about when to send, to retry or to split: it only says what happened.
//   `Delivery` decides. It knows neither SQL nor the queue's file.
// * The results of requests are values (`Outcome`). Errors (`OutputError`) are for settings and for batches
//   that cannot be read.
//
// Begin with `HTTPOutput.send`, then `AnswerReader.outcome`. DESIGN.md has the decisions with their
// reasons.

package import EventLoops
package import Model

/// A destination as the agent uses it: a `BatchSender` of the delivery that also reports figures for
/// metrics, and can be checked without sending an event.
package protocol MeasuredOutput: BatchSender, LoopActor {
    /// Figures since the last call of `sendMeasured`, and what is known about certificates. An output adds
    /// to them during `send`.
    var measures: OutputMeasures { get set }

    /// Expiry of the certificates as they were read when this output was made, for metrics before the first
    /// attempt; nil if the destination can have none.
    nonisolated var firstCertificates: OutputCertificates? { get }

    /// Templates of the place of an event (index, topic, subject, key, labels); nil for an output without
    /// templates.
    nonisolated var templates: EventTemplates? { get }

    /// Templates of the address and the headers of requests; nil if no header and no address has
    /// placeholders.
    nonisolated var requestTemplates: EventTemplates? { get }

    /// Whether the header of a batch must name the app of each event. This costs one look-up in the queue
    /// for each attempt, so it is true only if the app appears in what is sent.
    nonisolated var asksWhose: Bool { get }

    /// Connects and authenticates as sending would, without sending an event.
    ///
    /// - Returns: what failed, in words that say what to do; nil if nothing failed, and for outputs that
    ///   connect to nothing.
    func probe() async -> Failure?
}

extension MeasuredOutput {
    package nonisolated var firstCertificates: OutputCertificates? { nil }

    package nonisolated var templates: EventTemplates? { nil }

    package nonisolated var requestTemplates: EventTemplates? { nil }

    package nonisolated var asksWhose: Bool { templates?.areOfEvents == true }

    package func probe() async -> Failure? { nil }

    /// Makes one attempt and returns the figures that it added, which are then reset. A single call, so
    /// that an attempt costs one hop to the output's actor.
    package func sendMeasured(_ batch: Batch) async -> (outcome: Outcome, measures: OutputMeasures) {
        let outcome = await send(batch)
        for counts in [templates, requestTemplates].compactMap({ $0?.takeCounts() }) {
            measures.templates.missing += counts.missing
            measures.templates.beyond += counts.beyond
        }
        defer {
            measures.sentBytes = 0
            measures.leftOutValues = 0
            measures.templates = .init()
            measures.repeats = [:]
        }
        return (outcome, measures)
    }

    /// Makes one attempt and returns what the server answered, for `check`, which shows it to a person.
    package func sendShowingAnswers(_ batch: Batch) async -> (outcome: Outcome, answers: [AnswerExcerpt]) {
        measures.answers = []
        let outcome = await send(batch)
        defer { measures.answers = nil }
        return (outcome, measures.answers ?? [])
    }

    /// Keeps an answer for `sendShowingAnswers`, if that is under way.
    ///
    /// - Parameter secrets: texts that are replaced by asterisks, because a server may quote the request.
    func note(_ answer: HTTPAnswer, hiding secrets: [String]) {
        guard measures.answers != nil else { return }
        var shown = answer
        shown.secrets = secrets
        measures.answers?.append(AnswerExcerpt(status: shown.status, text: shown.failure("").words ?? ""))
    }

    /// Notes that the destination called some events repeats although their batch was never sent before.
    /// Then the destination has other events under the same ids and did not store these: the log warns of
    /// it.
    ///
    /// - Parameter places: positions of the events in the batch, from 0.
    func note(repeats places: [Int], of batch: Batch) {
        guard !batch.mayHaveBeenSent, !places.isEmpty else { return }
        measures.repeats[batch.header.id, default: []] += places
    }
}

/// Figures of an output between two readings.
package struct OutputMeasures: Sendable {
    /// Bytes handed over: request bodies as they go over the wire; for Kafka, keys and values before the
    /// library compresses them.
    package var sentBytes = 0
    /// Number of event values that the format had to leave out or to change, in acknowledged batches.
    package var leftOutValues = 0
    /// Number of events that lacked values for a template's placeholders, by reason.
    package var templates = EventTemplates.Counts()
    /// Positions of events that the destination took for repeats although their batch was never sent
    /// before.
    package var repeats: [BatchID: [Int]] = [:]
    /// Expiry of certificates, as of the last time that the files or the server's certificate were seen.
    package var certificates = OutputCertificates()
    /// Answers to the present attempt; nil, and nothing is kept, except during `sendShowingAnswers`.
    package var answers: [AnswerExcerpt]?

    package init() {}
}

/// An answer as a person may see it.
package struct AnswerExcerpt: Sendable, Equatable {
    /// HTTP status.
    package let status: Int
    /// First printable characters of the body, at most 200.
    package let text: String
}

/// Expiry of the certificates that a destination depends on, for metrics and alerts.
package struct OutputCertificates: Sendable, Equatable {
    /// Expiry of the agent's client certificate, the earliest of its file; nil without a client
    /// certificate.
    package var ownExpiry: Timestamp?
    /// Earliest expiry in `tls.ca_file`; nil without that setting.
    package var authorityExpiry: Timestamp?
    /// Expiry of the server's certificate as of the last handshake; nil before a handshake and without TLS.
    package var serverExpiry: Timestamp?
    /// Number of times that changed files could not be used, so that the older certificates stayed in
    /// force.
    package var failedReloads = 0

    package init(ownExpiry: Timestamp? = nil, authorityExpiry: Timestamp? = nil) {
        self.ownExpiry = ownExpiry
        self.authorityExpiry = authorityExpiry
    }
}
