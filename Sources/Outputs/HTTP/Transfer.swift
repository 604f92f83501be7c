internal import CCurl
internal import COpenSSL
internal import EventLoops
internal import Glibc
internal import Model

/// One request under way: libcurl's easy handle with the body, the headers and the answer that its
/// callbacks use. Reused for further requests. On its client's loop.
final class Transfer {
    /// libcurl's easy handle.
    let easy: UnsafeMutableRawPointer
    /// Number of the settings that the handle was made with; see `HTTPClient.generation`.
    let generation: Int
    /// Id of the present request, for cancellation and timers.
    var id: UInt64 = 0
    /// Id of the request that was given two seconds to end by itself; see `HTTPClient.endEarlyAnswers`.
    var graceFor: UInt64 = 0
    /// The waiting call; resumed once, by `HTTPClient.end`.
    var continuation: CheckedContinuation<HTTPResult, Never>?

    /// The connection that carries the request. Noted here because libcurl reports the socket only after the
    /// request.
    private(set) var connection = TransferConnection()

    /// What was received of the answer.
    private var received = ReceivedAnswer()
    /// Expiry of the server's certificate; nil if the request reused a connection.
    private(set) var serverExpiry: Timestamp?
    /// Prevents libcurl from sending the request a second time.
    private var repeats = RepeatGuard()
    /// Address of the request; unchanged addresses are not parsed again.
    private(set) var url = ""
    /// libcurl's parsed address.
    private let urlParts = curl_url()
    /// The method that the handle is set to.
    private(set) var method = HTTPRequest.Method.post
    /// The signature that the handle is set to; nil for none.
    private var signature: AWSSignature?
    /// The lines of the head.
    private var headers = RequestHeaders()
    /// The body.
    private var body = RequestBody()
    /// Buffer for libcurl's error message (CURLOPT_ERRORBUFFER(3)).
    private let errorText: UnsafeMutablePointer<CChar>
    /// Why the server's certificate was not accepted; OpenSSL's callback writes it.
    let verdict = UnsafeMutablePointer<shim_openssl_verdict>.allocate(capacity: 1)

    /// - Returns: nil if there is no memory.
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
        shim_curl_set_write(easy, { Transfer.give($0, $1 * $2, to: $3) { $0.keepBody($1) } }, me)
        shim_curl_set_header(easy, { Transfer.give($0, $1 * $2, to: $3) { $0.takeHead($1) } }, me)
        shim_curl_set_prerequest(
            easy,
            { context, _, _, _, _ in
                guard let context else { return CURL_PREREQFUNC_ABORT }
                let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
                return transfer.mayBeginRequest() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
            }, me)
    }

    /// Passes bytes of a callback to its transfer. Returns the number of bytes accepted; any number but
    /// `count` makes libcurl end the transfer.
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
        errorText.deallocate()
        verdict.deallocate()
    }

    /// libcurl's message about the failure; empty if it has none.
    var libraryText: String { String(cString: errorText) }

    /// Whether any bytes of an answer's head were received.
    var hasBegunAnswer: Bool { received.hasBegun }

    /// Whether the transfer was ended because the answer's head exceeded the limit.
    var isHeadTooLong: Bool { received.isHeadTooLong }

    /// Number of connections that this request has made.
    private var connections: Int { shim_curl_info_long(easy, CURLINFO_NUM_CONNECTS) }

    /// False prevents libcurl from repeating a request by itself.
    private func mayBeginRequest() -> Bool { repeats.mayBegin(connections: connections) }

    /// Whether libcurl gave up a request that it had begun to send, and wanted to send it again.
    func wantedRepeat(endingWith code: CURLcode) -> Bool {
        let codes = [
            CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY,
        ]
        return repeats.wantedRepeat(connections: connections, failedToConnect: codes.contains(code))
    }

    /// Sets the handle for the next request; nothing of the previous one remains.
    func prepare(_ request: borrowing HTTPRequest) {
        received.begin(limit: request.answerLimit)
        connection = TransferConnection()
        serverExpiry = nil
        repeats = RepeatGuard(repeatsAreHarmless: request.method == .get)
        errorText.pointee = 0
        let allowsCommonName = verdict.pointee.allows_common_name
        verdict.pointee = shim_openssl_verdict()
        verdict.pointee.allows_common_name = allowsCommonName
        body.set(request.body)
        setMethod(request.method)
        if request.method != .get {
            shim_curl_set_body(easy, body.start, body.count)
        }
        setSignature(request.signature)
        if headers.set(request.headers) {
            shim_curl_set_pointer(easy, CURLOPT_HTTPHEADER, headers.list)
        }
        if request.url != url {
            shim_curl_set_url(easy, urlParts, request.url)
            url = request.url
        }
    }

    /// Sets the method. Handles of `connect` are not reused, so their options need not be undone.
    private func setMethod(_ wanted: HTTPRequest.Method) {
        guard wanted != method else { return }
        method = wanted
        guard wanted != .connect else {
            shim_curl_set_long(easy, CURLOPT_CONNECT_ONLY, 1)
            // Through an HTTP proxy too, a tunnel is needed: the bytes that follow are not HTTP.
            shim_curl_set_long(easy, CURLOPT_HTTPPROXYTUNNEL, 1)
            return
        }
        shim_curl_set_long(easy, wanted == .get ? CURLOPT_HTTPGET : CURLOPT_POST, 1)
        // For libcurl a PUT from memory is a POST with another method name.
        shim_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, wanted == .put ? "PUT" : nil)
    }

    /// Sets what libcurl signs the request with, or that it signs none.
    private func setSignature(_ wanted: AWSSignature?) {
        guard wanted != signature else { return }
        shim_curl_set_string(easy, CURLOPT_AWS_SIGV4, wanted?.scope)
        shim_curl_set_string(easy, CURLOPT_USERNAME, wanted?.accessKeyID)
        shim_curl_set_string(easy, CURLOPT_PASSWORD, wanted?.secret.revealed)
        signature = wanted
    }

    /// Reads a line of the answer's head; false ends the transfer.
    ///
    /// libcurl knows the status as soon as it has read the status line. The status counts only with the
    /// empty line that ends the head of a final answer: until then the server may not have decided
    /// anything.
    private func takeHead(_ line: UnsafeRawBufferPointer) -> Bool {
        let isBlank = line.first == 0x0D || line.first == 0x0A
        let isEnd = isBlank && shim_curl_info_long(easy, CURLINFO_RESPONSE_CODE) >= 200
        if isEnd {
            noteUnreceived()
            // libcurl gives access to TLS only inside its callbacks; the certificate is new only with a new
            // connection.
            if shim_curl_info_long(easy, CURLINFO_NUM_CONNECTS) > 0 {
                serverExpiry = OpaquePointer(shim_curl_tls(easy)).flatMap(CertificateFile.peerEnd)
            }
        }
        return received.addHead(line.count, isEnd: isEnd)
    }

    /// Keeps a piece of the answer's body up to the limit; false ends the transfer.
    private func keepBody(_ piece: UnsafeRawBufferPointer) -> Bool {
        noteUnreceived()
        return received.addBody(piece)
    }

    /// libcurl uses this socket for the request.
    func socketIsUsed(_ socket: Int32) { connection.use(socket) }

    /// libcurl stops using the socket, and may close it next. Without an answer the request has failed, and
    /// the connection's state is needed to say why.
    func socketIsLeft() {
        if !received.hasHead {
            connection.leave()
        }
    }

    /// Size of the body, and how many of its bytes libcurl has given to the kernel.
    var progress: (size: Int, written: Int) { (body.count, body.count - unsent) }

    /// Bytes of the body that libcurl has not given to the kernel.
    private var unsent: Int { body.count - Int(shim_curl_info_offset(easy, CURLINFO_SIZE_UPLOAD_T)) }

    /// Notes how much of the body has not left this machine, the kernel's queue included, which may hold a
    /// megabyte and more.
    ///
    /// A server that answers a complete request has acknowledged it with the same packet, so the queue is
    /// then empty. Over HTTP/2 the queue is not counted: it may hold other requests.
    private func noteUnreceived() {
        guard body.count > 0 else { return }
        var queued: Int32 = 0
        if shim_curl_info_long(easy, CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_1_1) {
            if ioctl(connection.socket, UInt(TIOCOUTQ), &queued) != 0 {
                queued = 0
            }
        }
        received.unreceived = unsent + Int(queued)
    }

    /// Whether the answer came before the server could have the body: its head came while the body was
    /// being sent, or all of it came while bytes were still queued.
    var isAnsweredEarly: Bool {
        received.hasHead && (unsent > 0 || received.unreceived > 0 && hasWholeAnswer)
    }

    /// Whether the whole answer was received, according to its `Content-Length`.
    var hasWholeAnswer: Bool {
        received.isWhole(length: Int(shim_curl_info_offset(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)))
    }

    /// The answer so far; nil without a complete head.
    func answerRead(wholly: Bool) -> HTTPAnswer? {
        guard received.hasHead else { return nil }
        let status = shim_curl_info_long(easy, CURLINFO_RESPONSE_CODE)
        let extent: HTTPAnswer.Extent = received.isCut ? .cutHere : wholly ? .whole : .brokenOff
        var result = HTTPAnswer(status: status, body: received.kept, extent: extent)
        if method == .get {
            result.etag = header("ETag")
            result.contentRange = header("Content-Range")
            result.contentLength = header("Content-Length")
        }
        // Read from successes too: an answer with an error code is never an acknowledgement.
        result.clickHouseCode = header("X-ClickHouse-Exception-Code")
        // Only failures ask for a wait; most answers are successes, and need no look at these headers.
        if status >= 300 {
            result.retryAfter = header("Retry-After")
            result.retryAfterMilliseconds = header("x-ms-retry-after-ms")
            result.date = header("Date")
        }
        return result
    }

    /// Value of a header of the answer; nil if the answer lacks it.
    private func header(_ name: String) -> String? {
        shim_curl_header(easy, name).map { String(cString: $0) }
    }
}
