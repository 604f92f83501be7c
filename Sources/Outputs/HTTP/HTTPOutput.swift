internal import Digests
package import EventLoops
package import Logs
package import Model

/// Sends batches to one HTTP destination, one request for each batch, or several if the format limits
/// requests or the address depends on the event.
///
/// `Idempotency-Key` (https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/) is the
/// batch's id: the same at every attempt, across retries, restarts and crashes, so that a receiver can drop a
/// repeat. Certificates and secrets are read again when their files change: the files are checked at most
/// once a second, when something is sent or the delivery asks. If a changed file cannot be used, the last
/// good content stays in force and a warning is logged. Runs on the loop passed to `init`.
package actor HTTPOutput: MeasuredOutput {
    package var measures = OutputMeasures()

    package nonisolated let loop: EventLoop
    /// The destination's settings, as requests need them.
    let options: HTTPOptions
    /// The clocks, for expiry of credentials and the limit of a confirmation.
    private let time: any TimeSource
    /// The format of the bodies.
    private let encoder: any BatchEncoder
    /// The format again, if it limits what one request may hold; otherwise nil.
    private let piecewise: (any PiecewiseEncoder)?
    /// Decides what an answer means.
    private let reader: AnswerReader
    /// Makes the bodies, compressed as the destination wants.
    private let builder: BodyBuilder
    /// The client with the destination's connections.
    let client: HTTPClient
    /// Lines of the head that are the same for all requests.
    private let staticHeaders: [String]
    /// Placeholders of events in the address and the headers; nil without any.
    private nonisolated let filling: RequestTemplates?
    /// Certificates and secret, read again when their files change.
    private var files: FollowedFiles
    /// The secret as a header or an argument; nil if an authorizer adds it.
    private var credential: Credential?
    /// Adds a proof that must be fetched or computed (OAuth 2, AWS); nil for constant headers.
    private let authorizer: (any RequestAuthorizer)?
    package nonisolated let firstCertificates: OutputCertificates?
    package nonisolated var templates: EventTemplates? { encoder.templates }
    package nonisolated var asksWhose: Bool {
        encoder.traits.namesOwners || [templates, requestTemplates].contains { $0?.areOfEvents == true }
    }
    package nonisolated var requestTemplates: EventTemplates? { filling?.templates }
    package nonisolated let followsFiles: Bool
    /// Waiting calls of `pause`, by id.
    private var pauses: [UInt64: CheckedContinuation<Void, Never>] = [:]
    /// Id of the latest pause.
    private var lastPause: UInt64 = 0

    /// Sets up a destination, and reads its certificates and secrets for the first time. Connects to
    /// nothing.
    ///
    /// - Parameter installID: the name of this agent's sessions in AWS's logs.
    /// - Throws: `OutputError` if a setting has no meaning or a file cannot be read.
    package init(
        _ name: DestinationName, _ options: HTTPOptions, format: any BatchEncoder, installID: String? = nil,
        on loop: EventLoop, log: Log, time: any TimeSource
    ) throws(OutputError) {
        try options.check()
        self.loop = loop
        self.options = options
        self.time = time
        encoder = format
        piecewise = format as? any PiecewiseEncoder
        reader = AnswerReader(
            table: AnswerTable(options.http.outcomes), encoder: format, accepted: options.http.accept)
        builder = try BodyBuilder(format, options.settings.compression)
        let files = try FollowedFiles(
            name, options.settings.tls, secret: options.settings.login?.secret,
            hasLines: options.settings.loginHasLines, log: log, at: time.bootTime)
        self.files = files
        firstCertificates = files.certificates
        measures.certificates = files.certificates
        credential = try options.credential(files.secret, in: format.traits.tokenPlace)
        let authorizer = try options.authorizer(installID: installID, on: loop)
        self.authorizer = authorizer
        if let secret = files.secret {
            try authorizer?.use(secret)
        }
        client = try HTTPClient(on: loop, settings: TransferSettings(options: options, tls: files.tls))
        followsFiles = files.areAny
        staticHeaders = options.staticHeaders(format)
        filling = try RequestTemplates(options, options.settings.templateScope(log: log, time: time))
    }

    /// Sends a batch, and counts the values that its format left out once the batch is acknowledged.
    package func send(_ batch: Batch) async -> Outcome {
        // An `await` changes executors before and after the call even within one loop. Therefore an
        // ordinary attempt has only one, that of the request.
        if lookAtFiles().hasCertificates {
            await useCertificates()
        }
        do throws(OutputError) {
            let outcome: Outcome
            if piecewise != nil || filling != nil {
                outcome = try await sendInPieces(batch)
            } else {
                let body = try builder.body(of: batch)
                outcome = try await send(body, of: batch, to: target, key: "\(batch.header.id)", reader)
            }
            if encoder.traits.mayLeaveOut, outcome == .acknowledged {
                measures.leftOutValues += try encoder.leftOut(try builder.lines(of: batch))
            }
            return outcome
        } catch {
            return error.failure.outcome
        }
    }

    /// Reads changed files again; true if the next attempt uses anything new, so that a held destination
    /// may be tried.
    package func hasNewCredentials() async -> Bool {
        let changes = lookAtFiles()
        if changes.hasCertificates {
            await useCertificates()
        }
        return changes.areAny
    }

    /// Drops credentials that a service has issued, so that the next attempt asks the service again.
    /// Otherwise a refused token is used again within the first minute after it was issued.
    package func dropIssuedCredentials() async { authorizer?.dropIssued() }

    /// Sends a batch as several requests, one after the other, until one fails.
    ///
    /// If the first request fails and nothing was rejected, the batch has the outcome of that request, and
    /// the next attempt sends the same requests. Otherwise the remaining events are returned for a retry.
    private func sendInPieces(_ batch: Batch) async throws(OutputError) -> Outcome {
        let lines = try builder.lines(of: batch)
        // Events that the format would refuse in any case, such as too old ones, are not sent. Their age is
        // only judged if the clock is trusted: a wrong clock would reject good events for good.
        var rejected =
            batch.isClockTrusted
            ? try piecewise?.refusals(lines, of: batch.header, at: time.wallTime) ?? [] : []
        let refused = Set(rejected.map(\.index))
        let whole = [Array(0..<batch.header.events)]
        let bounded = try (piecewise?.requests(lines) ?? whole).map { $0.filter { !refused.contains($0) } }
        let targets =
            try filling?.targets(for: batch.header) { () throws(OutputError) in try EventView.all(lines) }
            ?? [(target, whole[0])]
        let requests = bounded.flatMap { events in
            targets.map { target in
                let own = Set(target.events)
                return (target: target.target, events: events.filter(own.contains))
            }
        }.filter { !$0.events.isEmpty }
        var retry: [Int] = []
        let pieces = try builder.pieces(requests.map(\.events), of: batch, lines)
        for (number, ((target, events), piece)) in zip(requests, pieces).enumerated() {
            // The key depends on the events only: equal events of a batch have an equal key at every
            // attempt.
            let key =
                events.count == batch.header.events
                ? "\(batch.header.id)" : "\(batch.header.id)-\(HTTPOutput.name(of: events))"
            switch try await send(try builder.body(of: piece), of: piece, to: target, key: key, reader) {
            case .acknowledged, .acknowledgedWithLoss:
                continue
            case .partial(let some, let again):
                rejected += some.map {
                    RejectedEvent(index: events[$0.index], failure: $0.failure, isFinal: $0.isFinal)
                }
                retry += again.map { events[$0] }
            case let outcome:
                // No other request was made, so this one's outcome is the batch's: the next attempt repeats
                // the batch under the same ids.
                if number == 0, rejected.isEmpty { return outcome }
                retry += requests[number...].flatMap(\.events)
                return .partial(rejected: rejected, retry: retry.sorted())
            }
        }
        return rejected.isEmpty && retry.isEmpty
            ? .acknowledged
            : .partial(rejected: rejected.sorted { $0.index < $1.index }, retry: retry.sorted())
    }

    /// A short name for a selection of events of a batch, unique within the batch: a range, or a range with
    /// a hash if events between are missing.
    private static func name(of events: [Int]) -> String {
        guard let first = events.first, let last = events.last else { return "0" }
        guard last - first + 1 == events.count else {
            let places = events.map { String($0) }.joined(separator: ",")
            return "\(first)-\(last)-\(SHA256.hexadecimal(Array(places.utf8)).prefix(16))"
        }
        return "\(first)-\(last)"
    }

    /// Sends a batch, or a piece of one, as one request; repeats it once if the answer asks for another
    /// encoding.
    private func send(
        _ body: [UInt8], of batch: Batch, to place: RequestTarget, key: String, _ reader: AnswerReader
    ) async throws(OutputError) -> Outcome {
        let target = place.named(key)
        var request = request(body, of: batch, to: target, key: key)
        request.timeFactor = batch.timeFactor
        if authorizer != nil, let failure = await authorize(&request) { return failure.outcome }
        let result = await client.perform(request)
        // An answer whose meaning the settings define is not a request for another encoding.
        if case .answered(let answer) = result, reader.table.override(of: answer.status) == nil,
            let other = reader.encoder.alternative(afterAnswer: answer)
        {
            let body = try BodyBuilder(other, options.settings.compression).body(of: batch)
            return try await send(
                body, of: batch, to: place, key: "\(key)-late",
                AnswerReader(table: reader.table, encoder: other, accepted: options.http.accept))
        }
        return await judge(result, of: request, to: target, reader, of: batch)
    }

    /// Adds the fetched or computed proof to a request; returns the failure if it cannot be obtained.
    private func authorize(_ request: inout HTTPRequest) async -> CredentialFailure? {
        do throws(CredentialFailure) {
            try await authorizer?.authorize(&request, checksum: nil, time)
            return nil
        } catch {
            return error
        }
    }

    /// The target of all requests if no placeholders depend on events.
    private var target: RequestTarget { RequestTarget(url: options.url, headers: []) }

    /// The request for a body.
    private func request(
        _ body: [UInt8], of batch: Batch, to target: RequestTarget, key: String
    ) -> HTTPRequest {
        var headers = staticHeaders + target.headers
        headers.append("Idempotency-Key: \(key)")
        headers.append("X-Spoolship-Events: \(batch.header.events)")
        if case .header(let line) = credential {
            headers.append(line)
        }
        measures.sentBytes += body.count
        var isPut = false
        if case .template(let body) = options.http.format {
            isPut = body.method == .put
        }
        return HTTPRequest(
            method: isPut ? .put : .post, url: address(target.url, for: key), headers: headers, body: body,
            answerLimit: encoder.traits.answerLimit(events: batch.header.events))
    }

    /// The outcome of a request. For formats whose answer only promises to store the events, the
    /// destination is asked until it confirms them.
    private func judge(
        _ result: HTTPResult, of request: HTTPRequest, to target: RequestTarget, _ reader: AnswerReader,
        of batch: Batch
    ) async -> Outcome {
        if let expiry = client.serverExpiry {
            measures.certificates.serverExpiry = expiry
        }
        switch result {
        case .noRoute: return .offline
        case .failed(let failure): return failure.outcome
        case .answered(var answer):
            note(answer, hiding: request.secrets + (files.secret.map { [$0.revealed] } ?? []))
            if !(200...299).contains(answer.status) || AnswerReader.isWebPage(answer.body) {
                answer.secrets = request.secrets + (files.secret.map { [$0.revealed] } ?? [])
            }
            let outcome = reader.outcome(
                of: answer, for: batch.header, wireBytes: request.body.count, now: time.wallTime
            ) {
                () throws(OutputError) in try builder.lines(of: batch)
            }
            note(repeats: batch.mayHaveBeenSent ? [] : encoder.repeats(inAnswer: answer), of: batch)
            // The token may have been revoked before its end: try once with a new one, before the destination
            // is held for wrong credentials.
            if case .held(let failure) = outcome, answer.status == 401 || answer.status == 403,
                authorizer?.renewRefused(request, isOver: false, at: time.bootTime) == true
            {
                return .retry(failure)
            }
            guard outcome == .acknowledged,
                let question = encoder.confirmation(ofAnswer: answer, url: target.url)
            else { return outcome }
            return await confirm(question, target)
        }
    }

    /// The address of a request with the arguments of the format, the credential and the batch's id.
    private func address(_ url: String, for key: String) -> String {
        var arguments = [encoder.traits.arguments]
        if case .argument(let argument) = credential {
            arguments.append(argument)
        }
        if let name = options.http.batchIDParameter {
            arguments.append("\(name)=\(key)")
        }
        return HTTPAddress.adding(arguments, to: url)
    }

    /// Asks until the destination confirms that it has the batch, at most for `request_timeout`; the waits
    /// grow from 250 ms to 5 s. Without an answer in time the batch is retried, and the receiver may store
    /// it twice.
    private func confirm(_ question: Confirmation, _ target: RequestTarget) async -> Outcome {
        let deadline = time.bootTime + options.settings.requestTimeout
        var wait = Duration.milliseconds(250)
        let headers = questionHeaders + target.headers
        while time.bootTime < deadline, await pause(wait) {
            var request = HTTPRequest(
                url: asking(question.url), headers: headers, body: question.body,
                answerLimit: encoder.traits.answerLimit(events: 1))
            if let failure = await authorize(&request) { return failure.outcome }
            if case .answered(let answer) = await client.perform(request),
                (200...299).contains(answer.status),
                question.isGiven(answer)
            {
                return .acknowledged
            }
            wait = min(wait * 2, .seconds(5))
        }
        return .retry(
            Failure(
                kind: .timeout, message: "the destination accepted the batch and did not confirm it in time"))
    }

    /// The head of a question about a batch: without `Content-Encoding`, because a question is never
    /// compressed.
    var questionHeaders: [String] {
        var headers = staticHeaders.filter { !$0.hasPrefix("Content-Encoding:") }
        if case .header(let line) = credential {
            headers.append(line)
        }
        return headers
    }

    /// The address of a question, with a credential that is an argument.
    func asking(_ url: String) -> String {
        guard case .argument(let argument) = credential else { return url }
        return HTTPAddress.adding([argument], to: url)
    }

    /// Fetches credentials, if the login needs any; sends nothing to the destination.
    package func probe() async -> Failure? {
        var request = HTTPRequest(url: options.url)
        return await authorize(&request)?.failure
    }

    /// Waits; false if the task was cancelled meanwhile.
    private func pause(_ wait: Duration) async -> Bool {
        lastPause += 1
        let id = lastPause
        await cancellable { continuation in
            pauses[id] = continuation
            after(wait) { $0.endPause(id) }
        } onCancel: {
            $0.endPause(id)
        }
        return !Task.isCancelled
    }

    /// Ends a pause, by its timer or by cancellation; the second of the two finds nothing.
    private func endPause(_ id: UInt64) {
        pauses.removeValue(forKey: id)?.resume()
    }

    /// Reads changed certificates and secrets again. A secret is in use afterwards, certificates once the
    /// client has them.
    private func lookAtFiles() -> FollowedFiles.Changes {
        files.readChanged(at: time.bootTime, &measures.certificates) { secret throws(OutputError) in
            credential = try options.credential(secret, in: encoder.traits.tokenPlace)
            try authorizer?.use(secret)
        }
    }

    /// Makes the client use the certificates in force.
    private func useCertificates() async {
        await client.use(TransferSettings(options: options, tls: files.tls))
    }
}
