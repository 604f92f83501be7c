package import EventLoops
package import Model

/// The result of fetching a document.
package enum FetchResult: Sendable, Equatable {
    /// The whole document, with its entity tag if that can be sent back.
    case document([UInt8], etag: String?)
    /// The document is still the one of the tag that was sent (status 304).
    case notModified
    /// Another status; redirects are not followed. `retryAfter` is the wait that the server asks for, nil
    /// if it names none.
    case status(Int, retryAfter: Duration?)
    /// The document is larger than the limit.
    case tooLarge
    /// No complete document was received, or the answer cannot be the document.
    case failed(Failure)
}

/// Fetches one document again and again, such as a container: over TLS, without redirects, bounded in size
/// and time.
///
/// Runs on the loop passed to `init`. Nothing runs between fetches, and the connection is left to time out.
package actor DocumentFetcher: LoopActor {
    package nonisolated let loop: EventLoop
    private let options: HTTPOptions
    /// Largest document in bytes.
    private let largest: Int
    private let client: HTTPClient
    /// The authorities of `caFile`, read again when the file changes.
    private var material: TLSMaterial
    private let time: any TimeSource

    /// Sets the fetcher up, and reads `caFile` for the first time. Connects to nothing.
    ///
    /// - Parameters:
    ///   - url: `https://…`; plain `http://` only to this machine.
    ///   - caFile: authorities to trust, in PEM; nil for the system's. Read again when the file changes.
    ///   - largest: largest document in bytes; a larger one is reported as `tooLarge`.
    ///   - userAgent: value of `User-Agent`.
    ///   - connectTimeout: longest time to connect; 10 s by default.
    ///   - timeout: longest time for the whole request; 30 s by default.
    /// - Throws: `OutputError` if a setting has no meaning or a file cannot be read.
    package init(
        _ url: String, caFile: String?, largest: Int, userAgent: String,
        connectTimeout: Duration = .seconds(10),
        timeout: Duration = .seconds(30), on loop: EventLoop, time: any TimeSource = SystemTime()
    ) throws(OutputError) {
        var options = HTTPOptions(url: url)
        options.userAgent = userAgent
        options.settings.tls.caFile = caFile
        options.settings.connectTimeout = connectTimeout
        options.settings.requestTimeout = timeout
        // Fetches are usually hours apart: no connection is worth keeping.
        options.settings.maxConnectionAge = .seconds(60)
        try options.check()
        self.options = options
        self.largest = largest
        self.loop = loop
        self.time = time
        material = try TLSMaterial(options.settings.tls)
        client = try HTTPClient(
            on: loop, settings: TransferSettings(options: options, tls: material.contents))
    }

    /// Fetches the document unless it still is the one of the tag.
    ///
    /// - Parameter etag: entity tag of the document at hand (RFC 9110, section 13.1.2); nil to fetch it
    ///   anyway.
    package func fetch(etag: String?) async -> FetchResult {
        if material.hasChanged {
            do throws(OutputError) {
                try material.refresh()
                await client.use(TransferSettings(options: options, tls: material.contents))
            } catch {
                return .failed(error.failure)
            }
        }
        var headers = ["Accept: application/json, */*"]
        if let etag {
            headers.append("If-None-Match: \(etag)")
        }
        let request = HTTPRequest(method: .get, url: options.url, headers: headers, answerLimit: largest + 1)
        switch await client.perform(request) {
        case .failed(let failure), .noRoute(let failure): return .failed(failure)
        case .answered(let answer):
            guard answer.status != 304 else { return .notModified }
            guard answer.status == 200 else {
                return .status(answer.status, retryAfter: answer.wait(at: time.wallTime))
            }
            guard answer.body.count <= largest else { return .tooLarge }
            guard answer.extent == .whole else {
                let message = "the document broke off, or took too long; it will be fetched again"
                return .failed(Failure(kind: .connection, message: message))
            }
            guard !AnswerReader.isWebPage(answer.body) else {
                let message =
                    "this is a web page: a login page, portal or proxy answers instead of the server"
                return .failed(Failure(kind: .status, message: message))
            }
            guard !answer.body.starts(with: [0x1F, 0x8B]) else {
                let message =
                    "the answer is compressed (gzip), which was not asked for: serve the file as it is"
                return .failed(Failure(kind: .status, message: message))
            }
            return .document(answer.body, etag: answer.etag.flatMap { DocumentFetcher.usable($0) ? $0 : nil })
        }
    }

    /// Whether a tag can be sent back in a header: at most 256 bytes of printable ASCII.
    private static func usable(_ etag: String) -> Bool {
        (1...256).contains(etag.utf8.count) && etag.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
    }
}
