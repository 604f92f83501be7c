internal import EventLoops
internal import Model

/// What an object store's answer means for the batch: a pure function of status, body and headers.
///
/// An object store never looks into events: nothing is ever bisected, no answer makes dead letters.
enum S3Answer {
    /// - Parameters:
    ///   - wireBytes: the size of the body that was sent.
    ///   - now: the time of day, for dates.
    static func outcome(of answer: HTTPAnswer, wireBytes: Int, now: Timestamp) -> Outcome {
        let code = errorCode(in: answer.body)
        func failure(_ hint: String? = nil) -> Failure {
            let said = code.map { "answered \(answer.status) \($0)" } ?? "answered \(answer.status)"
            return Failure(
                kind: .status, status: answer.status, message: hint.map { "\(said): \($0)" } ?? said,
                excerpt: AnswerReader.excerpt(answer.body))
        }
        func retry(_ hint: String? = nil) -> Outcome {
            let wait = RetryAfter.wait(
                retryAfter: answer.retryAfter, milliseconds: answer.retryAfterMilliseconds, date: answer.date, now: now)
            return wait.map { .retryAfter($0, failure(hint)) } ?? .retry(failure(hint))
        }
        switch (answer.status, code) {
        case (200...299, _):
            return .acknowledged
        case (412, _):
            // `If-None-Match: *`: an earlier attempt has written this very object.
            return .acknowledged
        case (_, "EntityTooLarge"), (413, _):
            return .tooLarge(wireBytes: wireBytes, failure("the object is too large"))
        case (_, "ExpiredToken"), (_, "InvalidToken"), (_, "TokenRefreshRequired"):
            return .held(failure("the session token is no longer valid; give the agent new credentials"))
        case (_, "RequestTimeTooSkewed"):
            return .held(failure("this machine's clock or the server's is wrong; check time synchronisation"))
        case (_, "SlowDown"), (_, "RequestTimeout"), (_, "OperationAborted"), (_, "ConditionalRequestConflict"),
            (_, "ServiceUnavailable"), (_, "InternalError"), (_, "TemporaryRedirect"):
            return retry()
        case (_, "QuotaExceeded"):
            return .held(failure("the quota of the bucket or its owner is used up; raise it, or remove objects"))
        case (_, "NoSuchBucket"):
            return .held(failure("there is no such bucket; check bucket, region and endpoint"))
        case (_, "InvalidAccessKeyId"):
            return .held(failure("the server does not know this access key; check access_key_id"))
        case (_, "SignatureDoesNotMatch"):
            return .held(failure("the secret key is wrong, or a proxy changes requests"))
        case (_, "AuthorizationHeaderMalformed"), (_, "PermanentRedirect"):
            return .held(failure("the bucket is in another region; set region and endpoint"))
        case (_, "AccessDenied"), (403, _):
            return .held(failure("the credentials may not write here; s3:PutObject is needed for this bucket and key"))
        case (_, "NotImplemented"), (501, _):
            return .held(
                failure(
                    "the server lacks something that was asked for; if it is If-None-Match, set if_none_match = false"))
        case (401, _):
            return .held(failure("the credentials are missing or wrong"))
        case (408, _), (409, _), (425, _), (429, _), (307, _):
            return retry()
        case (505, _):
            return .held(failure())
        case (500...599, _):
            return retry()
        case (301, _), (302, _), (308, _):
            return .held(failure("a redirect, which is not followed; set region and endpoint"))
        case (404, _):
            return .held(failure("nothing is at this address; check bucket, endpoint and path_style"))
        default:
            return .held(failure())
        }
    }

    /// Whether the answer says that the credentials have run out.
    static func saysExpired(_ answer: HTTPAnswer) -> Bool {
        guard let code = errorCode(in: answer.body) else { return false }
        return ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"].contains(code)
    }

    /// The error codes that are known: others may be anything that a server cares to echo, and messages go to the log.
    ///
    /// Source: Amazon S3 API Reference, Error responses.
    private static let known: Set<String> = [
        "AccessDenied", "AuthorizationHeaderMalformed", "BadDigest", "ConditionalRequestConflict", "EntityTooLarge",
        "ExpiredToken",
        "InternalError", "InvalidAccessKeyId", "InvalidArgument", "InvalidBucketName", "InvalidDigest",
        "InvalidRequest",
        "InvalidStorageClass", "InvalidToken", "KMS.DisabledException", "KMS.NotFoundException", "KeyTooLongError",
        "MissingContentLength", "NoSuchBucket", "NoSuchKey", "NotImplemented", "OperationAborted", "PermanentRedirect",
        "PreconditionFailed", "QuotaExceeded",
        "RequestTimeTooSkewed", "RequestTimeout", "ServiceUnavailable", "SignatureDoesNotMatch", "SlowDown",
        "TemporaryRedirect",
        "TokenRefreshRequired", "XAmzContentSHA256Mismatch",
    ]

    /// The known code that an error document names; nil without one.
    static func errorCode(in body: [UInt8]) -> String? {
        let open = Array("<Code>".utf8)
        guard let start = body.indices.first(where: { body[$0...].starts(with: open) }) else { return nil }
        let code = String(
            decoding: body[(start + open.count)...].prefix { $0 != UInt8(ascii: "<") }.prefix(64), as: UTF8.self)
        return known.contains(code) ? code : nil
    }
}
