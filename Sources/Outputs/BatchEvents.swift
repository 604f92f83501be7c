package import EventLoops
package import Model

/// Looks into the events of stored batches, for counting them by their time.
package final class BatchEvents {
    private let builder: BodyBuilder

    /// - Throws: `OutputError` with code `library` for want of memory.
    package init() throws(OutputError) { builder = try BodyBuilder(NDJSONEncoder(), .none) }

    /// How many events of a batch have a time before that instant, and are of one of those apps.
    ///
    /// The app is the one that the event itself names, which is its producer's unless it says otherwise.
    /// - Parameter apps: empty for all.
    /// - Returns: all of them when the batch cannot be read.
    package func count(in batch: Batch, before instant: Timestamp, apps: Set<String>) -> Int {
        do throws(OutputError) {
            return try EventView.all(try builder.lines(of: batch)).count { event in
                guard event.time ?? batch.header.acceptedAt < instant else { return false }
                return apps.isEmpty || event["app"]?.string.map { apps.contains($0) } ?? false
            }
        } catch {
            // What was sent could be read a moment ago; the destination has it, and too many late ones alarm nobody wrongly.
            return batch.header.events
        }
    }
}
