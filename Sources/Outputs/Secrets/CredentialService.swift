internal import EventLoops
internal import Model

/// A service that issues credentials for a limited time (AWS metadata and token services, OAuth 2 token
/// endpoints), asked over connections of its own.
struct CredentialService {
    /// The service's own client: certificates and timeouts differ from the destination's.
    private let client: HTTPClient
    /// The service as it is called in messages: `the token endpoint`.
    private let name: String
    /// Address without a trailing slash, so that paths can be appended.
    let url: String

    /// A service that is reached like a destination: with TLS, a proxy and its own authorities.
    ///
    /// Timeouts are at most 5 s for the connection and 10 s for the request, because batches wait for the
    /// credential.
    /// - Parameter name: the service, for messages: `the token endpoint`.
    /// - Throws: `OutputError` if the address is not valid or a certificate cannot be read.
    init(_ name: String, _ options: HTTPOptions, on loop: EventLoop) throws(OutputError) {
        var options = options
        options.settings.connectTimeout = min(options.settings.connectTimeout, .seconds(5))
        options.settings.requestTimeout = min(options.settings.requestTimeout, .seconds(10))
        options.settings.maxConnectionAge = .seconds(10)
        let material: TLSMaterial
        do throws(OutputError) {
            try options.check()
            material = try TLSMaterial(options.settings.tls)
        } catch {
            throw OutputError(error.code, "\(name): \(error.message)")
        }
        client = try HTTPClient(
            on: loop, settings: TransferSettings(options: options, tls: material.contents))
        self.name = name
        url = options.url.hasSuffix("/") ? String(options.url.dropLast()) : options.url
    }

    /// A service on this machine or its link (a metadata address), which speaks plain HTTP and is never
    /// asked through a proxy; a proxy would answer for another machine.
    ///
    /// - Throws: `OutputError` if the address is not valid.
    init(_ name: String, nearby url: String, on loop: EventLoop) throws(OutputError) {
        var options = HTTPOptions(url: url)
        options.heedsEnvironment = false
        options.settings.allowPlainHTTP = true
        options.settings.connectTimeout = .seconds(2)
        options.settings.requestTimeout = .seconds(5)
        try self.init(name, options, on: loop)
    }

    /// Makes one request and reads its answer.
    ///
    /// - Parameters:
    ///   - what: what is asked for, for messages: `a session token`.
    ///   - path: appended to the address.
    ///   - form: fields of a form to send; empty for an empty body.
    ///   - words: finds the name of the error in an answer, if it is a known name: other text may quote a
    ///     secret.
    ///   - read: reads the credential from the body; nil if the body makes no sense.
    /// - Throws: `CredentialFailure` for every answer but a complete 200 that `read` understands.
    func ask<Value>(
        _ what: String, _ method: HTTPRequest.Method, _ path: String = "", _ headers: [String] = [],
        form: [(name: String, value: String)] = [], signature: AWSSignature? = nil,
        words: ([UInt8]) -> String? = { _ in nil }, read: ([UInt8]) -> Value?
    ) async throws(CredentialFailure) -> Value {
        let body = form.map { "\($0.name)=\($0.value.percentEncoded)" }.joined(separator: "&")
        let type = form.isEmpty ? [] : ["Content-Type: application/x-www-form-urlencoded"]
        let request = HTTPRequest(
            method: method, url: url + path, headers: headers + type, body: Array(body.utf8),
            answerLimit: 65_536,
            signature: signature)
        switch await client.perform(request) {
        case .failed(let failure), .noRoute(let failure):
            throw CredentialFailure(
                kind: failure.kind, "no credentials: cannot ask \(name) for \(what): \(failure.message)")
        case .answered(let answer):
            guard answer.status == 200, answer.extent == .whole else {
                let word = words(answer.body).map { " \($0)" } ?? ""
                throw CredentialFailure(
                    kind: .status, status: answer.status, wait: answer.wait(at: SystemTime().wallTime),
                    "no credentials: \(name) answered \(answer.status)\(word) when asked for \(what)")
            }
            if let value = read(answer.body) { return value }
            throw CredentialFailure(
                kind: .protocolViolation, "no credentials: the answer of \(name) is not \(what)")
        }
    }
}

/// Why there is no credential, so that a batch could not be sent.
struct CredentialFailure: Error {
    /// The failure to report for the batch.
    let failure: Failure
    /// Time to wait before the next request, from the service's `Retry-After`; nil if it names none.
    private let wait: Duration?

    init(kind: Failure.Kind, status: Int? = nil, wait: Duration? = nil, _ message: String) {
        failure = Failure(kind: kind, status: status, message: message)
        self.wait = wait
    }

    /// A credential is missing because a file of the settings, such as a key, cannot be read.
    init(_ error: OutputError) { self.init(kind: .local, "no credentials: \(error.message)") }

    /// The outcome of the batch: 400, 401 and 403 mean that the service refuses this agent, which only a
    /// person can change; anything else is retried.
    var outcome: Outcome {
        [400, 401, 403].contains(failure.status)
            ? .held(failure) : wait.map { .retryAfter($0, failure) } ?? failure.outcome
    }
}

/// Adds to each request the proof that the agent may write, if the proof must be fetched or computed.
/// Belongs to one output.
protocol RequestAuthorizer: AnyObject {
    /// Adds the proof to a request, and the number of the credential used to `credential`, so that a
    /// refusal can be matched with it.
    ///
    /// - Parameter checksum: SHA-256 of the body if the caller has computed it; saves a second pass.
    func authorize(
        _ request: inout HTTPRequest, checksum: [UInt8]?, _ time: any TimeSource
    ) async throws(CredentialFailure)
    /// Uses another secret from now on; credentials that were issued for the old one are dropped.
    ///
    /// - Throws: `OutputError` if it is not such a secret; the old one stays in use.
    func use(_ secret: Secret?) throws(OutputError)
    /// Drops the credential that a request carried and the destination refused; see
    /// `Temporary.renewRefused`.
    func renewRefused(_ request: HTTPRequest, isOver: Bool, at now: BootInstant) -> Bool
    /// Has an issued credential replaced, however young it is: a person says that its refusal has been
    /// repaired. Without an answer of the service it is used further.
    func dropIssued()
}
