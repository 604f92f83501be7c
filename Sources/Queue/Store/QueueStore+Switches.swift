internal import EventLoops
internal import Logs
public import Model

extension QueueStore {
    /// All durable switches by name: pause tokens, disabled collection, intervals, Retry-After times.
    public func switches() throws(QueueError) -> [String: String] {
        try reading { file throws(QueueError) in
            let rows = try file.statement("SELECT name, value FROM switch").all { ($0.text(0), $0.text(1)) }
            return Dictionary(rows) { _, last in last }
        }
    }

    /// Sets a switch, or removes it if `value` is nil; durable when it returns.
    public func setSwitch(_ name: String, _ value: String?) async throws(QueueError) {
        try await write { transaction throws(QueueError) in
            try transaction.setSwitch(name, value)
        }
    }
}

// What commands set about consent, and what follows for the events that wait.
extension QueueStore {
    /// The row of table `switch` with the text of `ConsentStates`.
    static let consentSwitch = "agent.consent"

    /// Stores the consent of apps, durably. From then on no batch is leased with events that must not be
    /// sent; `withhold` takes them out of the queue.
    public func setConsent(_ states: ConsentStates) async throws(QueueError) {
        let text = states.text
        try await write(places: text?.utf8.count ?? 0) { transaction throws(QueueError) in
            try transaction.setSwitch(QueueStore.consentSwitch, text)
            transaction.state.consent = states
        }
    }

    /// Takes out of the queue what must not be sent, removes its text from chunks that are shared with
    /// others, and gives the freed pages back.
    ///
    /// A lease would take out the same events; this call does so at once, also for destinations that are
    /// down.
    ///
    /// - Parameter patience: how long to wait for requests that began before.
    public func withhold(patience: Duration) async throws(QueueError) -> SiftedEvents {
        let end = time.bootTime + patience
        var found = try await siftWaiting()
        while !found.chunksInFlight.isEmpty, time.bootTime < end {
            await withUnsafeContinuation { again in _ = loop.after(.milliseconds(50)) { again.resume() } }
            let chunks = found.chunksInFlight.sorted()
            found.chunksInFlight = []
            found.inFlight = 0
            let more = try await write { transaction throws(QueueError) in
                var more = SiftedEvents()
                for chunk in chunks {
                    for lane in transaction.state.figures.lanes.indices {
                        try transaction.siftWaiting(chunk: chunk, lane, into: &more)
                    }
                    if try transaction.forgetText(ofChunk: chunk) {
                        more.chunksInFlight.insert(chunk)
                    }
                }
                return more
            }
            found.add(more)
        }
        if found.withheld > 0 {
            try await giveBackFreePages()
            log.warning("waiting events withheld", ["deliveries": found.withheld])
        }
        return found
    }

    /// Number of deliveries of an app that wait or are in flight. Events whose app is unknown do not count.
    public func countQueued(of app: String) async throws(QueueError) -> Int {
        var count = 0
        for name in Set(state.figures.lanes.map(\.name)) {
            count += try await inParts(of: name, nil) { transaction, rows, _ throws(QueueError) in
                var count = 0
                let table = HolderTable(transaction.file)
                for row in rows { count += try table.holders(of: row).count { $0 == app } }
                return count
            }.reduce(0, +)
        }
        return count
    }
}
