internal import CCurl
internal import COpenSSL
internal import EventLoops
internal import Glibc
internal import Model

/// A reusable easy handle with what it needs while it works: body, headers, room for the answer. On its client's loop.
final class Transfer {
    /// How many bytes of an answer are read and thrown away beyond those that are kept, before the transfer is ended.
    static let patience = 1 << 20
    /// The longest head of an answer, in bytes.
    static let largestHead = 64 << 10

    let easy: UnsafeMutableRawPointer
    let generation: Int
    var id: UInt64 = 0
    /// Which request has been given time to end by itself; see `HTTPClient.endEarlyAnswers`.
    var graceFor: UInt64 = 0
    var continuation: CheckedContinuation<HTTPResult, Never>?

    /// What it is sent over; -1 before that is known. The library itself tells it only once it is done.
    var socket: Int32 = -1

    private(set) var answer: [UInt8] = []
    private var answerWasCut = false
    private var answerLimit = 0
    private var answered = 0
    private var headBytes = 0
    private var hasHead = false
    /// How much of the body had not reached the other machine when the last of the answer came.
    private var unreceived = 0
    /// When the certificate ends that the destination has shown; nil where the connection was made before.
    private(set) var serverExpiry: Timestamp?
    private var sent = 0
    private(set) var url = ""
    private let urlParts = curl_url()
    private(set) var method = HTTPRequest.Method.post
    private var signature: AWSSignature?
    private var headers: UnsafeMutablePointer<curl_slist>?
    /// What the list holds; empty where some of it is missing.
    private var headerLines: [String] = []
    private var body = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private let errorText: UnsafeMutablePointer<CChar>
    /// Why the server's certificate was not accepted.
    let verdict = UnsafeMutablePointer<shim_openssl_verdict>.allocate(capacity: 1)

    /// - Returns: nil for want of memory.
    init?(generation: Int) {
        guard let easy = curl_easy_init() else { return nil }
        self.easy = easy
        self.generation = generation
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        shim_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
        verdict.initialize(to: shim_openssl_verdict())
        shim_curl_set_tls(
            easy,
            { _, tls, verdict in
                shim_openssl_note_verdict(
                    OpaquePointer(tls), verdict?.assumingMemoryBound(to: shim_openssl_verdict.self))
                return CURLE_OK
            }, verdict)
        let me = Unmanaged.passUnretained(self).toOpaque()
        shim_curl_set_write(easy, { Transfer.give($0, $1 * $2, to: $3) { $0.take($1) } }, me)
        shim_curl_set_header(easy, { Transfer.give($0, $1 * $2, to: $3) { $0.takeHead($1) } }, me)
    }

    /// Gives a piece to the transfer of a callback: how much of it was taken, all or nothing.
    private static func give(
        _ bytes: UnsafePointer<CChar>?, _ count: Int, to context: UnsafeMutableRawPointer?,
        _ take: (Transfer, UnsafeRawBufferPointer) -> Bool
    ) -> Int {
        guard let bytes, let context else { return 0 }
        let piece = UnsafeRawBufferPointer(start: bytes, count: count)
        return take(Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue(), piece) ? count : 0
    }

    deinit {
        curl_easy_cleanup(easy)
        curl_url_cleanup(urlParts)
        curl_slist_free_all(headers)
        body.deallocate()
        errorText.deallocate()
        verdict.deallocate()
    }

    /// What the library says of the failure, in its words; empty when it says nothing.
    var libraryText: String { String(cString: errorText) }

    var hasBegunAnswer: Bool { headBytes > 0 }

    func prepare(_ request: borrowing HTTPRequest) {
        answer.removeAll(keepingCapacity: true)
        answerWasCut = false
        answerLimit = request.answerLimit
        answered = 0
        headBytes = 0
        hasHead = false
        unreceived = 0
        socket = -1
        serverExpiry = nil
        sent = request.body.count
        errorText.pointee = 0
        verdict.pointee = shim_openssl_verdict()
        // The library reads the body where it is until the transfer ends, and an array may not promise to stay.
        if body.count < request.body.count {
            body.deallocate()
            body = .allocate(byteCount: request.body.count, alignment: 16)
        }
        request.body.withUnsafeBytes { body.copyMemory(from: $0) }
        setMethod(request.method)
        if request.method != .get { shim_curl_set_body(easy, body.baseAddress, request.body.count) }
        setSignature(request.signature)
        setHeaders(request.headers)
        if request.url != url {
            shim_curl_set_url(easy, urlParts, request.url)
            url = request.url
        }
    }

    private func setMethod(_ wanted: HTTPRequest.Method) {
        guard wanted != method else { return }
        method = wanted
        guard wanted != .connect else {
            shim_curl_set_long(easy, CURLOPT_CONNECT_ONLY, 1)
            // A proxy is not spoken to as if all were HTTP.
            shim_curl_set_long(easy, CURLOPT_HTTPPROXYTUNNEL, 1)
            return
        }
        shim_curl_set_long(easy, wanted == .get ? CURLOPT_HTTPGET : CURLOPT_POST, 1)
        // To the library a PUT from memory is a POST by another name.
        shim_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, wanted == .put ? "PUT" : nil)
    }

    private func setSignature(_ wanted: AWSSignature?) {
        guard wanted != signature else { return }
        shim_curl_set_string(easy, CURLOPT_AWS_SIGV4, wanted?.scope)
        shim_curl_set_string(easy, CURLOPT_USERNAME, wanted?.accessKeyID)
        shim_curl_set_string(easy, CURLOPT_PASSWORD, wanted?.secret.revealed)
        signature = wanted
    }

    private func setHeaders(_ lines: [String]) {
        if replaceHeaders(lines) { return }
        curl_slist_free_all(headers)
        headers = nil
        headerLines = lines
        for line in lines {
            if let longer = curl_slist_append(headers, line) {
                headers = longer
            } else {
                // For want of memory the list stays as it was; a request without a header is answered as such.
                headerLines = []
            }
        }
        shim_curl_set_pointer(easy, CURLOPT_HTTPHEADER, headers)
    }

    /// Puts other lines in the places of those that differ: of one request and the next that is the batch's id.
    ///
    /// - Returns: false where there are more or fewer lines than before, or no memory.
    private func replaceHeaders(_ lines: [String]) -> Bool {
        guard !lines.isEmpty, lines.count == headerLines.count else { return false }
        var entry = headers
        for (place, line) in lines.enumerated() {
            guard let current = entry else { return false }
            if line != headerLines[place] {
                guard let copy = strdup(line) else { return false }
                free(current.pointee.data)
                current.pointee.data = copy
                headerLines[place] = line
            }
            entry = current.pointee.next
        }
        return true
    }

    /// Follows the lines of the answer's head; false ends the transfer.
    ///
    /// The library tells a status as soon as it has read its line. It counts only with the empty line that ends the head
    /// of a final answer: until then the other side may not have decided anything.
    private func takeHead(_ line: UnsafeRawBufferPointer) -> Bool {
        headBytes += line.count
        if line.first == 0x0D || line.first == 0x0A, shim_curl_info_long(easy, CURLINFO_RESPONSE_CODE) >= 200 {
            hasHead = true
            noteUnreceived()
            // The connection's TLS is at hand only inside the library's calls, and new with the connection.
            if shim_curl_info_long(easy, CURLINFO_NUM_CONNECTS) > 0 {
                serverExpiry = OpaquePointer(shim_curl_tls(easy)).flatMap(CertificateFile.peerEnd)
            }
        }
        return headBytes <= Transfer.largestHead
    }

    /// Keeps a piece of the answer's body; false ends the transfer.
    private func take(_ piece: UnsafeRawBufferPointer) -> Bool {
        answered += piece.count
        noteUnreceived()
        let room = answerLimit - answer.count
        if piece.count > room { answerWasCut = true }
        if room > 0 { answer.append(contentsOf: piece.prefix(room)) }
        return answered <= answerLimit + Transfer.patience
    }

    private var unsent: Int { sent - Int(shim_curl_info_offset(easy, CURLINFO_SIZE_UPLOAD_T)) }

    /// Looks in the kernel too: of what it took from the library a megabyte and more may not have left this machine.
    ///
    /// Whoever answers a whole request has received it, and says so with the same packet. Over HTTP/2 the library may have written
    /// other things since.
    private func noteUnreceived() {
        guard sent > 0 else { return }
        var queued: Int32 = 0
        if shim_curl_info_long(easy, CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_1_1) {
            if socket < 0 || ioctl(socket, UInt(TIOCOUTQ), &queued) != 0 { queued = 0 }
        }
        unreceived = unsent + Int(queued)
    }

    /// Whether an answer's head is there while the body is still being sent: over HTTP/2 nothing more may come of it. Or all of an
    /// answer was there before the other side could have the body.
    var isAnsweredEarly: Bool { hasHead && (unsent > 0 || unreceived > 0 && hasWholeAnswer) }

    /// Whether all of the answer is there, as far as it told its length.
    var hasWholeAnswer: Bool {
        hasHead && shim_curl_info_offset(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T) == answered
    }

    func answerRead(wholly: Bool) -> HTTPAnswer? {
        guard hasHead else { return nil }
        let status = shim_curl_info_long(easy, CURLINFO_RESPONSE_CODE)
        let extent: HTTPAnswer.Extent = answerWasCut ? .cutHere : wholly ? .whole : .brokenOff
        var result = HTTPAnswer(status: status, body: answer, extent: extent)
        if method == .get {
            result.etag = header("ETag")
            result.contentRange = header("Content-Range")
            result.contentLength = header("Content-Length")
        }
        // Of good answers too: an error is none.
        result.clickHouseCode = header("X-ClickHouse-Exception-Code")
        // Only failures say when to come back; looking costs nothing worth mentioning, but most answers are good.
        if status >= 300 {
            result.retryAfter = header("Retry-After")
            result.retryAfterMilliseconds = header("x-ms-retry-after-ms")
            result.date = header("Date")
        }
        return result
    }

    private func header(_ name: String) -> String? {
        shim_curl_header(easy, name).map { String(cString: $0) }
    }
}
