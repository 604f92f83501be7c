package import EventLoops
package import Logs
package import Model

/// Writes batches to a Kafka topic, a record for each event.
///
/// Each record carries the ids of the batch and of the event. A batch is acknowledged when all replicas in
/// sync have every record. Within one producer the brokers recognise repeats; after a crash, or from
/// another producer, a record may be stored twice, under the same event id. Runs on the loop passed to
/// `init`, which nothing else should use: librdkafka may block it for milliseconds.
package actor KafkaOutput: MeasuredOutput {
    package var measures = OutputMeasures()
    package nonisolated let firstCertificates: OutputCertificates?
    package nonisolated let followsFiles: Bool

    package nonisolated let loop: EventLoop
    private let options: KafkaOptions
    private let time: any TimeSource
    private let builder: BodyBuilder
    /// Template of the topic.
    private let topics: EventTemplates
    package nonisolated var templates: EventTemplates? { topics }
    /// The configured headers, some of which may depend on the event.
    private nonisolated let headers: HeaderTemplates
    package nonisolated var requestTemplates: EventTemplates? { headers.templates }
    package nonisolated var asksWhose: Bool {
        [templates, requestTemplates].contains { $0?.areOfEvents == true }
    }
    private let client: KafkaClient
    /// Certificates and the secret, read again when their files change.
    private var files: FollowedFiles

    /// Sets up a destination: loads librdkafka, and reads certificates and secrets for the first time.
    /// Connects to nothing.
    ///
    /// - Throws: `OutputError` if a setting has no meaning, librdkafka refuses a property, or a file cannot
    ///   be read; with code `library` if librdkafka is not installed.
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
        let scope = options.settings.templateScope(log: log, time: time)
        topics = EventTemplates([options.kafka.topic], scope)
        headers = try HeaderTemplates(options.settings, scope)
        firstCertificates = files.certificates
        measures.certificates = files.certificates
        followsFiles = files.areAny
        client = try KafkaClient(options, files, on: loop, time: time)
    }

    /// Checks whether a destination can be set up, without the library's threads, which would connect.
    /// Throws as `init` does.
    package static func rehearse(_ name: DestinationName, _ options: KafkaOptions, log: Log)
        throws(OutputError)
    {
        _ = try rehearse(name, options, log: log, at: SystemTime().bootTime)
    }

    /// Checks the settings and reads the files, for `init` and the public check.
    private static func rehearse(
        _ name: DestinationName, _ options: KafkaOptions, log: Log, at now: BootInstant
    ) throws(OutputError) -> FollowedFiles {
        try options.check()
        try KafkaLibrary.load()
        let files = try FollowedFiles(
            name, options.settings.tls, secret: options.settings.login?.secret,
            hasLines: options.settings.loginHasLines, log: log, at: now)
        try options.check(files.secret)
        try KafkaProperties(
            options, authorities: files.tls.authorities, secret: files.secret, connects: false
        ).rehearse()
        return files
    }

    /// Sends a batch. The records that failed decide its outcome (`Outcome.init(of:)`).
    package func send(_ batch: Batch) async -> Outcome {
        await hasNewCredentials()
        let records: [KafkaRecord]
        do throws(OutputError) { records = try self.records(of: batch) } catch {
            return error.failure.outcome
        }
        let all = headers.fixed + [("batch_id", batch.header.id.description)]
        let report = await client.publish(records, headers: all)
        measures.sentBytes += report.sentBytes
        return Outcome(of: report.outcomes)
    }

    /// Checks that the brokers accept the agent and have the topic. Ends within about `connectTimeout`.
    package func probe() async -> Failure? { await client.look().failure }

    /// Whether the library's threads exist; for tests.
    var isAwake: Bool { get async { await client.isAwake } }

    /// A record for each event. The topic is nil if it is the same for all events.
    private func records(of batch: Batch) throws(OutputError) -> [KafkaRecord] {
        let lines = try builder.lines(of: batch)
        let topic = options.kafka.topic
        // Events are read into objects only if a topic or a header depends on them.
        let views = topic.fields.isEmpty && headers.templates == nil ? [] : try EventView.all(lines)
        let filled = topic.fields.isEmpty ? nil : try topics.fill(for: batch.header) { views }
        let headers = try headers.filled(for: batch.header, views)
        let drafts = try KafkaDrafts(lines, of: batch.header, key: options.kafka.key)
        return drafts.records(lines, topics: filled, headers: headers)
    }

    package func dropIssuedCredentials() async { await client.dropToken() }

    @discardableResult package func hasNewCredentials() async -> Bool {
        let changes = files.readChanged(at: time.bootTime, &measures.certificates) {
            secret throws(OutputError) in
            try options.check(secret)
        }
        if changes.areAny {
            await client.use(files)
        }
        return changes.areAny
    }
}
