package import EventLoops
package import Model

package enum FetchResult: Sendable, Equatable {
    /// A document, whole, with the tag that the server gave it.
    case document([UInt8], etag: String?)
    /// The server's document still is the one of the tag (304).
    case notModified
    /// Another status: redirects are not followed. With the time after which the server wants to be asked again, if it says.
    case status(Int, retryAfter: Duration?)
    case tooLarge
    /// No answer came, or only a part of it.
    case failed(Failure)
}

/// Fetches one document repeatedly: over TLS, without redirects, bounded in size and time.
///
/// Lives on the loop that it is given; between fetches nothing runs, and the connection is left to time out.
package actor DocumentFetcher: LoopActor {
    package nonisolated let loop: EventLoop
    private let options: HTTPOptions
    private let largest: Int
    private let client: HTTPClient
    private var material: TLSMaterial
    private let time: any TimeSource

    /// Sets the fetcher up; reads `caFile` for the first time. Connects to nothing.
    ///
    /// - Parameters:
    ///   - url: `https://…`; plain `http://` only on loopback.
    ///   - caFile: the certificates that are trusted, in PEM; nil for the system's. Read again when the file changes.
    ///   - largest: the largest document, in bytes; a larger one is not taken.
    ///   - userAgent: how the agent names itself.
    ///   - connectTimeout: the longest wait for a connection.
    ///   - timeout: the longest time for all of it.
    /// - Throws: `OutputError`: a setting without meaning, a file that cannot be read.
    package init(
        _ url: String, caFile: String?, largest: Int, userAgent: String, connectTimeout: Duration = .seconds(10),
        timeout: Duration = .seconds(30), on loop: EventLoop, time: any TimeSource = SystemTime()
    ) throws(OutputError) {
        var options = HTTPOptions(url: url)
        options.userAgent = userAgent
        options.settings.tls.caFile = caFile
        options.settings.connectTimeout = connectTimeout
        options.settings.requestTimeout = timeout
        // Two fetches are hours apart: no connection is worth keeping.
        options.settings.maxConnectionAge = .seconds(60)
        try options.check()
        self.options = options
        self.largest = largest
        self.loop = loop
        self.time = time
        material = try TLSMaterial(options.settings.tls)
        client = try HTTPClient(on: loop, settings: TransferSettings(options: options, tls: material.contents))
    }

    /// Fetches the document, if it is another one than that of the tag; nil: there is none in hand.
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
        if let etag { headers.append("If-None-Match: \(etag)") }
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
                let message = "this is a web page: a login page, portal or proxy answers instead of the server"
                return .failed(Failure(kind: .status, message: message))
            }
            guard !answer.body.starts(with: [0x1F, 0x8B]) else {
                let message = "the answer is compressed (gzip), which was not asked for: serve the file as it is"
                return .failed(Failure(kind: .status, message: message))
            }
            return .document(answer.body, etag: answer.etag.flatMap { DocumentFetcher.usable($0) ? $0 : nil })
        }
    }

    private static func usable(_ etag: String) -> Bool {
        (1...256).contains(etag.utf8.count) && etag.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
    }
}
