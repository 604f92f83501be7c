internal import Digests
package import EventLoops
package import Logs
package import Model

/// Publishes batches to a JetStream subject.
///
/// Each message carries `Nats-Msg-Id`: the batch's id, or the event's own. The stream forgets ids after its duplicate window;
/// within it a repeat is stored once. When a batch whose fate is unknown goes again after the window, a warning says so.
/// Lives on the loop that it is given.
package actor NATSOutput: MeasuredOutput {
    package var measures = OutputMeasures()
    package nonisolated let firstCertificates: OutputCertificates?
    package nonisolated let followsFiles: Bool

    package nonisolated let loop: EventLoop
    let settings: DestinationSettings
    private let name: DestinationName
    private let log: Log
    private let time: any TimeSource
    private let builder: BodyBuilder
    private let subjects: EventTemplates
    package nonisolated var templates: EventTemplates? { subjects }
    let client: NATSClient
    private var files: FollowedFiles
    private var identity: NATSIdentity
    /// Batches that may be stored without our knowing, with when they were sent; no more than `mostUncertain`.
    private var uncertain: [BatchID: BootInstant] = [:]
    /// When this was made: older batches may have been sent by an earlier process.
    private let started: Timestamp

    private static let mostUncertain = 1000

    /// Sets up a destination; reads its certificates and secrets for the first time. Connects to nothing.
    ///
    /// - Throws: `OutputError`: a setting without meaning, a file that cannot be read.
    package init(
        _ name: DestinationName, _ settings: DestinationSettings, version: String = "", on loop: EventLoop, log: Log,
        time: any TimeSource = SystemTime()
    ) throws(OutputError) {
        (self.settings, self.name, self.loop, self.log, self.time) = (settings, name, loop, log, time)
        builder = try BodyBuilder(NDJSONEncoder(), settings.nats.message == .batch ? settings.compression : .none)
        let servers = try settings.natsServers()
        let files = try FollowedFiles(
            name, settings.tls, secret: settings.natsSecret, hasLines: settings.nats.credentials.source != nil,
            log: log,
            at: time.bootTime)
        self.files = files
        firstCertificates = files.certificates
        measures.certificates = files.certificates
        let identity = try NATSIdentity(settings, files.secret)
        self.identity = identity
        followsFiles = files.areAny
        client = try NATSClient(
            settings, servers, version: version, tls: files.tls, identity: identity, on: loop, time: time)
        started = time.wallTime
        subjects = EventTemplates([settings.nats.subject], settings.templateScope(log: log, time: time))
    }

    package func send(_ batch: Batch) async -> Outcome {
        await hasNewCredentials()
        let messages: [NATSMessage]
        var parts: [BatchPart]?
        do throws(OutputError) {
            switch settings.nats.message {
            case .batch:
                let all = try builder.parts(of: batch, by: subjects)
                messages = try all.map { part throws(OutputError) in try message(of: part) }
                parts = all
            case .event: messages = try events(of: batch)
            }
        } catch {
            return error.failure.outcome
        }
        warnOfRepeats(batch.header)
        let report = await client.publish(messages)
        measures.sentBytes += report.sentBytes
        let all = Array(0..<batch.header.events)
        note(
            repeats: report.repeats.flatMap { place in
                parts.map { $0[place].events.isEmpty ? all : $0[place].events } ?? [place]
            }, of: batch)
        if let expiry = await client.serverExpiry { measures.certificates.serverExpiry = expiry }
        let outcome =
            report.refusal ?? parts.map { Outcome(ofParts: Array(zip($0.map(\.events), report.outcomes))) }
            ?? Outcome(of: report.outcomes)
        note(batch.header.id, report, outcome)
        return outcome
    }

    /// Whether a server takes us. Ends within `requestTimeout`.
    package func probe() async -> Failure? {
        guard let refusal = await client.publish([]).refusal else { return nil }
        return refusal.failure ?? Failure(kind: .connect, message: "there is no route to the server")
    }

    /// All of a batch, or what of it goes to one subject: under its id, or that and the subject.
    private func message(of part: BatchPart) throws(OutputError) -> NATSMessage {
        let header = part.batch.header
        let id = subjects.areOfEvents ? NATSOutput.messageID("\(header.id)/\(part.text)") : "\(header.id)"
        var headers = headers(id: id, type: NDJSONEncoder.usualContentType, compression: settings.compression)
        headers.append(contentsOf: "X-Spoolship-Events: \(header.events)\r\n\r\n".utf8)
        return NATSMessage(subject: part.text, headers: headers, payload: try builder.body(of: part.batch))
    }

    private func events(of batch: Batch) throws(OutputError) -> [NATSMessage] {
        let events = try EventView.all(try builder.lines(of: batch))
        let filled = try subjects.fill(for: batch.header) { events }
        return events.enumerated().map { index, event in
            // A stream knows ids, whatever the subjects: another destination's message for the event is no repeat.
            let id = NATSOutput.messageID("\(event.stableID(in: batch.header.id, at: index))/\(filled[index][0])")
            var headers = headers(id: id, type: "application/json", compression: .none)
            headers.append(contentsOf: "\r\n".utf8)
            return NATSMessage(subject: filled[index][0], headers: headers, payload: Array(event.line))
        }
    }

    /// The lines of headers, without the blank one that ends them.
    private func headers(id: String, type: String, compression: Compression) -> [UInt8] {
        var lines = "NATS/1.0\r\nNats-Msg-Id: \(id)\r\n"
        if let stream = settings.nats.stream { lines += "Nats-Expected-Stream: \(stream)\r\n" }
        lines += "Content-Type: \(type)\r\n"
        if compression != .none { lines += "Content-Encoding: \(compression.name)\r\n" }
        return Array(lines.utf8)
    }

    /// An event's id as a header's value: itself where it can be one, else its hash.
    static func messageID(_ id: String) -> String {
        let isPlain = (1...256).contains(id.utf8.count) && id.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        return isPlain ? id : SHA256.hexadecimal(Array(id.utf8))
    }

    /// A batch may be stored already, and the stream may have forgotten its id.
    private func warnOfRepeats(_ header: BatchHeader) {
        let now = time.bootTime
        if let sent = uncertain[header.id] {
            guard now - sent > settings.nats.duplicateWindow else { return }
        } else {
            // The id tells when the batch was formed, right before it was first sent.
            let formed = Timestamp(milliseconds: Int64(clamping: header.id.high >> 16))
            guard formed < started, time.wallTime - formed > settings.nats.duplicateWindow else { return }
        }
        log.warning(
            "a batch is sent again after the duplicate window: the stream may have it twice",
            ["destination": name, "batch": header.id, "events": header.events])
        keep(header.id, now)
    }

    private func note(_ id: BatchID, _ report: TicketReport, _ outcome: Outcome) {
        if outcome == .acknowledged {
            uncertain[id] = nil
        } else if report.mayBeStored {
            keep(id, time.bootTime)
        }
    }

    private func keep(_ id: BatchID, _ now: BootInstant) {
        if uncertain.count >= NATSOutput.mostUncertain, let oldest = uncertain.min(by: { $0.value < $1.value }) {
            uncertain[oldest.key] = nil
        }
        uncertain[id] = now
    }

    @discardableResult package func hasNewCredentials() async -> Bool {
        let changes = files.readChanged(at: time.bootTime, &measures.certificates) { secret throws(OutputError) in
            identity = try NATSIdentity(settings, secret)
        }
        if changes.areAny { await client.use(files.tls, identity) }
        return changes.areAny
    }
}
