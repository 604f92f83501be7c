/// A document made ready to be applied to events: compiled once for each version, immutable, shared by all threads.
public final class CompiledContainer: Sendable {
    /// What it was made of.
    public let document: ContainerDocument

    /// Compiles a document.
    ///
    /// - Parameter mayCall: the functions that the configuration lets it call; others give null.
    /// - Throws: `ContainerError` with code `expression` or `limit`.
    public init(_ document: ContainerDocument, mayCall: Set<String> = []) throws(ContainerError) {
        self.document = document
    }
}
