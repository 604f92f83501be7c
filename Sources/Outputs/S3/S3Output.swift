internal import Digests
package import EventLoops
package import Logs
package import Model

/// Writes batches to an object store: each batch as one object, or one for each text that the key's
/// template gives its events.
///
/// A key is made from the batch and its events only, never from the time of an attempt, so every attempt
/// writes the same object. `If-None-Match: *` keeps the first one: if an acknowledgement was lost, the next
/// attempt finds the object and counts as acknowledged. Runs on the loop passed to `init`.
package actor S3Output: MeasuredOutput {
    package var measures = OutputMeasures()

    private let name: DestinationName
    private let log: Log
    package nonisolated let loop: EventLoop
    /// The bucket's address and the settings.
    private let options: HTTPOptions
    private let s3: S3Settings
    /// Template of the object's key, without the ending.
    private let key: EventTemplates
    package nonisolated var templates: EventTemplates? { key }
    private let time: any TimeSource
    private let builder: BodyBuilder
    private let client: HTTPClient
    /// Certificates and the secret key, read again when their files change.
    private var files: FollowedFiles
    /// Signs requests, with credentials that it keeps valid.
    private let signer: AWSSigner
    package nonisolated let firstCertificates: OutputCertificates?
    package nonisolated let followsFiles: Bool

    /// Sets up a destination, and reads its certificates and secrets for the first time. Connects to
    /// nothing.
    ///
    /// - Parameters:
    ///   - installID: this installation's id, for keys.
    ///   - environment: reads a variable of the environment, nil if unset or empty; by default the agent's.
    /// - Throws: `OutputError` if a setting has no meaning or a file cannot be read.
    package init(
        _ name: DestinationName, _ options: HTTPOptions, _ s3: S3Settings, installID: String,
        on loop: EventLoop, log: Log,
        environment: ((String) -> String?)? = nil, time: any TimeSource = SystemTime()
    ) throws(OutputError) {
        let options = try options.ofBucket(s3)
        let settings = options.settings
        key = EventTemplates(
            [s3.key], settings.templateScope(installID: installID, log: log, time: time))
        try options.check()
        self.name = name
        self.log = log
        self.options = options
        self.s3 = s3
        self.loop = loop
        self.time = time
        builder = try BodyBuilder(NDJSONEncoder(), settings.compression)
        let aws = s3.aws
        let signer = try AWSSigner(
            aws, service: "s3", installID: installID, options, on: loop,
            environment: environment ?? AWSSigner.variable)
        self.signer = signer
        let files = try FollowedFiles(
            name, settings.tls, secret: aws.credentials == .key ? aws.secret.source : nil, log: log,
            at: time.bootTime)
        self.files = files
        firstCertificates = files.certificates
        measures.certificates = files.certificates
        if let secret = files.secret {
            signer.use(secret)
        }
        client = try HTTPClient(on: loop, settings: TransferSettings(options: options, tls: files.tls))
        followsFiles = files.areAny
    }

    /// Stores a batch, one object after the other, until one fails for another reason than its size.
    package func send(_ batch: Batch) async -> Outcome {
        await hasNewCredentials()
        do throws(OutputError) {
            let parts = try builder.parts(of: batch, by: key)
            var outcomes: [(events: [Int], outcome: Outcome)] = []
            for part in parts {
                let outcome = await store(part.batch, as: part.text)
                outcomes.append((part.events, outcome))
                if case .tooLarge = outcome { continue }
                // The other parts would be sent again with this one in any case, although they are stored.
                guard outcome == .acknowledged else { break }
            }
            return Outcome(ofParts: outcomes)
        } catch {
            return error.failure.outcome
        }
    }

    /// Writes one object. If the key exists with another size, the object is not this batch's: it is
    /// replaced, because keeping it would lose the events.
    private func store(_ batch: Batch, as key: String) async -> Outcome {
        do throws(AttemptEnd) {
            let compression = try await compression(of: batch, key)
            let body = try relaying(try body(of: batch, compression)) { (error: OutputError) in
                AttemptEnd(outcome: error.failure.outcome)
            }
            let url = url(of: key, compression)
            let (result, outcome) = await upload(body, compression, to: url)
            guard case .answered(let answer) = result, answer.status == 412,
                let size = try await storedSize(at: url),
                size != body.count
            else {
                if case .answered(let answer) = result, answer.status == 412 {
                    note(repeats: Array(0..<batch.header.events), of: batch)
                }
                return outcome
            }
            // No other batch has this key: the object is either incomplete or another program's.
            log.warning(
                "an object of another size has a batch's key, and is replaced",
                ["destination": name, "batch": batch.header.id, "bytes": size, "expected_bytes": body.count])
            return await upload(body, compression, to: url, isReplacing: true).outcome
        } catch {
            return error.outcome
        }
    }

    /// The compression of a batch's object. If an earlier attempt wrote the object before the setting
    /// changed, the old compression counts: another ending would be another key, and the batch would be
    /// stored twice.
    private func compression(of batch: Batch, _ key: String) async throws(AttemptEnd) -> Compression {
        let wanted = options.settings.compression
        guard batch.mayHaveBeenSent else { return wanted }
        for other in Compression.allCases where other != wanted {
            if try await storedSize(at: url(of: key, other)) != nil { return other }
        }
        return wanted
    }

    /// The body in a compression, which may not be the configured one.
    private func body(of batch: Batch, _ compression: Compression) throws(OutputError) -> [UInt8] {
        if compression == options.settings.compression { return try builder.body(of: batch) }
        return try BodyBuilder(NDJSONEncoder(), compression).body(of: batch)
    }

    /// Signs a request and makes it; returns the answer, and the outcome for the batch.
    private func perform(
        _ request: HTTPRequest, _ checksum: [UInt8]? = nil
    ) async -> (result: HTTPResult, outcome: Outcome) {
        var request = request
        do throws(CredentialFailure) {
            try await signer.authorize(&request, checksum: checksum, time)
        } catch {
            return (.failed(error.failure), error.outcome)
        }
        let result = await client.perform(request)
        return (result, judge(result, of: request))
    }

    /// The outcome of a request. Expired credentials are dropped, so that the retry requests new ones.
    private func judge(_ result: HTTPResult, of request: HTTPRequest) -> Outcome {
        if let expiry = client.serverExpiry {
            measures.certificates.serverExpiry = expiry
        }
        switch result {
        case .noRoute:
            return .offline
        case .failed(let failure):
            return failure.outcome
        case .answered(let answer):
            note(answer, hiding: request.secrets)
            let outcome = S3Answer.outcome(of: answer, wireBytes: request.body.count, now: time.wallTime)
            if case .held(let failure) = outcome, S3Answer.saysExpired(answer),
                signer.renewRefused(request, isOver: true, at: time.bootTime)
            {
                return .retry(failure)
            }
            return outcome
        }
    }

    /// Asks for an object that should not exist, with a signature. This checks address, bucket, region and
    /// key; it does not show whether the agent may write.
    ///
    /// - Returns: what is wrong; nil if the store says that the object does not exist, or that reading is
    ///   not allowed.
    package func probe() async -> Failure? {
        switch await perform(question(options.url + "spoolship-check")).result {
        case .failed(let failure), .noRoute(let failure): return failure
        case .answered(let answer):
            if answer.status < 300
                || ["NoSuchKey", "AccessDenied"].contains(S3Answer.errorCode(in: answer.body))
            {
                return nil
            }
            return S3Answer.outcome(of: answer, wireBytes: 0, now: time.wallTime).failure
        }
    }

    /// Ends an attempt before the upload, with this outcome.
    private struct AttemptEnd: Error {
        let outcome: Outcome
    }

    /// The size of an object; nil if it does not exist, or the store does not say.
    ///
    /// A GET of one byte, because the answer to a HEAD has no body, and so no error code.
    /// - Throws: `AttemptEnd` if the store cannot be asked now; then an upload could not be made either.
    private func storedSize(at url: String) async throws(AttemptEnd) -> Int? {
        let (result, outcome) = await perform(question(url, "Range: bytes=0-0"))
        if case .answered(let answer) = result, let size = answer.objectSize { return size }
        switch outcome {
        case .offline, .retry, .retryAfter: throw AttemptEnd(outcome: outcome)
        default: return nil
        }
    }

    /// The address of an object: the key with the ending of its compression, percent-encoded except for
    /// slashes.
    private func url(of key: String, _ compression: Compression) -> String {
        let ending =
            switch compression {
            case .none: ".jsonl"
            case .gzip: ".jsonl.gz"
            case .zstd: ".jsonl.zst"
            }
        let parts = (key + ending).split(separator: "/", omittingEmptySubsequences: false)
        return options.url + parts.map { String($0).percentEncoded }.joined(separator: "/")
    }

    /// A GET request, for questions about a bucket or an object.
    private func question(_ url: String, _ headers: String...) -> HTTPRequest {
        HTTPRequest(method: .get, url: url, headers: headers, answerLimit: S3Output.answerLimit)
    }

    /// Uploads an object; with `If-None-Match: *` unless the setting or `isReplacing` forbids it.
    private func upload(
        _ body: [UInt8], _ compression: Compression, to url: String, isReplacing: Bool = false
    ) async -> (result: HTTPResult, outcome: Outcome) {
        let checksum = SHA256.bytes(body)
        var headers = s3.objectHeaders(compression)
        if s3.ifNoneMatch, !isReplacing {
            headers.append("If-None-Match: *")
        }
        // S3 stores the checksum, and requires one for Object Lock. The hash was already computed for
        // signing.
        headers.append("x-amz-checksum-sha256: \(Base64.encode(checksum))")
        measures.sentBytes += body.count
        let request = HTTPRequest(
            method: .put, url: url, headers: headers, body: body, answerLimit: S3Output.answerLimit)
        return await perform(request, checksum)
    }

    /// Bytes of an answer to keep: error documents are shorter.
    private static let answerLimit = 4096

    package func dropIssuedCredentials() async { signer.dropIssued() }

    @discardableResult package func hasNewCredentials() async -> Bool {
        let changes = files.readChanged(at: time.bootTime, &measures.certificates) { secret in
            signer.use(secret)
        }
        if changes.hasCertificates {
            await client.use(TransferSettings(options: options, tls: files.tls))
        }
        return changes.areAny
    }
}

extension S3Settings {
    /// The headers that are the same for all objects; all of them are signed.
    fileprivate func objectHeaders(_ compression: Compression) -> [String] {
        // No `Expect:` line, for the reason in `HTTPOptions.staticHeaders`: libcurl's own `Expect:
        // 100-continue` stays, which object stores answer correctly.
        var lines = ["Content-Type: application/x-ndjson"]
        if compression != .none {
            lines.append("Content-Encoding: \(compression.name)")
        }
        if let storageClass {
            lines.append("x-amz-storage-class: \(storageClass)")
        }
        if let encryption = serverSideEncryption {
            lines.append("x-amz-server-side-encryption: \(encryption.rawValue)")
        }
        return lines
    }
}
