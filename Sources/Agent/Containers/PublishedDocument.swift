internal import EventLoops
internal import Model
internal import Outputs
internal import Synchronization

/// The document now published at an address, fetched as an agent fetches it: for commands, which have no loop.
public struct PublishedDocument: Sendable {
    /// Why there is none.
    public struct Failure: Error {
        /// What went wrong.
        public let message: String
    }

    /// The bytes that are served, signatures and all.
    public let bytes: [UInt8]

    /// Fetches it. Blocks, for half a minute at most.
    ///
    /// - Parameters:
    ///   - url: `https://…`; plain `http://` only on loopback.
    ///   - caFile: the certificates that are trusted; nil for the system's.
    ///   - largest: the largest file that is taken, in bytes.
    ///   - userAgent: how the fetch names itself.
    public init(at url: String, caFile: String?, largest: Int, userAgent: String) throws(Failure) {
        var options = FetchOptions(url: url)
        options.caFile = caFile
        options.largest = largest
        options.userAgent = userAgent
        let result = try PublishedDocument.fetch(options)
        switch result {
        case .document(let file, _): bytes = file
        case .status(404, _), .status(410, _):
            throw Failure(message: "nothing is published there; for the first publication leave --after out")
        case .status(let status, _): throw Failure(message: "the server answered \(status)")
        case .notModified: throw Failure(message: "the server answered 304")
        case .tooLarge: throw Failure(message: "it is larger than \(largest) bytes")
        case .failed(let failure): throw Failure(message: failure.message)
        }
    }

    private static func fetch(_ options: FetchOptions) throws(Failure) -> FetchResult {
        let box = Box()
        do {
            let loop = try EventLoop(name: "fetch")
            let fetcher = try DocumentFetcher(options, on: loop)
            Task(executorPreference: loop) {
                let result = await fetcher.fetch(etag: nil)
                box.answer.withLock { $0 = result }
                loop.stop()
            }
            loop.run()
        } catch {
            throw Failure(message: "\(error)")
        }
        guard let result = box.answer.withLock({ $0 }) else { throw Failure(message: "it was interrupted") }
        return result
    }

    /// Shared by the caller and the loop's task.
    private final class Box: Sendable {
        let answer = Mutex<FetchResult?>(nil)
    }
}
