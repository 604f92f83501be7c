internal import EventLoops
internal import Logs
internal import Metrics
internal import Model
internal import Outputs
internal import Synchronization

/// What attempts took and sent, and when certificates end, by destination; outlives reloads.
final class SendingFigures: MetricCollector {
    fileprivate let durations = HistogramSet(\.attemptSeconds)
    fileprivate let bytes = CounterSet(\.sentBytes)
    fileprivate let leftOut = CounterSet(\.valuesLeftOut)
    fileprivate let repeats = CounterSet(\.unexpectedRepeats)
    let templates = CounterSet(\.templateFallbacks)
    /// Destinations that are not configured, and of which something waited: their last changes must be seen.
    let leftovers = Mutex<Set<DestinationName>>([])
    private let certificates = Mutex<[DestinationName: OutputCertificates]>([:])

    func setCertificates(_ known: [DestinationName: OutputCertificates]) {
        certificates.withLock { $0 = known }
    }

    /// Counts one attempt: how long it took, and what else is known of it.
    func note(_ name: DestinationName, _ duration: Duration, _ measures: OutputMeasures) {
        leftOut.add([name.text], measures.leftOutValues)
        templates.add([name.text, EventTemplates.missing], measures.templates.missing)
        templates.add([name.text, EventTemplates.beyond], measures.templates.beyond)
        durations.observe([name.text], duration)
        bytes.add([name.text], measures.sentBytes)
        repeats.add([name.text], measures.repeats.values.reduce(0) { $0 + $1.count })
        // A destination that a reload has removed must not come back by its last attempt.
        certificates.withLock { if $0[name] != nil { $0[name] = measures.certificates } }
    }

    /// Ends the series of destinations that are not configured any more, whatever their last attempts have counted.
    func keep(_ destinations: [String]) {
        durations.keep { destinations.contains($0[0]) }
        for set in [bytes, leftOut, repeats, templates] { set.keep { destinations.contains($0[0]) } }
    }

    func collect(into exposition: inout Exposition) {
        for set: any MetricCollector in [durations, bytes, leftOut, repeats, templates] {
            set.collect(into: &exposition)
        }
        for (name, known) in certificates.withLock({ $0 }).sorted(by: { $0.key.text < $1.key.text }) {
            let ends = [("ca", known.authorityExpiry), ("client", known.ownExpiry), ("server", known.serverExpiry)]
            for (kind, end) in ends {
                guard let end else { continue }
                exposition.set(\.certificateExpiry, [name.text, kind], to: Double(end.milliseconds) / 1000)
            }
        }
    }
}

struct MeasuredSender: BatchSender {
    let name: DestinationName
    let output: any MeasuredOutput
    let figures: SendingFigures
    let time: any TimeSource
    let log: Log
    /// Whose the events of a batch in flight are.
    let apps: @Sendable (BatchID) async -> [String]

    var followsFiles: Bool { output.followsFiles }

    func hasNewCredentials() async -> Bool { await output.hasNewCredentials() }

    func send(_ batch: Batch) async -> Outcome {
        let start = time.bootTime
        var batch = batch
        if output.asksWhose {
            batch.header.apps = await apps(batch.header.id)
            // Sent without, an event could go to where another app's go.
            guard batch.header.apps.count == batch.header.events else {
                return .retry(Failure(kind: .local, message: "whose the events are cannot be read in the queue"))
            }
        }
        let end = await output.sendMeasured(batch)
        figures.note(name, time.bootTime - start, end.measures)
        for (id, places) in end.measures.repeats {
            let apps = await apps(id)
            let names = Set(places.compactMap { apps.indices.contains($0) ? apps[$0] : nil }).sorted().prefix(3)
            log.warning(
                "the destination took new events for repeats: it has others under their ids, and did not store them",
                ["destination": name, "app": names.joined(separator: ","), "events": places.count])
        }
        return end.outcome
    }
}
