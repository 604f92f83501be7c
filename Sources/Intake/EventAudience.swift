package import Model

/// Sees events as they pass. From any thread.
package protocol EventAudience: AnyObject, Sendable {
    /// Whether anybody watches: asked before anything is prepared for `offer`.
    var isWatched: Bool { get }

    /// Shows an event as it is queued, with or without its line feed.
    func offer(app: String, priority: Priority, line: UnsafeRawBufferPointer)
}
