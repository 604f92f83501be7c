internal import Model

/// Why lines from outside the spool were refused: pieces of old files, and quarantined lines.
package struct IntakeError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of the refusal. `later` and `full` can be retried.
    package enum Code: String, Sendable, CaseIterable {
        /// Collection is off.
        case disabled
        /// No destination wants the events of the app.
        case noDestination = "no_destination"
        /// The file was read up to another place than the one at which the piece begins.
        case elsewhere
        /// Other events go first, or the queue has no room for the moment.
        case later
        /// The agent stops.
        case stopping
        /// The piece does not fit the queue at all.
        case tooLarge = "too_large"
        /// The queue has no room, or the events wait for a document.
        case full
        /// The store, or a file, failed; `word` says how.
        case store
    }

    package let code: Code
    /// The kind in one word, for programs: the store's own word if the store failed, otherwise the code.
    package let word: String
    /// One line for a person: what is wrong and what to do. Never content of events.
    package let message: String

    package init(_ code: Code, _ message: String, word: String? = nil) {
        self.code = code
        self.word = word ?? code.rawValue
        self.message = message
    }

    /// The message.
    package var description: String { message }

    /// The refusal for a commit that the store could not take.
    init(storing failure: any Error) {
        let known = failure as? any StoreFailure
        self.init(.store, known?.message ?? "cannot store: \(failure)", word: known?.word)
    }
}
