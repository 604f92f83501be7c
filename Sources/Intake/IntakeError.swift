internal import Model

/// Why input from outside the spool was refused.
package struct IntakeError: Error, Sendable, Equatable {
    package enum Code: String, Sendable, CaseIterable {
        case disabled
        case noDestination = "no_destination"
        /// The file has been taken to another place than the one where the piece begins.
        case elsewhere
        /// Other events go first: to be tried again.
        case later
        case stopping
        case tooLarge = "too_large"
        case full
        /// The store failed: `word` says how.
        case store
    }

    package let code: Code
    /// The kind in one word, for programs: the store's own word where it was the store that failed.
    package let word: String
    /// One line for a person: what is wrong and what to do. Never event content.
    package let message: String

    package init(_ code: Code, _ message: String, word: String? = nil) {
        self.code = code
        self.word = word ?? code.rawValue
        self.message = message
    }

    init(storing failure: any Error) {
        let known = failure as? any StoreFailure
        self.init(.store, known?.message ?? "cannot store: \(failure)", word: known?.word)
    }
}
