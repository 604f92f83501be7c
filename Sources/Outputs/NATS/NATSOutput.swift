internal import Digests
package import EventLoops
package import Logs
package import Model

/// Publishes batches to a JetStream subject, a message for each batch or for each event.
///
/// Each message has a `Nats-Msg-Id`: the batch's id, or the event's. The stream remembers ids for its
/// duplicate window; within it, a repeat is stored once. If a batch that may be stored is sent again after
/// the window, a warning says so. Runs on the loop passed to `init`.
package actor NATSOutput: MeasuredOutput {
    package var measures = OutputMeasures()
    package nonisolated let firstCertificates: OutputCertificates?
    package nonisolated let followsFiles: Bool

    package nonisolated let loop: EventLoop
    let options: NATSOptions
    private let name: DestinationName
    private let log: Log
    private let time: any TimeSource
    private let builder: BodyBuilder
    /// Template of the subject.
    private let subjects: EventTemplates
    package nonisolated var templates: EventTemplates? { subjects }
    /// The configured headers, some of which may depend on the event.
    private nonisolated let headers: HeaderTemplates
    package nonisolated var requestTemplates: EventTemplates? { headers.templates }
    package nonisolated var asksWhose: Bool {
        [templates, requestTemplates].contains { $0?.areOfEvents == true }
    }
    let client: NATSClient
    /// Certificates and the secret, read again when their files change.
    private var files: FollowedFiles
    /// Credentials as last read.
    private var identity: NATSIdentity
    /// Batches that may be stored without an acknowledgement, with the time of their last attempt; at most
    /// `mostUncertain`.
    private var uncertain: [BatchID: BootInstant] = [:]
    /// When this output was made, in the time of day. An earlier process may have sent older batches.
    private let started: Timestamp

    /// Bound of `uncertain`; beyond it, the oldest batch is forgotten.
    private static let mostUncertain = 1000

    /// Sets up a destination, and reads its certificates and secrets for the first time. Connects to
    /// nothing.
    ///
    /// - Throws: `OutputError` if a setting has no meaning or a file cannot be read.
    package init(
        _ name: DestinationName, _ options: NATSOptions, version: String = "", on loop: EventLoop,
        log: Log, time: any TimeSource = SystemTime()
    ) throws(OutputError) {
        let settings = options.settings
        self.options = options
        self.name = name
        self.loop = loop
        self.log = log
        self.time = time
        builder = try BodyBuilder(
            NDJSONEncoder(), options.nats.message == .batch ? settings.compression : .none)
        let servers = try options.servers()
        let files = try FollowedFiles(
            name, settings.tls, secret: options.secret,
            hasLines: options.nats.credentials.source != nil,
            log: log,
            at: time.bootTime)
        self.files = files
        firstCertificates = files.certificates
        measures.certificates = files.certificates
        let identity = try NATSIdentity(options, files.secret)
        self.identity = identity
        followsFiles = files.areAny
        client = try NATSClient(
            options, servers, version: version, tls: files.tls, identity: identity, on: loop, time: time)
        started = time.wallTime
        let scope = settings.templateScope(log: log, time: time)
        subjects = EventTemplates([options.nats.subject], scope)
        headers = try HeaderTemplates(settings, scope)
        try NATSOutput.check(settings.sortedHeaders)
    }

    /// Refuses headers that mean something to servers or that the agent sets itself, and values that could
    /// end a header line early.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`.
    private static func check(_ headers: [(name: String, value: String)]) throws(OutputError) {
        for (name, value) in headers {
            let isOwn = name.lowercased().hasPrefix("nats-") || name.lowercased() == "content-type"
            try require(!isOwn, "header \(name) is set by the agent, or the server's; remove it")
            let isLine = value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
            try require(isLine, "header \(name) has a control character")
        }
    }

    /// Publishes a batch. For messages that hold a batch each, the outcome is that of their parts, which
    /// share the batch's id; for messages that hold an event each, the events' own.
    package func send(_ batch: Batch) async -> Outcome {
        await hasNewCredentials()
        let messages: [NATSMessage]
        var parts: [BatchPart]?
        do throws(OutputError) {
            switch options.nats.message {
            case .batch:
                let all = try self.parts(of: batch)
                messages = try all.map { part throws(OutputError) in
                    try message(of: part.part, part.headers)
                }
                parts = all.map(\.part)
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
        if let expiry = await client.serverExpiry {
            measures.certificates.serverExpiry = expiry
        }
        let outcome =
            report.refusal ?? parts.map { Outcome(ofParts: Array(zip($0.map(\.events), report.outcomes))) }
            ?? Outcome(of: report.outcomes)
        note(batch.header.id, report, outcome)
        return outcome
    }

    /// Checks that a server accepts the agent. Ends within `requestTimeout`.
    package func probe() async -> Failure? {
        guard let refusal = await client.publish([]).refusal else { return nil }
        return refusal.failure ?? Failure(kind: .connect, message: "there is no route to the server")
    }

    /// Headers of a message besides the fixed ones.
    private typealias Headers = [(name: String, value: String)]

    /// Divides a batch by subject and headers.
    private func parts(of batch: Batch) throws(OutputError) -> [(part: BatchPart, headers: Headers)] {
        guard headers.templates != nil else {
            return try builder.parts(of: batch, by: subjects).map { ($0, []) }
        }
        let lines = try builder.lines(of: batch)
        let events = try EventView.all(lines)
        let filled = try subjects.fill(for: batch.header) { events }
        let extra = try headers.filled(for: batch.header, events) ?? []
        var groups: [(subject: String, headers: Headers, events: [Int])] = []
        for (event, headers) in extra.enumerated() {
            let subject = filled[event][0]
            let known = groups.firstIndex { group in
                group.subject == subject && group.headers.elementsEqual(headers) { $0 == $1 }
            }
            if let known {
                groups[known].events.append(event)
            } else {
                groups.append((subject, headers, [event]))
            }
        }
        let pieces = try builder.pieces(groups.map(\.events), of: batch, lines)
        return zip(groups, pieces).map { group, piece in
            (BatchPart(text: group.subject, events: group.events, batch: piece), group.headers)
        }
    }

    /// A message with a whole batch, or with the part that has one subject and equal headers. The id of a
    /// part is made from the batch's id, the subject and the headers, so that a repeat has the same.
    private func message(of part: BatchPart, _ own: Headers) throws(OutputError) -> NATSMessage {
        let header = part.batch.header
        let isPart = subjects.areOfEvents || headers.templates != nil
        let words = (["\(header.id)", part.text] + own.map(\.value)).joined(separator: "/")
        let id = isPart ? NATSOutput.messageID(words) : "\(header.id)"
        var lines = headerLines(
            id: id, type: NDJSONEncoder.usualContentType, compression: options.settings.compression, own)
        lines.append(contentsOf: "X-Spoolship-Events: \(header.events)\r\n\r\n".utf8)
        return NATSMessage(subject: part.text, headers: lines, payload: try builder.body(of: part.batch))
    }

    /// A message for each event.
    private func events(of batch: Batch) throws(OutputError) -> [NATSMessage] {
        let events = try EventView.all(try builder.lines(of: batch))
        let filled = try subjects.fill(for: batch.header) { events }
        let extra = try headers.filled(for: batch.header, events)
        return events.enumerated().map { index, event in
            // A stream remembers ids across subjects: the same event from another destination, under
            // another subject, is not a repeat.
            let id = NATSOutput.messageID(
                "\(event.stableID(in: batch.header.id, at: index))/\(filled[index][0])")
            var lines = headerLines(id: id, type: "application/json", compression: .none, extra?[index] ?? [])
            lines.append(contentsOf: "\r\n".utf8)
            return NATSMessage(subject: filled[index][0], headers: lines, payload: Array(event.line))
        }
    }

    /// The header block, without the blank line that ends it.
    private func headerLines(id: String, type: String, compression: Compression, _ own: Headers) -> [UInt8] {
        var lines = "NATS/1.0\r\nNats-Msg-Id: \(id)\r\n"
        if let stream = options.nats.stream {
            lines += "Nats-Expected-Stream: \(stream)\r\n"
        }
        lines += "Content-Type: \(type)\r\n"
        if compression != .none {
            lines += "Content-Encoding: \(compression.name)\r\n"
        }
        for (name, value) in headers.fixed + own { lines += "\(name): \(value)\r\n" }
        return Array(lines.utf8)
    }

    /// An id in the form of a header's value: the id itself, or its SHA-256 if it is long or not plain.
    static func messageID(_ id: String) -> String {
        let isPlain = (1...256).contains(id.utf8.count) && id.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        return isPlain ? id : SHA256.hexadecimal(Array(id.utf8))
    }

    /// Warns if a batch that may be stored is sent again after the duplicate window. The stream may then
    /// have it twice.
    private func warnOfRepeats(_ header: BatchHeader) {
        let now = time.bootTime
        if let sent = uncertain[header.id] {
            guard now - sent > options.nats.duplicateWindow else { return }
        } else {
            // The batch's id contains the time at which the batch was formed, right before it was first
            // sent.
            let formed = Timestamp(milliseconds: Int64(clamping: header.id.high >> 16))
            guard formed < started, time.wallTime - formed > options.nats.duplicateWindow else { return }
        }
        log.warning(
            "a batch is sent again after the duplicate window: the stream may have it twice",
            ["destination": name, "batch": header.id, "events": header.events])
        keep(header.id, now)
    }

    /// Notes whether a batch may be stored although it was not acknowledged.
    private func note(_ id: BatchID, _ report: TicketReport, _ outcome: Outcome) {
        if outcome == .acknowledged {
            uncertain[id] = nil
        } else if report.mayBeStored {
            keep(id, time.bootTime)
        }
    }

    /// Remembers when a batch was sent, within the bound.
    private func keep(_ id: BatchID, _ now: BootInstant) {
        if uncertain.count >= NATSOutput.mostUncertain,
            let oldest = uncertain.min(by: { $0.value < $1.value })
        {
            uncertain[oldest.key] = nil
        }
        uncertain[id] = now
    }

    @discardableResult package func hasNewCredentials() async -> Bool {
        let changes = files.readChanged(at: time.bootTime, &measures.certificates) {
            secret throws(OutputError) in
            identity = try NATSIdentity(options, secret)
        }
        if changes.areAny {
            await client.use(files.tls, identity)
        }
        return changes.areAny
    }
}
