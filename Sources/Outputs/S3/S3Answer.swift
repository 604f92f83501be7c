internal import EventLoops
internal import Model

/// Decides what an object store's answer means for the batch: a pure function of status, body and headers.
///
/// An object store never looks into events, so no batch is bisected and no answer makes dead letters.
enum S3Answer {
    /// The outcome of an upload. The error code of the body is more exact than the status, so known codes
    /// come first.
    static func outcome(of answer: HTTPAnswer, wireBytes: Int, now: Timestamp) -> Outcome {
        let code = errorCode(in: answer.body)
        func failure(_ hint: String? = nil) -> Failure {
            let said = code.map { "answered \(answer.status) \($0)" } ?? "answered \(answer.status)"
            return answer.failure(hint.map { "\(said): \($0)" } ?? said)
        }
        func retry(_ hint: String? = nil) -> Outcome {
            answer.wait(at: now).map { .retryAfter($0, failure(hint)) } ?? .retry(failure(hint))
        }
        switch (answer.status, code) {
        // With `If-None-Match: *` a 412 means that the object exists: an earlier attempt has written it.
        case (200...299, _), (412, _): return .acknowledged
        case (413, _), (_, "EntityTooLarge"):
            return .tooLarge(wireBytes: wireBytes, failure("the object is too large"))
        case (_, let code?) where held[code] != nil: return .held(failure(held[code]))
        case (_, let code?) where passing.contains(code): return retry()
        case (401, _): return .held(failure("the credentials are missing or wrong"))
        case (403, _): return .held(failure(held["AccessDenied"]))
        case (404, _):
            return .held(failure("nothing is at this address; check bucket, endpoint and bucket.path_style"))
        case (501, _): return .held(failure(held["NotImplemented"]))
        case (301, _), (302, _), (308, _):
            return .held(failure("a redirect, which is not followed; set region and endpoint"))
        case (505, _): return .held(failure())
        case (307, _), (408, _), (409, _), (425, _), (429, _), (500...599, _): return retry()
        default: return .held(failure())
        }
    }

    /// Whether the answer says that temporary credentials have expired, so that new ones help.
    static func saysExpired(_ answer: HTTPAnswer) -> Bool {
        guard let code = errorCode(in: answer.body) else { return false }
        return held[code] == noToken
    }

    /// Error codes that need a person, each with what to check.
    ///
    /// Source: Amazon S3 API Reference, Error responses.
    private static let held: [String: String] = [
        "ExpiredToken": noToken, "InvalidToken": noToken, "TokenRefreshRequired": noToken,
        "RequestTimeTooSkewed": "this machine's clock or the server's is wrong; check time synchronisation",
        "QuotaExceeded": "the quota of the bucket or its owner is used up; raise it, or remove objects",
        "NoSuchBucket": "there is no such bucket; check bucket, region and endpoint",
        "InvalidAccessKeyId": "the server does not know this access key; check access_key_id",
        "SignatureDoesNotMatch": "the secret key is wrong, or a proxy changes requests",
        "AuthorizationHeaderMalformed": elsewhere, "PermanentRedirect": elsewhere,
        "AccessDenied": "the credentials may not write here; s3:PutObject is needed for this bucket and key",
        "NotImplemented":
            "the server does not support part of the request; if it is If-None-Match, set key.if_none_match = false",
    ]
    /// Hint for expired session tokens; also marks their codes (`saysExpired`).
    private static let noToken = "the session token is no longer valid; give the agent new credentials"
    /// Hint for a bucket in another region.
    private static let elsewhere = "the bucket is in another region; set region and endpoint"
    /// Error codes of conditions that pass: retry.
    private static let passing: Set<String> = [
        "ConditionalRequestConflict", "InternalError", "OperationAborted", "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown", "TemporaryRedirect",
    ]
    /// Further codes that may be shown. Other text of an answer may be an echo of what was sent, and
    /// messages go to the log.
    private static let others: Set<String> = [
        "BadDigest", "EntityTooLarge", "InvalidArgument", "InvalidBucketName", "InvalidDigest",
        "InvalidRequest",
        "InvalidStorageClass", "KMS.DisabledException", "KMS.NotFoundException", "KeyTooLongError",
        "MissingContentLength", "NoSuchKey", "PreconditionFailed", "XAmzContentSHA256Mismatch",
        // The token service's. Source: AWS Security Token Service API Reference, Common Error Types.
        "ExpiredTokenException", "IDPCommunicationError", "IDPRejectedClaim", "InvalidClientTokenId",
        "InvalidIdentityToken", "RegionDisabledException", "ValidationError",
    ]

    /// The code that an error document names, if it is a known one; otherwise nil.
    static func errorCode(in body: [UInt8]) -> String? {
        guard let code = element("Code", in: body, atMost: 64) else { return nil }
        return held[code] != nil || passing.contains(code) || others.contains(code) ? code : nil
    }

    /// The text of the first element of that name in an XML document, at most `limit` characters; nil
    /// without one. Enough for these answers, and nothing that a hostile document could exploit.
    static func element(_ name: String, in body: [UInt8], atMost limit: Int) -> String? {
        let open = Array("<\(name)>".utf8)
        guard let start = body.indices.first(where: { body[$0...].starts(with: open) }) else { return nil }
        return String(
            decoding: body[(start + open.count)...].prefix { $0 != UInt8(ascii: "<") }.prefix(limit),
            as: UTF8.self)
    }
}
