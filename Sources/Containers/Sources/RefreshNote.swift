/// What a refresh reads: the saved copy, or the network.
package enum RefreshType: String, Sendable, CaseIterable {
    case saved
    case network
}

/// How a refresh ended. Closed, because it is the label of a metric.
public enum RefreshResult: String, Sendable, CaseIterable {
    /// A document was accepted, or the one in force is still the newest.
    case success
    /// No copy was saved.
    case noSavedContainer = "no_saved_container"
    /// The saved copy cannot be read or written.
    case ioError = "io_error"
    /// No route leads to the server, or the network was switched off.
    case noNetwork = "no_network"
    /// No answer: the name was not found, the connection or TLS failed, or the time ran out.
    case networkError = "network_error"
    /// The response was neither 200 nor 304.
    case serverError = "server_error"
    /// Something else.
    case unknownError = "unknown_error"
    /// The document was refused because it is not signed, or not by a trusted key.
    case signature
    /// The document was refused because it is older than the saved one.
    case version
    /// The document was refused because it is not valid, or is another container's.
    case form
    /// The document was refused because it has expired.
    case expired

    /// The result for a document that was refused.
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

/// What happens to a container, for the log, metrics and `container watch`.
package enum ContainerNote: Sendable, Equatable {
    /// A refresh began.
    case began(RefreshType)
    /// A refresh succeeded; `isNew` if it brought another document.
    case succeeded(RefreshType, version: Int, isNew: Bool)
    /// A refresh failed; the message says why.
    case failed(RefreshType, RefreshResult, message: String)
    /// Opening ended with this document; the version is nil without a document.
    case opened(ContainerSource, version: Int?)
    /// Another document is in force, after opening.
    case tookOver(ContainerSource, version: Int?)
    /// A draft is in force.
    case previewBegan(version: Int)
    /// The draft's time is over, or a command ended it.
    case previewEnded(byTime: Bool)
    /// The document in force has expired.
    case expired(version: Int)
    /// A published version rolls out to machines before this one; the document in force stays.
    case heldBack(version: Int)
}
