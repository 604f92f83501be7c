/// What `/metrics` tells, by series.
struct Figures {
    /// Each sample by its name with labels, as it stands in the exposition.
    let samples: [Substring: Int]

    init(_ exposition: String) {
        var samples: [Substring: Int] = [:]
        for line in exposition.split(separator: "\n") where !line.hasPrefix("#") {
            guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...])
            else {
                continue
            }
            samples[line[..<space]] = Int(value)
        }
        self.samples = samples
    }

    /// A sample; 0 if there is none.
    func value(_ series: String) -> Int { samples[Substring(series)] ?? 0 }

    /// The sum over all labels of a name.
    func total(_ name: String) -> Int {
        samples.reduce(0) { sum, sample in
            sample.key == name || sample.key.hasPrefix(name + "{") ? sum + sample.value : sum
        }
    }

    /// The ledger's equations that do not hold, each for a person; empty when the books are right.
    var imbalances: [String] {
        var wrong: [String] = []
        let read = total("spoolship_events_read_total")
        let kept = ["accepted", "refused", "quarantined"].map { total("spoolship_events_\($0)_total") }
        if read != kept.reduce(0, +) { wrong.append("read \(read) = accepted, refused, quarantined \(kept)") }
        let prefix = "spoolship_deliveries_accepted_total"
        for lane in samples.keys.filter({ $0.hasPrefix(prefix) }).map({ $0.dropFirst(prefix.count) }) {
            let came = ["accepted", "retried"].map { value("spoolship_deliveries_\($0)_total\(lane)") }
            let went = ["acknowledged", "dead_lettered", "evicted", "expired", "discarded", "lost"]
                .map { value("spoolship_deliveries_\($0)_total\(lane)") }
            let queued = value("spoolship_deliveries_queued\(lane)")
            if came.reduce(0, +) != went.reduce(queued, +) {
                wrong.append("\(lane): came \(came), went \(went), queued \(queued)")
            }
        }
        if samples.isEmpty == false, value("spoolship_ledger_balanced") != 1 {
            wrong.append("the agent says so")
        }
        return wrong
    }
}
