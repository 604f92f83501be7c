internal import Digests
package import EventLoops
package import Logs
package import Model

/// Writes batches to an object store: one batch, one object, or one for each value of the key's template.
///
/// The key is made from the batch and its events alone, never from the time of an attempt. So each attempt writes the same object, and a condition keeps the first one:
/// a batch whose acknowledgement was lost is found already there. Lives on the loop that it is given.
package actor S3Output: MeasuredOutput {
    package var measures = OutputMeasures()

    private let name: DestinationName
    private let log: Log
    package nonisolated let loop: EventLoop
    private let options: HTTPOptions
    private let key: EventTemplates
    package nonisolated var templates: EventTemplates? { key }
    private let time: any TimeSource
    private let builder: BodyBuilder
    private let client: HTTPClient
    private var files: FollowedFiles
    private let signer: AWSSigner
    package nonisolated let firstCertificates: OutputCertificates?
    package nonisolated let followsFiles: Bool

    /// Sets up a destination; reads its certificates and secrets for the first time. Connects to nothing.
    ///
    /// - Parameters:
    ///   - installID: this installation's id, for keys.
    ///   - environment: variables of the environment that are not empty; nil: the agent's.
    /// - Throws: `OutputError`: a setting without meaning, a file that cannot be read.
    package init(
        _ name: DestinationName, _ options: HTTPOptions, installID: String, on loop: EventLoop, log: Log,
        environment: ((String) -> String?)? = nil, time: any TimeSource = SystemTime()
    ) throws(OutputError) {
        let options = try options.ofBucket()
        let settings = options.settings
        key = EventTemplates([settings.s3.key], settings.templateScope(installID: installID, log: log, time: time))
        try options.check()
        (self.name, self.log, self.options, self.loop, self.time) = (name, log, options, loop, time)
        builder = try BodyBuilder(NDJSONEncoder(), settings.compression)
        let aws = settings.s3.aws
        let signer = try AWSSigner(
            aws, service: "s3", installID: installID, options, on: loop, environment: environment ?? AWSSigner.variable)
        self.signer = signer
        let files = try FollowedFiles(
            name, settings.tls, secret: aws.credentials == .key ? aws.secret.source : nil, log: log, at: time.bootTime)
        self.files = files
        firstCertificates = files.certificates
        measures.certificates = files.certificates
        if let secret = files.secret { signer.use(secret) }
        client = try HTTPClient(on: loop, settings: TransferSettings(options: options, tls: files.tls))
        followsFiles = files.areAny
    }

    package func send(_ batch: Batch) async -> Outcome {
        await hasNewCredentials()
        do throws(OutputError) {
            let parts = try builder.parts(of: batch, by: key)
            var outcomes: [(events: [Int], outcome: Outcome)] = []
            for part in parts {
                let outcome = await store(part.batch, as: part.text)
                outcomes.append((part.events, outcome))
                if case .tooLarge = outcome { continue }
                // The others go again with it, to where they are already.
                guard outcome == .acknowledged else { break }
            }
            return Outcome(ofParts: outcomes)
        } catch {
            return error.failure.outcome
        }
    }

    private func store(_ batch: Batch, as key: String) async -> Outcome {
        do throws(AttemptEnd) {
            let compression = try await compression(of: batch, key)
            let body = try relaying(try body(of: batch, compression)) { (error: OutputError) in
                AttemptEnd(outcome: error.failure.outcome)
            }
            let url = url(of: key, compression)
            let (result, outcome) = await upload(body, compression, to: url)
            guard case .answered(let answer) = result, answer.status == 412, let size = try await storedSize(at: url),
                size != body.count
            else {
                if case .answered(let answer) = result, answer.status == 412 {
                    note(repeats: Array(0..<batch.header.events), of: batch)
                }
                return outcome
            }
            // Nothing else has this batch's key: the object is a part of the batch, or another program's.
            log.warning(
                "an object of another size has a batch's key, and is replaced",
                ["destination": name, "batch": batch.header.id, "bytes": size, "expected_bytes": body.count])
            return await upload(body, compression, to: url, isReplacing: true).outcome
        } catch {
            return error.outcome
        }
    }

    /// The compression of a batch's object: of one that is there from before a change of the settings, otherwise what they say.
    private func compression(of batch: Batch, _ key: String) async throws(AttemptEnd) -> Compression {
        let wanted = options.settings.compression
        guard batch.mayHaveBeenSent else { return wanted }
        for other in Compression.allCases where other != wanted {
            if try await storedSize(at: url(of: key, other)) != nil { return other }
        }
        return wanted
    }

    private func body(of batch: Batch, _ compression: Compression) throws(OutputError) -> [UInt8] {
        if compression == options.settings.compression { return try builder.body(of: batch) }
        return try BodyBuilder(NDJSONEncoder(), compression).body(of: batch)
    }

    /// Signs a request and makes it: what became of it, and what that means for the batch.
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

    private func judge(_ result: HTTPResult, of request: HTTPRequest) -> Outcome {
        if let expiry = client.serverExpiry { measures.certificates.serverExpiry = expiry }
        switch result {
        case .noRoute:
            return .offline
        case .failed(let failure):
            return failure.outcome
        case .answered(let answer):
            let outcome = S3Answer.outcome(of: answer, wireBytes: request.body.count, now: time.wallTime)
            if case .held(let failure) = outcome, S3Answer.saysExpired(answer),
                signer.renewRefused(request, isOver: true, at: time.bootTime)
            {
                return .retry(failure)
            }
            return outcome
        }
    }

    /// Asks for an object that is not there, signed. That shows address, bucket, region and key; it writes nothing, and does not
    /// show whether writing is allowed.
    ///
    /// - Returns: what is wrong; nil where the store knows of no such object, or does not let us know.
    package func probe() async -> Failure? {
        switch await perform(question(options.url + "spoolship-check")).result {
        case .failed(let failure), .noRoute(let failure): return failure
        case .answered(let answer):
            if answer.status < 300 || ["NoSuchKey", "AccessDenied"].contains(S3Answer.errorCode(in: answer.body)) {
                return nil
            }
            return S3Answer.outcome(of: answer, wireBytes: 0, now: time.wallTime).failure
        }
    }

    /// The attempt ends without an upload.
    private struct AttemptEnd: Error {
        let outcome: Outcome
    }

    /// An object's size; nil if there is none, or the store does not let us know.
    ///
    /// - Throws: `AttemptEnd` if it could not be asked now, as an upload could not be made.
    private func storedSize(at url: String) async throws(AttemptEnd) -> Int? {
        let (result, outcome) = await perform(question(url, "Range: bytes=0-0"))
        if case .answered(let answer) = result, let size = answer.objectSize { return size }
        switch outcome {
        case .offline, .retry, .retryAfter: throw AttemptEnd(outcome: outcome)
        default: return nil
        }
    }

    /// The address of an object: its key with its ending, percent-encoded but for slashes.
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

    private func question(_ url: String, _ headers: String...) -> HTTPRequest {
        HTTPRequest(method: .get, url: url, headers: headers, answerLimit: S3Output.answerLimit)
    }

    private func upload(
        _ body: [UInt8], _ compression: Compression, to url: String, isReplacing: Bool = false
    ) async -> (result: HTTPResult, outcome: Outcome) {
        let checksum = SHA256.bytes(body)
        var headers = options.settings.objectHeaders(compression)
        if options.settings.s3.ifNoneMatch, !isReplacing { headers.append("If-None-Match: *") }
        // Kept with the object; a bucket with Object Lock takes none without. The hash is there, so it costs no other pass.
        headers.append("x-amz-checksum-sha256: \(Base64.encode(checksum))")
        measures.sentBytes += body.count
        let request = HTTPRequest(
            method: .put, url: url, headers: headers, body: body, answerLimit: S3Output.answerLimit)
        return await perform(request, checksum)
    }

    private static let answerLimit = 4096

    @discardableResult package func hasNewCredentials() async -> Bool {
        let changes = files.readChanged(at: time.bootTime, &measures.certificates) { secret in signer.use(secret) }
        if changes.hasCertificates { await client.use(TransferSettings(options: options, tls: files.tls)) }
        return changes.areAny
    }
}

extension DestinationSettings {
    /// The headers that are the same for every object. All of them are signed.
    fileprivate func objectHeaders(_ compression: Compression) -> [String] {
        // No `Expect:`, as in `HTTPOptions.staticHeaders`. Object stores answer it as they should.
        var lines = ["Content-Type: application/x-ndjson"]
        if compression != .none { lines.append("Content-Encoding: \(compression.name)") }
        if let storageClass = s3.storageClass { lines.append("x-amz-storage-class: \(storageClass)") }
        if let encryption = s3.serverSideEncryption {
            lines.append("x-amz-server-side-encryption: \(encryption.rawValue)")
        }
        return lines
    }
}
