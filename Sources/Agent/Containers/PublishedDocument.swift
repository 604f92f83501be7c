public import EventLoops
internal import Model
internal import Outputs

/// Fetches the document that is published at an address, as an agent does: for commands, which have no loop.
public enum PublishedDocument {
    /// Fetches the file as it is served, with its signatures. Blocks for half a minute at most.
    ///
    /// - Parameters:
    ///   - url: an `https://` address; `http://` on loopback only.
    ///   - caFile: the certificates to trust; nil for those of the system.
    ///   - largest: the most bytes to accept.
    /// - Throws: `AgentError` with code `io`.
    public static func fetch(
        from url: String, caFile: String?, largest: Int, userAgent: String
    ) throws(AgentError) -> [UInt8] {
        let failed = { (reason: String) in AgentError(.io, reason) }
        let result = try EventLoop.runProgram(name: "fetch", failure: { failed("\($0)") }) {
            loop throws(AgentError) in
            let fetcher = try relaying(
                try DocumentFetcher(url, caFile: caFile, largest: largest, userAgent: userAgent, on: loop)
            ) { (error: OutputError) in AgentError(.io, error.message) }
            return await fetcher.fetch(etag: nil)
        }
        switch result {
        case .document(let file, _): return file
        case .status(404, _), .status(410, _):
            throw failed("nothing is published there; leave out --after for the first publication")
        case .status(let status, _): throw failed("the server answered \(status)")
        case .notModified: throw failed("the server answered 304")
        case .tooLarge: throw failed("it is larger than \(largest) bytes")
        case .failed(let failure): throw failed(failure.message)
        }
    }
}
