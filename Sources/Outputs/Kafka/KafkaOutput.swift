package import EventLoops
package import Logs
package import Model

/// Writes batches to a Kafka topic, a record an event.
///
/// Each record carries the batch's id and the event's; a batch is acknowledged when all replicas in sync have every record.
/// Within one producer the brokers recognise a repeat; after a crash, or with another producer, a record may be there twice,
/// under the same event id. Lives on the loop that it is given, which nothing else should use: librdkafka may block it
/// for milliseconds.
package actor KafkaOutput: MeasuredOutput {
    package var measures = OutputMeasures()
    package nonisolated let firstCertificates: OutputCertificates?
    package nonisolated let followsFiles: Bool

    package nonisolated let loop: EventLoop
    private let options: KafkaOptions
    private let time: any TimeSource
    private let builder: BodyBuilder
    private let topics: EventTemplates
    package nonisolated var templates: EventTemplates? { topics }
    private let client: KafkaClient
    private var files: FollowedFiles

    /// Sets up a destination; loads librdkafka, reads certificates and secrets for the first time. Connects to nothing.
    ///
    /// - Throws: `OutputError`: a setting without meaning, a property that librdkafka refuses, a file that cannot be read,
    ///   code `library` when librdkafka is not installed.
    package init(
        _ name: DestinationName, _ options: KafkaOptions, on loop: EventLoop, log: Log,
        time: any TimeSource = SystemTime()
    ) throws(OutputError) {
        self.options = options
        self.loop = loop
        self.time = time
        builder = try BodyBuilder(NDJSONEncoder(), .none)
        let files = try KafkaOutput.rehearse(name, options, log: log, at: time.bootTime)
        self.files = files
        topics = EventTemplates([options.settings.kafka.topic], options.settings.templateScope(log: log, time: time))
        firstCertificates = files.certificates
        measures.certificates = files.certificates
        followsFiles = files.areAny
        client = try KafkaClient(options, files, on: loop, time: time)
    }

    /// Whether a destination can be set up: `init` without the library's threads, which connect; throws as `init`.
    package static func rehearse(_ name: DestinationName, _ options: KafkaOptions, log: Log) throws(OutputError) {
        _ = try rehearse(name, options, log: log, at: SystemTime().bootTime)
    }

    private static func rehearse(
        _ name: DestinationName, _ options: KafkaOptions, log: Log, at now: BootInstant
    ) throws(OutputError) -> FollowedFiles {
        try options.check()
        try KafkaLibrary.load()
        let files = try FollowedFiles(
            name, options.settings.tls, secret: options.settings.login?.secret, log: log, at: now)
        try KafkaProperties(
            options, authorities: files.tls.authorities, secret: files.secret, connects: false
        ).rehearse()
        return files
    }

    package func send(_ batch: Batch) async -> Outcome {
        await hasNewCredentials()
        let records: [KafkaRecord]
        do throws(OutputError) { records = try self.records(of: batch) } catch {
            return error.failure.outcome
        }
        let headers = options.settings.sortedHeaders + [("batch_id", batch.header.id.description)]
        let report = await client.publish(records, headers: headers)
        measures.sentBytes += report.sentBytes
        return Outcome(of: report.outcomes)
    }

    /// Whether the brokers take us and have the topic. Ends within `connectTimeout`.
    package func probe() async -> Failure? { await client.look().failure }

    var isAwake: Bool { get async { await client.isAwake } }

    private func records(of batch: Batch) throws(OutputError) -> [KafkaRecord] {
        let lines = try builder.lines(of: batch)
        let (key, topic) = (options.settings.kafka.key, options.settings.kafka.topic)
        let events = try EventView.all(lines)
        let filled = topic.fields.isEmpty ? nil : try topics.fill(for: batch.header) { events }
        return events.enumerated().map { index, event in
            KafkaRecord(
                topic: filled?[index][0], key: key == "none" ? nil : KafkaOutput.key(key, of: event), value: event.line,
                eventID: event.stableID(in: batch.header.id, at: index))
        }
    }

    /// A member as a key: a text without its quotes, anything else as it is; nil when there is none, or it is null.
    static func key(_ path: String, of event: EventView) -> [UInt8]? {
        guard let value = event.member(at: path), value.kind != .null else { return nil }
        return value.string.map { Array($0.utf8) } ?? Array(value.bytes)
    }

    @discardableResult package func hasNewCredentials() async -> Bool {
        let changes = files.readChanged(at: time.bootTime, &measures.certificates)
        if changes.areAny {
            await client.use(files)
        }
        return changes.areAny
    }
}
