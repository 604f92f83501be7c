internal import EventLoops
internal import Model
internal import Outputs

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
        let result: Result<FetchResult, OutputError>
        do throws(SystemError) {
            result = try EventLoop.runProgram(name: "fetch") { loop in
                do throws(OutputError) {
                    let fetcher = try DocumentFetcher(
                        url, caFile: caFile, largest: largest, userAgent: userAgent, on: loop)
                    return .success(await fetcher.fetch(etag: nil))
                } catch {
                    return .failure(error)
                }
            }
        } catch {
            throw Failure(message: "\(error)")
        }
        switch result {
        case .failure(let error): throw Failure(message: error.message)
        case .success(.document(let file, _)): bytes = file
        case .success(.status(404, _)), .success(.status(410, _)):
            throw Failure(message: "nothing is published there; for the first publication leave --after out")
        case .success(.status(let status, _)): throw Failure(message: "the server answered \(status)")
        case .success(.notModified): throw Failure(message: "the server answered 304")
        case .success(.tooLarge): throw Failure(message: "it is larger than \(largest) bytes")
        case .success(.failed(let failure)): throw Failure(message: failure.message)
        }
    }
}
