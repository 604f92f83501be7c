internal import EventLoops
internal import Model

/// One request, ready to be sent.
struct HTTPRequest {
    /// What is asked.
    enum Method {
        case post
        /// It has no body.
        case get
        case put
        /// Nothing: only a connection is made, plain, for what is to be spoken over it instead of HTTP.
        case connect
    }

    var method = Method.post
    /// Where it goes.
    var url: String
    /// `Name: value`, one each.
    var headers: [String] = []
    var body: [UInt8] = []
    /// How much of the answer's body is kept, in bytes.
    var answerLimit = 0
    /// What the request is signed with; nil: it is not.
    var signature: AWSSignature?
    /// Which of the credentials it carries that a service gives for a time; nil: none of these.
    var credential: Int?
}

/// How a request is signed: AWS Signature Version 4, which libcurl makes of the request as it is sent.
struct AWSSignature: Equatable {
    /// `aws:amz:REGION:SERVICE`, as libcurl has it.
    var scope: String
    var accessKeyID: String
    var secret: Secret
}

/// The head of an answer, and the beginning of its body. Hostile.
package struct HTTPAnswer: Sendable, Equatable {
    var status: Int
    /// The body, as far as the request's limit goes.
    var body: [UInt8] = []
    /// How much of it `body` is.
    var extent = Extent.whole
    var retryAfter: String?
    /// `x-ms-retry-after-ms`.
    var retryAfterMilliseconds: String?
    var date: String?
    /// `ETag`, of answers to a GET.
    var etag: String?
    /// `Content-Range`, of answers to a GET.
    var contentRange: String?
    /// `Content-Length`, of answers to a GET.
    var contentLength: String?
    /// `X-ClickHouse-Exception-Code`.
    var clickHouseCode: String?
    /// Of a `connect`: an open descriptor that does not block, and belongs to the caller.
    var socket: Int32 = -1

    /// How much of an answer's body was kept.
    package enum Extent: Sendable {
        /// All of it.
        case whole
        /// As much as the request's limit allows: there was more.
        case cutHere
        /// What came before the connection broke, or time was over.
        case brokenOff
    }

    /// How large the object is that a part of was asked for; nil where that is not said.
    var objectSize: Int? {
        switch status {
        case 206, 416: contentRange?.split(separator: "/").last.flatMap { Int($0) }
        // Ranges are not heeded there.
        case 200: contentLength.flatMap { Int($0) }
        default: nil
        }
    }

    /// The beginning of the body as text, at most 1 KiB, without control characters.
    var excerpt: String { AnswerReader.excerpt(body) }

    /// How long the server wants to be left alone; nil where it does not say.
    func wait(at now: Timestamp) -> Duration? {
        RetryAfter.wait(retryAfter: retryAfter, milliseconds: retryAfterMilliseconds, date: date, now: now)
    }
}

/// What happened to a request.
enum HTTPResult: Sendable {
    /// There is an answer, at least its head.
    case answered(HTTPAnswer)
    /// There is none.
    case failed(Failure)
    /// The kernel knows no way to the address: nothing left this machine.
    case noRoute(Failure)
}
