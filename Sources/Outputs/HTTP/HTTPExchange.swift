internal import EventLoops
internal import Model

/// A request as an output describes it; `Transfer` gives it to libcurl.
struct HTTPRequest {
    /// The method, or only a connection.
    enum Method {
        case post, get, put
        /// No request: a plain connection is made and handed over, for another protocol than HTTP.
        case connect
    }

    var method = Method.post
    /// The address with its arguments, which are among the `secrets`.
    var url: String
    /// Lines of the head, `Name: value` each.
    var headers: [String] = []
    var body: [UInt8] = []
    /// Factor for `request_timeout`: more than 1 for a batch that has timed out while others did not.
    var timeFactor = 1
    /// Number of bytes of the answer's body that are kept; the rest is dropped.
    var answerLimit = 0
    /// AWS signature to add; nil for none.
    var signature: AWSSignature?
    /// Number of the issued credential that the request carries, so that a refusal can be matched with it;
    /// nil without an issued credential.
    var credential: Int?

    /// Texts that must not be shown if an answer quotes the request: the values of the address's arguments,
    /// as they are and percent-decoded, and of all headers except harmless ones. Texts of less than 6 bytes
    /// are left out, because hiding them would blank ordinary words.
    var secrets: [String] {
        let plain = ["accept:", "content-", "idempotency-key:", "user-agent:", "x-spoolship-events:"]
        let values = headers.filter { header in !plain.contains { header.lowercased().hasPrefix($0) } }
            .flatMap {
                $0.drop { $0 != ":" }.dropFirst().split(separator: " ")
            }
        let arguments = url.drop { $0 != "?" }.split(separator: "&").map { $0.drop { $0 != "=" }.dropFirst() }
        let decoded = arguments.filter { $0.contains("%") }.map { HTTPAddress.decoded(String($0)) }
        return ((values + arguments).map { String($0) } + decoded).filter { $0.utf8.count >= 6 }
    }
}

/// Key and scope for AWS Signature Version 4, which libcurl computes as it sends the request.
struct AWSSignature: Equatable {
    /// `aws:amz:REGION:SERVICE`, the form of CURLOPT_AWS_SIGV4(3).
    var scope: String
    var accessKeyID: String
    var secret: Secret
}

/// The head of an answer and the beginning of its body. Hostile: the server chooses every byte.
package struct HTTPAnswer: Sendable, Equatable {
    var status: Int
    /// The body, up to the request's limit.
    var body: [UInt8] = []
    /// Texts of the request that are hidden wherever the body is shown.
    var secrets: [String] = []
    /// How much of the body was read.
    var extent = Extent.whole
    /// Value of `Retry-After`; read only from failures, like the next two.
    var retryAfter: String?
    /// Value of `x-ms-retry-after-ms`, which Azure sends.
    var retryAfterMilliseconds: String?
    /// Value of `Date`, against which a date in `Retry-After` is measured.
    var date: String?
    /// Value of `ETag`; read only for GET, like the next two.
    var etag: String?
    /// Value of `Content-Range`, which contains the size of the whole object.
    var contentRange: String?
    /// Value of `Content-Length`.
    var contentLength: String?
    /// Value of `X-ClickHouse-Exception-Code`.
    var clickHouseCode: String?
    /// For a `connect`: an open, non-blocking socket that belongs to the caller; otherwise -1.
    var socket: Int32 = -1

    /// How much of a body was read.
    package enum Extent: Sendable {
        case whole
        /// The body was longer than the request's limit, and is cut.
        case cutHere
        /// What came before the connection broke or the time was over.
        case brokenOff
    }

    /// Size of the whole object of which a part was requested; nil if the answer does not say it.
    var objectSize: Int? {
        switch status {
        case 206, 416: contentRange?.split(separator: "/").last.flatMap { Int($0) }
        // The server ignored the range and answered with the whole object.
        case 200: contentLength.flatMap { Int($0) }
        default: nil
        }
    }

    /// The beginning of the body as text, at most 1 KiB, without control characters and with secrets
    /// hidden.
    var excerpt: String { secrets.reduce(AnswerReader.excerpt(body)) { $0.replacingAll($1, with: "****") } }

    /// The failure to report for this answer, with the beginning of the body.
    func failure(_ message: String, _ kind: Failure.Kind = .status) -> Failure {
        Failure(kind: kind, status: status, message: message, excerpt: excerpt)
    }

    /// Time that the server wants to be left alone; nil if it names none.
    func wait(at now: Timestamp) -> Duration? {
        RetryAfter.wait(retryAfter: retryAfter, milliseconds: retryAfterMilliseconds, date: date, now: now)
    }
}

/// The result of a request.
enum HTTPResult: Sendable {
    /// At least the head of an answer was received.
    case answered(HTTPAnswer)
    /// No answer was received.
    case failed(Failure)
    /// The kernel has no route to the address: nothing left this machine, so the attempt does not count.
    case noRoute(Failure)
}
