/// What a receiver has seen since its start.
package struct ReceiverStats: Sendable, Equatable {
    /// Requests with a body, however they ended.
    package var requests = 0
    /// Batches that were accepted, each `Idempotency-Key` once.
    package var batches = 0
    /// Events in accepted batches.
    package var events = 0
    /// Bytes of accepted bodies as they came over the wire.
    package var wireBytes = 0
    /// Bytes of accepted bodies after unpacking.
    package var bytes = 0
    /// Requests with a key that was accepted before: answered with 200, neither counted nor stored.
    package var repeats = 0
    /// Accepted batches without a key.
    package var withoutKey = 0
    /// Bodies that could not be unpacked, or contained no events.
    package var unreadable = 0
    /// Connections that were cut on purpose.
    package var cuts = 0
    /// Answers to batches by status. Without refusals by the server itself: 408, and 413 for a body of
    /// unknown length or without room beside the others.
    package var answers: [Int: Int] = [:]

    /// The figures as JSON, as `GET /stats` returns them.
    package var json: String {
        let statuses = answers.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(
            separator: ",")
        return """
            {"requests":\(requests),"batches":\(batches),"events":\(events),"repeats":\(repeats),\
            "without_key":\(withoutKey),"unreadable":\(unreadable),"cuts":\(cuts),"wire_bytes":\(wireBytes),\
            "bytes":\(bytes),"answers":{\(statuses)}}

            """
    }
}
