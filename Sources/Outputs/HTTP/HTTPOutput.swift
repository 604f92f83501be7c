internal import Digests
package import EventLoops
package import Logs
package import Model

/// Sends batches to one HTTP destination, one batch a request (more only where a format bounds requests otherwise).
///
/// `Idempotency-Key` is the batch's id: the same at every attempt, across retries, restarts and crashes. Certificates, keys
/// and secrets are read again when their files change, looked at no more than once a second, when something is sent or
/// the delivery asks; when they cannot be used, the last good ones stay in force and a warning says so.
/// Lives on the loop that it is given.
package actor HTTPOutput: MeasuredOutput {
    package var measures = OutputMeasures()

    package nonisolated let loop: EventLoop
    let options: HTTPOptions
    private let time: any TimeSource
    private let encoder: any BatchEncoder
    /// The same, where it bounds requests.
    private let piecewise: (any PiecewiseEncoder)?
    private let reader: AnswerReader
    private let builder: BodyBuilder
    let client: HTTPClient
    private let staticHeaders: [String]
    private var files: FollowedFiles
    private var credential: Credential?
    private let authorizer: (any RequestAuthorizer)?
    package nonisolated let firstCertificates: OutputCertificates?
    package nonisolated var templates: EventTemplates? { encoder.templates }
    package nonisolated let followsFiles: Bool
    private var pauses: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var lastPause: UInt64 = 0

    /// Sets up a destination; reads its certificates and secrets for the first time. Connects to nothing.
    ///
    /// - Parameter installID: what AWS's logs call this agent.
    /// - Throws: `OutputError`: a setting without meaning, a file that cannot be read.
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
        reader = AnswerReader(table: AnswerTable(options.settings.outcomes), encoder: format)
        builder = try BodyBuilder(format, options.settings.compression)
        let files = try FollowedFiles(
            name, options.settings.tls, secret: options.settings.login?.secret, log: log, at: time.bootTime)
        self.files = files
        firstCertificates = files.certificates
        measures.certificates = files.certificates
        credential = try options.credential(files.secret, in: format.traits.tokenPlace)
        let authorizer = try options.authorizer(installID: installID, on: loop)
        self.authorizer = authorizer
        if let secret = files.secret { authorizer?.use(secret) }
        client = try HTTPClient(on: loop, settings: TransferSettings(options: options, tls: files.tls))
        followsFiles = files.areAny
        staticHeaders = options.staticHeaders(format)
    }

    package func send(_ batch: Batch) async -> Outcome {
        // Each call that may wait looks at the executor before and after it, even on one loop: an ordinary attempt makes one.
        if lookAtFiles().hasCertificates { await useCertificates() }
        do throws(OutputError) {
            let outcome: Outcome
            if let piecewise {
                outcome = try await sendInPieces(batch, by: piecewise)
            } else {
                outcome = try await send(try builder.body(of: batch), of: batch, key: "\(batch.header.id)", reader)
            }
            if encoder.traits.mayLeaveOut, outcome == .acknowledged {
                measures.leftOutValues += try encoder.leftOut(try builder.lines(of: batch))
            }
            return outcome
        } catch {
            return error.failure.outcome
        }
    }

    package func hasNewCredentials() async -> Bool {
        let changes = lookAtFiles()
        if changes.hasCertificates { await useCertificates() }
        return changes.areAny
    }

    /// Sends a batch as several requests, one after the other, until one does not succeed.
    ///
    /// When nothing of it was taken, the batch shares the fate of the first; else what is left goes again.
    private func sendInPieces(
        _ batch: Batch, by encoder: any PiecewiseEncoder
    ) async throws(OutputError) -> Outcome {
        let lines = try builder.lines(of: batch)
        var rejected =
            batch.isClockTrusted ? try encoder.refusals(lines, of: batch.header, at: time.wallTime) : []
        let refused = Set(rejected.map(\.index))
        let requests = try encoder.requests(lines).map { $0.filter { !refused.contains($0) } }.filter { !$0.isEmpty }
        var retry: [Int] = []
        let pieces = try builder.pieces(requests, of: batch, lines)
        for (number, (events, piece)) in zip(requests, pieces).enumerated() {
            // One key for one body: the same events of the batch have the same key at every attempt.
            let key =
                events.count == batch.header.events
                ? "\(batch.header.id)" : "\(batch.header.id)-\(HTTPOutput.name(of: events))"
            switch try await send(try builder.body(of: piece), of: piece, key: key, reader) {
            case .acknowledged, .acknowledgedWithLoss:
                continue
            case .partial(let some, let again):
                rejected += some.map {
                    RejectedEvent(index: events[$0.index], failure: $0.failure, isFinal: $0.isFinal)
                }
                retry += again.map { events[$0] }
            case let outcome:
                if number == 0, rejected.isEmpty { return outcome }
                retry += requests[number...].joined()
                return .partial(rejected: rejected, retry: retry.sorted())
            }
        }
        return rejected.isEmpty && retry.isEmpty
            ? .acknowledged : .partial(rejected: rejected.sorted { $0.index < $1.index }, retry: retry.sorted())
    }

    /// A short name for some events of a batch: another one for other events.
    private static func name(of events: [Int]) -> String {
        guard let first = events.first, let last = events.last else { return "0" }
        guard last - first + 1 == events.count else {
            let places = events.map { String($0) }.joined(separator: ",")
            return "\(first)-\(last)-\(SHA256.hexadecimal(Array(places.utf8)).prefix(16))"
        }
        return "\(first)-\(last)"
    }

    /// One request: all of a batch, or a piece of it. Once more, in another form, where the answer asks for that: seldom.
    private func send(
        _ body: [UInt8], of batch: Batch, key: String, _ reader: AnswerReader
    ) async throws(OutputError) -> Outcome {
        var request = request(body, of: batch, key: key)
        if authorizer != nil, let failure = await authorize(&request) { return failure.outcome }
        let result = await client.perform(request)
        if case .answered(let answer) = result, reader.table.override(of: answer.status) == nil,
            let other = reader.encoder.alternative(afterAnswer: answer)
        {
            let body = try BodyBuilder(other, options.settings.compression).body(of: batch)
            return try await send(
                body, of: batch, key: "\(key)-late", AnswerReader(table: reader.table, encoder: other))
        }
        return await judge(result, of: request, reader, of: batch)
    }

    /// Adds what shows that the agent may write, where that is fetched or computed; returns why there is none.
    private func authorize(_ request: inout HTTPRequest) async -> CredentialFailure? {
        do throws(CredentialFailure) {
            try await authorizer?.authorize(&request, checksum: nil, time)
            return nil
        } catch {
            return error
        }
    }

    private func request(_ body: [UInt8], of batch: Batch, key: String) -> HTTPRequest {
        var headers = staticHeaders
        headers.append("Idempotency-Key: \(key)")
        headers.append("X-Spoolship-Events: \(batch.header.events)")
        if case .header(let line) = credential { headers.append(line) }
        measures.sentBytes += body.count
        return HTTPRequest(
            url: address(for: key), headers: headers, body: body,
            answerLimit: encoder.traits.answerLimit(events: batch.header.events))
    }

    /// What an answer means; where it says that the batch was taken, the destination may have to be asked whether it has it.
    private func judge(
        _ result: HTTPResult, of request: HTTPRequest, _ reader: AnswerReader, of batch: Batch
    ) async -> Outcome {
        if let expiry = client.serverExpiry { measures.certificates.serverExpiry = expiry }
        switch result {
        case .noRoute: return .offline
        case .failed(let failure): return failure.outcome
        case .answered(var answer):
            if !(200...299).contains(answer.status) || AnswerReader.isWebPage(answer.body) {
                answer.secrets = request.secrets + (files.secret.map { [$0.revealed] } ?? [])
            }
            let outcome = reader.outcome(
                of: answer, for: batch.header, wireBytes: request.body.count, now: time.wallTime
            ) {
                () throws(OutputError) in try builder.lines(of: batch)
            }
            note(repeats: batch.mayHaveBeenSent ? [] : encoder.repeats(inAnswer: answer), of: batch)
            if case .held(let failure) = outcome, answer.status == 401 || answer.status == 403,
                authorizer?.renewRefused(request, isOver: false, at: time.bootTime) == true
            {
                return .retry(failure)
            }
            guard outcome == .acknowledged, let question = encoder.confirmation(ofAnswer: answer, url: options.url)
            else { return outcome }
            return await confirm(question)
        }
    }

    private func address(for key: String) -> String {
        var arguments = [encoder.traits.arguments]
        if case .argument(let argument) = credential { arguments.append(argument) }
        if let name = options.settings.batchIDParameter { arguments.append("\(name)=\(key)") }
        return HTTPAddress.adding(arguments, to: options.url)
    }

    /// Asks until the destination says yes, for as long as a request may take.
    private func confirm(_ question: Confirmation) async -> Outcome {
        let deadline = time.bootTime + options.settings.requestTimeout
        var wait = Duration.milliseconds(250)
        let headers = questionHeaders
        while time.bootTime < deadline, await pause(wait) {
            var request = HTTPRequest(
                url: question.url, headers: headers, body: question.body,
                answerLimit: encoder.traits.answerLimit(events: 1))
            if let failure = await authorize(&request) { return failure.outcome }
            if case .answered(let answer) = await client.perform(request), (200...299).contains(answer.status),
                question.isGiven(answer)
            {
                return .acknowledged
            }
            wait = min(wait * 2, .seconds(5))
        }
        return .retry(
            Failure(kind: .timeout, message: "the destination accepted the batch and did not confirm it in time"))
    }

    /// The headers of a question: it is never packed, and has no batch's id of its own.
    var questionHeaders: [String] {
        var headers = staticHeaders.filter { !$0.hasPrefix("Content-Encoding:") }
        if case .header(let line) = credential { headers.append(line) }
        return headers
    }

    /// Fetches the credentials that authorise the agent, if they are fetched, and sends nothing to the destination.
    package func probe() async -> Failure? {
        var request = HTTPRequest(url: options.url)
        return await authorize(&request)?.failure
    }

    /// Lets time pass; false when the task was cancelled meanwhile.
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

    private func endPause(_ id: UInt64) {
        pauses.removeValue(forKey: id)?.resume()
    }

    /// Reads certificates and secrets again that have changed. Certificates are in use once the client has them.
    private func lookAtFiles() -> FollowedFiles.Changes {
        files.readChanged(at: time.bootTime, &measures.certificates) { secret throws(OutputError) in
            credential = try options.credential(secret, in: encoder.traits.tokenPlace)
            authorizer?.use(secret)
        }
    }

    private func useCertificates() async {
        await client.use(TransferSettings(options: options, tls: files.tls))
    }
}
