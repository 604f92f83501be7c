package import EventLoops
package import Model

/// Reads the events of a batch that was just acknowledged, to count those that came after a deadline (see
/// `DeliveryEffect.countLate`).
package final class BatchEvents {
    /// Unpacks a batch's frames; its encoder is never used.
    private let builder: BodyBuilder

    /// - Throws: `OutputError` with code `library` if there is no memory.
    package init() throws(OutputError) { builder = try BodyBuilder(NDJSONEncoder(), .none) }

    /// Number of events of a batch whose time is before `instant` and whose app is in `apps`.
    ///
    /// The app is the event's own member `app`, not the app that the queue noted for the event. An event
    /// without a time counts at the time at which its batch was accepted.
    /// - Parameter apps: names of apps; empty for all.
    /// - Returns: the number of all events if the batch cannot be read.
    package func count(in batch: Batch, before instant: Timestamp, apps: Set<String>) -> Int {
        do throws(OutputError) {
            return try EventView.all(try builder.lines(of: batch)).count { event in
                guard event.time ?? batch.header.acceptedAt < instant else { return false }
                return apps.isEmpty || event["app"]?.string.map { apps.contains($0) } ?? false
            }
        } catch {
            // The batch was readable when it was sent a moment ago, so this is rare. Too many late events
            // alarm nobody wrongly; too few would hide a real delay.
            return batch.header.events
        }
    }
}
