/// What a receiver has seen since it was started.
package struct ReceiverStats: Sendable, Equatable {
    /// Requests with a body, however they ended.
    package var requests = 0
    /// Batches taken, each `Idempotency-Key` once.
    package var batches = 0
    package var events = 0
    /// The size of their bodies as they came over the wire, in bytes.
    package var wireBytes = 0
    /// The size of their bodies unpacked, in bytes.
    package var bytes = 0
    /// Requests whose key had been taken before: answered 200 and not taken again.
    package var repeats = 0
    /// Batches taken that had no key.
    package var withoutKey = 0
    /// Bodies that could not be unpacked or read as events.
    package var unreadable = 0
    /// Connections cut on purpose.
    package var cuts = 0
    package var answers: [Int: Int] = [:]

    package var json: String {
        let statuses = answers.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
        return """
            {"requests":\(requests),"batches":\(batches),"events":\(events),"repeats":\(repeats),\
            "without_key":\(withoutKey),"unreadable":\(unreadable),"cuts":\(cuts),"wire_bytes":\(wireBytes),\
            "bytes":\(bytes),"answers":{\(statuses)}}

            """
    }
}
