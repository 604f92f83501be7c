internal import EventLoops
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
    /// Which of the credentials it carries that a service gives for a time; nil: none of these.
    var credential: Int?
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

/// The head of an answer, and the beginning of its body. Hostile.
package struct HTTPAnswer: Sendable, Equatable {
    /// The final status.
    var status: Int
    /// The body, as far as the request's limit goes.
    var body: [UInt8] = []
    /// How much of it `body` is.
    var extent = Extent.whole
    /// `Retry-After`.
    var retryAfter: String?
    /// `x-ms-retry-after-ms`.
    var retryAfterMilliseconds: String?
    /// `Date`.
    var date: String?
    /// `ETag`, of answers to a GET.
    var etag: String?
    /// `Content-Range`, of answers to a GET.
    var contentRange: String?
    /// `X-ClickHouse-Exception-Code`.
    var clickHouseCode: String?

    /// How much of an answer's body was kept.
    package enum Extent: Sendable {
        /// All of it.
        case whole
        /// As much as the request's limit allows: there was more.
        case cutHere
        /// What came before the connection broke, or time was over.
        case brokenOff
    }

    /// The beginning of the body as text, at most 1 KiB, without control characters.
    var excerpt: String { AnswerReader.excerpt(body) }

    /// How long the server wants to be left alone; nil where it does not say.
    func wait(at now: Timestamp) -> Duration? {
        RetryAfter.wait(retryAfter: retryAfter, milliseconds: retryAfterMilliseconds, date: date, now: now)
    }
}

/// What happened to a request, or to a connection that was only to be made.
enum Reached<Value: Sendable>: Sendable {
    /// It came about: an answer, at least its head; or an open descriptor that does not block, and belongs to the caller.
    case answered(Value)
    /// It did not.
    case failed(Failure)
    /// The kernel knows no way to the address: nothing left this machine.
    case noRoute(Failure)
}

typealias HTTPResult = Reached<HTTPAnswer>
