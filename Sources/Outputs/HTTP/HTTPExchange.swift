internal import EventLoops
internal import Model

struct HTTPRequest {
    enum Method {
        case post, get, put
        /// Nothing: only a connection is made, plain, for what is to be spoken over it instead of HTTP.
        case connect
    }

    var method = Method.post
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

    /// What an answer that quotes the request must not bring to light: the values of the address and of all headers but the known ones.
    var secrets: [String] {
        let plain = ["accept:", "content-", "idempotency-key:", "user-agent:", "x-spoolship-events:"]
        let values = headers.filter { header in !plain.contains { header.lowercased().hasPrefix($0) } }.flatMap {
            $0.drop { $0 != ":" }.dropFirst().split(separator: " ")
        }
        let arguments = url.drop { $0 != "?" }.split(separator: "&").map { $0.drop { $0 != "=" }.dropFirst() }
        return (values + arguments).map(String.init).filter { $0.utf8.count >= 6 }
    }
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
    /// What of the request is not shown where the body is.
    var secrets: [String] = []
    var extent = Extent.whole
    var retryAfter: String?
    /// `x-ms-retry-after-ms`.
    var retryAfterMilliseconds: String?
    var date: String?
    var etag: String?
    var contentRange: String?
    var contentLength: String?
    /// `X-ClickHouse-Exception-Code`.
    var clickHouseCode: String?
    /// Of a `connect`: an open descriptor that does not block, and belongs to the caller.
    var socket: Int32 = -1

    package enum Extent: Sendable {
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

    /// The beginning of the body as text, at most 1 KiB, without control characters and secrets.
    var excerpt: String { secrets.reduce(AnswerReader.excerpt(body)) { $0.replacingAll($1, with: "****") } }

    /// What it means that the answer is such a one.
    func failure(_ message: String, _ kind: Failure.Kind = .status) -> Failure {
        Failure(kind: kind, status: status, message: message, excerpt: excerpt)
    }

    /// How long the server wants to be left alone; nil where it does not say.
    func wait(at now: Timestamp) -> Duration? {
        RetryAfter.wait(retryAfter: retryAfter, milliseconds: retryAfterMilliseconds, date: date, now: now)
    }
}

enum HTTPResult: Sendable {
    /// There is an answer, at least its head.
    case answered(HTTPAnswer)
    case failed(Failure)
    /// The kernel knows no way to the address: nothing left this machine.
    case noRoute(Failure)
}
