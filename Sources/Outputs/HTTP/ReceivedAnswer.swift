/// What a transfer has received of an answer: counts, bounds, and the kept beginning of the body. It decides
/// when an answer has become too long, and knows nothing of libcurl.
struct ReceivedAnswer {
    /// Bytes of a body that are read and dropped beyond the limit before the transfer ends. Reading on
    /// keeps the connection usable; an endless answer must end.
    static let patience = 1 << 20
    /// Longest head of an answer in bytes.
    static let largestHead = 64 << 10

    /// The kept beginning of the body.
    private(set) var kept: [UInt8] = []
    /// Whether the body was longer than the limit.
    private(set) var isCut = false
    /// Number of bytes of the body to keep.
    private var limit = 0
    /// Number of body bytes received, including those that were not kept.
    private var bodyBytes = 0
    /// Number of head bytes received, interim answers (1xx) included.
    private var headBytes = 0
    /// Whether the complete head of a final answer was received.
    private(set) var hasHead = false
    /// Bytes of the request's body that had not reached the other machine when the last bytes of the answer
    /// came.
    var unreceived = 0

    /// Forgets the last answer; the storage of its body is used again.
    mutating func begin(limit: Int) {
        kept.removeAll(keepingCapacity: true)
        isCut = false
        self.limit = limit
        bodyBytes = 0
        headBytes = 0
        hasHead = false
        unreceived = 0
    }

    /// Whether any bytes of a head were received.
    var hasBegun: Bool { headBytes > 0 }

    /// Whether the head exceeded the limit, so that the transfer was ended.
    var isHeadTooLong: Bool { headBytes > ReceivedAnswer.largestHead }

    /// Counts a line of the head; false if the head is too long.
    ///
    /// - Parameter isEnd: whether the line ends the head of a final answer.
    mutating func addHead(_ count: Int, isEnd: Bool) -> Bool {
        headBytes += count
        hasHead = hasHead || isEnd
        return !isHeadTooLong
    }

    /// Keeps a piece of the body up to the limit; false if the body is too long to be read on.
    mutating func addBody(_ piece: UnsafeRawBufferPointer) -> Bool {
        bodyBytes += piece.count
        let room = limit - kept.count
        if piece.count > room {
            isCut = true
        }
        if room > 0 {
            kept.append(contentsOf: piece.prefix(room))
        }
        return bodyBytes <= limit + ReceivedAnswer.patience
    }

    /// Whether the head and a body of this length, by the answer's `Content-Length`, were received.
    func isWhole(length: Int) -> Bool { hasHead && length == bodyBytes }
}
