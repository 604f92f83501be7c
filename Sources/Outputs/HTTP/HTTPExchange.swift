internal import Model

/// One request, ready to be sent.
struct HTTPRequest {
    /// What is asked.
    enum Method { case post, get, put }

    /// What is asked; a GET has no body.
    var method = Method.post
    /// Where it goes.
    var url: String
    /// `Name: value`, one each.
    var headers: [String]
    /// The whole body.
    var body: [UInt8]
    /// How much of the answer's body is kept, in bytes.
    var answerLimit: Int
    /// What the request is signed with; nil: it is not.
    var signature: AWSSignature?
}

/// How a request is signed: AWS Signature Version 4, which libcurl makes of the request as it is sent.
struct AWSSignature: Equatable {
    /// `aws:amz:REGION:SERVICE`, as libcurl has it.
    var scope: String
    /// The id of the key.
    var accessKeyID: String
    /// The key itself.
    var secret: Secret
}

/// The head of an answer, and the beginning of its body.
struct HTTPAnswer: Sendable, Equatable {
    /// The final status.
    var status: Int
    /// The body, as far as the request's limit goes.
    var body: [UInt8] = []
    /// Whether `body` is all of it: neither cut by the limit nor by the connection.
    var isWhole = true
    /// Whether the answer came to its end, even if `body` was cut by the limit.
    var isComplete = true
    /// `Retry-After`.
    var retryAfter: String?
    /// `x-ms-retry-after-ms`.
    var retryAfterMilliseconds: String?
    /// `Date`.
    var date: String?
    /// `ETag`, of answers to a GET.
    var etag: String?
    /// `X-ClickHouse-Exception-Code`.
    var clickHouseCode: String?
}

extension HTTPAnswer {
    /// What a format may read of it.
    var forFormat: HTTPAnswerBody {
        HTTPAnswerBody(status: status, bytes: body, isWhole: isWhole, isComplete: isComplete)
    }
}

/// What became of a request.
enum HTTPResult: Sendable, Equatable {
    /// An answer came, at least its head.
    case answered(HTTPAnswer)
    /// None came.
    case failed(Failure)
    /// The kernel knows no way to the address: nothing left this machine.
    case noRoute(Failure)
}

/// What became of a connection that only was to be made.
enum HTTPConnectResult: Sendable {
    /// It is there: an open descriptor that does not block, and belongs to the caller.
    case connected(Int32)
    /// It did not come about.
    case failed(Failure)
    /// The kernel knows no way to the address.
    case noRoute(Failure)
}
