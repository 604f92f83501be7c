internal import EventLoops
internal import Metrics
internal import Model
internal import Outputs
internal import Synchronization

/// What attempts took and sent, and when certificates end, by destination; outlives reloads.
final class SendingFigures: MetricCollector {
    fileprivate let durations = HistogramSet(\.attemptSeconds)
    fileprivate let bytes = CounterSet(\.sentBytes)
    fileprivate let leftOut = CounterSet(\.valuesLeftOut)
    let templates = CounterSet(\.templateFallbacks)
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
        // A destination that a reload has removed must not come back by its last attempt.
        certificates.withLock { if $0[name] != nil { $0[name] = measures.certificates } }
    }

    func collect(into exposition: inout Exposition) {
        for set: any MetricCollector in [durations, bytes, leftOut, templates] { set.collect(into: &exposition) }
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

    var followsFiles: Bool { output.followsFiles }

    func hasNewCredentials() async -> Bool { await output.hasNewCredentials() }

    func send(_ batch: Batch) async -> Outcome {
        let start = time.bootTime
        let end = await output.sendMeasured(batch)
        figures.note(name, time.bootTime - start, end.measures)
        return end.outcome
    }
}
