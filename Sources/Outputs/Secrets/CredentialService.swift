internal import EventLoops
internal import Model

/// A service that gives credentials, asked by small requests over its own connections.
struct CredentialService {
    private let client: HTTPClient
    private let name: String
    /// Its address, without a slash at the end.
    let url: String

    /// A service that is asked as a destination would be.
    ///
    /// - Parameter name: the service, for messages: `the token endpoint`.
    /// - Throws: `OutputError`: the address is none, or a certificate cannot be read.
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
        client = try HTTPClient(on: loop, settings: TransferSettings(options: options, tls: material.contents))
        self.name = name
        url = options.url.hasSuffix("/") ? String(options.url.dropLast()) : options.url
    }

    /// A service on the machine or its own link, which speaks plain HTTP, without a proxy; throws for a bad address.
    init(_ name: String, nearby url: String, on loop: EventLoop) throws(OutputError) {
        var options = HTTPOptions(url: url)
        options.heedsEnvironment = false
        options.settings.allowPlainHTTP = true
        options.settings.connectTimeout = .seconds(2)
        options.settings.requestTimeout = .seconds(5)
        try self.init(name, options, on: loop)
    }

    /// What it answers, as `read` takes it; nil from that is nonsense.
    ///
    /// - Parameters:
    ///   - what: what is asked for, for messages: `a session token`.
    ///   - path: what is added to the address.
    ///   - form: the fields of a form that is sent; without any the body is empty.
    ///   - words: finds in an answer what its error is called, if that is a known word: others may quote a secret.
    func ask<Value>(
        _ what: String, _ method: HTTPRequest.Method, _ path: String = "", _ headers: [String] = [],
        form: [(name: String, value: String)] = [], signature: AWSSignature? = nil,
        words: ([UInt8]) -> String? = { _ in nil }, read: ([UInt8]) -> Value?
    ) async throws(CredentialFailure) -> Value {
        let body = form.map { "\($0.name)=\($0.value.percentEncoded)" }.joined(separator: "&")
        let type = form.isEmpty ? [] : ["Content-Type: application/x-www-form-urlencoded"]
        let request = HTTPRequest(
            method: method, url: url + path, headers: headers + type, body: Array(body.utf8), answerLimit: 65_536,
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
            throw CredentialFailure(kind: .protocolViolation, "no credentials: the answer of \(name) is not \(what)")
        }
    }
}

struct CredentialFailure: Error {
    let failure: Failure
    /// How long the service wants to be left alone; nil where it does not say.
    private let wait: Duration?

    init(kind: Failure.Kind, status: Int? = nil, wait: Duration? = nil, _ message: String) {
        failure = Failure(kind: kind, status: status, message: message)
        self.wait = wait
    }

    /// What they would be asked for with cannot be read.
    init(_ error: OutputError) { self.init(kind: .local, "no credentials: \(error.message)") }

    /// What happens to the batch: a service that refuses needs a person, all else passes.
    var outcome: Outcome {
        [400, 401, 403].contains(failure.status)
            ? .held(failure) : wait.map { .retryAfter($0, failure) } ?? failure.outcome
    }
}

/// Adds to each request what shows that the agent may write. Belongs to one output.
protocol RequestAuthorizer: AnyObject {
    /// Adds it, and what tells it from others in `credential`. `checksum`: the body's SHA-256, where it is known.
    func authorize(
        _ request: inout HTTPRequest, checksum: [UInt8]?, _ time: any TimeSource
    ) async throws(CredentialFailure)
    func use(_ secret: Secret?)
    /// Lets go of what a service gave and a destination has refused; as `Temporary.renewRefused`.
    func renewRefused(_ request: HTTPRequest, isOver: Bool, at now: BootInstant) -> Bool
}
