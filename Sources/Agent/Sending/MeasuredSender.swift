internal import EventLoops
internal import Logs
internal import Metrics
internal import Model
internal import Outputs
internal import Synchronization

/// Counts what the attempts of each destination took and sent, and knows when certificates expire. It
/// outlives reloads, which make new outputs: otherwise each reload would reset the counters.
final class SendingFigures: MetricCollector {
    /// Duration of each attempt.
    fileprivate let durations = HistogramSet(\.attemptSeconds)
    /// Bytes sent.
    fileprivate let bytes = CounterSet(\.sentBytes)
    /// Values of acknowledged events that the format has no place for, or had to change.
    fileprivate let leftOut = CounterSet(\.valuesLeftOut)
    /// New events that a receiver mistook for repeats.
    fileprivate let repeats = CounterSet(\.unexpectedRepeats)
    /// Events whose template had no value, or a value beyond the permitted number.
    let templates = CounterSet(\.templateFallbacks)
    /// Destinations that were removed from the configuration while events waited. Their series stay, so that
    /// a scrape sees their last changes.
    let leftovers = Mutex<Set<DestinationName>>([])
    /// The expiry dates of certificates, for configured destinations only.
    private let certificates = Mutex<[DestinationName: OutputCertificates]>([:])

    /// Replaces the known certificates: after a start or a reload.
    func setCertificates(_ known: [DestinationName: OutputCertificates]) {
        certificates.withLock { $0 = known }
    }

    /// Counts one attempt.
    func note(_ name: DestinationName, _ duration: Duration, _ measures: OutputMeasures) {
        leftOut.add([name.text], measures.leftOutValues)
        templates.add([name.text, EventTemplates.missing], measures.templates.missing)
        templates.add([name.text, EventTemplates.beyond], measures.templates.beyond)
        durations.observe([name.text], duration)
        bytes.add([name.text], measures.sentBytes)
        repeats.add([name.text], measures.repeats.values.reduce(0) { $0 + $1.count })
        // The last attempt of a destination that a reload has removed must not bring its series back.
        certificates.withLock { if $0[name] != nil { $0[name] = measures.certificates } }
    }

    /// Ends the series of destinations that are no longer configured, including what their last attempts have
    /// counted.
    func keep(_ destinations: [String]) {
        durations.keep { destinations.contains($0[0]) }
        for set in [bytes, leftOut, repeats, templates] { set.keep { destinations.contains($0[0]) } }
    }

    func collect(into exposition: inout Exposition) {
        for set: any MetricCollector in [durations, bytes, leftOut, repeats, templates] {
            set.collect(into: &exposition)
        }
        for (name, known) in certificates.withLock({ $0 }).sorted(by: { $0.key.text < $1.key.text }) {
            let ends = [
                ("ca", known.authorityExpiry), ("client", known.ownExpiry), ("server", known.serverExpiry),
            ]
            for (kind, end) in ends {
                guard let end else { continue }
                exposition.set(\.certificateExpiry, [name.text, kind], to: Double(end.milliseconds) / 1000)
            }
        }
    }
}

/// Sends the batches of one destination for delivery, and measures the attempts.
struct MeasuredSender: BatchSender {
    let name: DestinationName
    let output: any MeasuredOutput
    /// Counts of all destinations, which outlive this sender.
    let figures: SendingFigures
    let time: any TimeSource
    let log: Log
    /// Looks up the app of each event of a batch in flight, in the order of the events.
    let apps: @Sendable (BatchID) async -> [String]

    var followsFiles: Bool { output.followsFiles }

    func hasNewCredentials() async -> Bool { await output.hasNewCredentials() }

    func dropIssuedCredentials() async { await output.dropIssuedCredentials() }

    /// Sends a batch, and counts the attempt. Looks up the apps first if the destination depends on them.
    func send(_ batch: Batch) async -> Outcome {
        let start = time.bootTime
        var batch = batch
        if output.asksWhose {
            batch.header.apps = await apps(batch.header.id)
            // Without its app, an event could go to the topic or index of another app.
            guard batch.header.apps.count == batch.header.events else {
                return .retry(
                    Failure(kind: .local, message: "the apps of the events cannot be read from the queue"))
            }
        }
        let end = await output.sendMeasured(batch)
        figures.note(name, time.bootTime - start, end.measures)
        for (id, places) in end.measures.repeats {
            let apps = await apps(id)
            let names = Set(places.compactMap { apps.indices.contains($0) ? apps[$0] : nil }).sorted().prefix(
                3)
            log.warning(
                "the destination took new events for repeats: it has others under their ids, and did not store them",
                ["destination": name, "app": names.joined(separator: ","), "events": places.count])
        }
        return end.outcome
    }
}
