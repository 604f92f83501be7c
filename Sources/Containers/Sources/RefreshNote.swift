/// What a refresh is of (tm07).
package enum RefreshType: String, Sendable, CaseIterable {
    case saved
    case network
}

/// How a refresh ended (tm07). Closed, because it is a metric label.
public enum RefreshResult: String, Sendable, CaseIterable {
    /// A document was taken, or the one in force is still the newest.
    case success
    case noSavedContainer = "no_saved_container"
    case ioError = "io_error"
    /// No route leads there, or the network was switched off.
    case noNetwork = "no_network"
    /// No answer: name, connection, TLS, time.
    case networkError = "network_error"
    /// The answer was neither 200 nor 304.
    case serverError = "server_error"
    case unknownError = "unknown_error"
    /// The document was refused: unsigned, or badly signed.
    case signature
    /// The document was refused: older than the saved one.
    case version
    /// The document was refused: no container, or another one.
    case form
    /// The document was refused: its time is over.
    case expired

    /// The result of a document that was refused.
    public init(_ code: ContainerError.Code) {
        self =
            switch code {
            case .signature: .signature
            case .version: .version
            case .expired: .expired
            case .file: .ioError
            case .notJSON, .form, .limit, .expression, .id: .form
            }
    }
}

/// What happens in the life of a container, for the log, counters and `container watch`.
package enum ContainerNote: Sendable, Equatable {
    case began(RefreshType)
    /// A refresh ended well; `isNew` if it returned another document.
    case succeeded(RefreshType, version: Int, isNew: Bool)
    /// A refresh ended badly; what is in force stays.
    case failed(RefreshType, RefreshResult, message: String)
    /// The container is open, with this document; version nil without any.
    case opened(ContainerSource, version: Int?)
    /// Another document came into force after the opening.
    case tookOver(ContainerSource, version: Int?)
    case previewBegan(version: Int)
    /// The draft's time is over: by command, or by time.
    case previewEnded(byTime: Bool)
    /// The document in force has reached its expiry date.
    case expired(version: Int)
    /// This version is published for a share of the machines that this one is not in; what is in force stays.
    case heldBack(version: Int)
}
