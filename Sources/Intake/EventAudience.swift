package import Model

/// Sees events as they are queued. Called from the reader's loop; `isWatched` may change on any thread.
package protocol EventAudience: AnyObject, Sendable {
    /// Whether anybody watches. Asked before anything is prepared for `offer`, so that events cost nothing
    /// more without watchers.
    var isWatched: Bool { get }

    /// Shows an event as it is queued, with or without its line feed; the bytes are valid during the call.
    func offer(app: String, priority: Priority, line: UnsafeRawBufferPointer)
}
