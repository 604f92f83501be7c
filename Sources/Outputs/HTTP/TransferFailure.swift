internal import CCurl
internal import COpenSSL
internal import EventLoops
internal import Glibc
internal import Model

/// Turns libcurl's error codes into failures whose messages say what happened and what to do.
enum TransferFailure {
    /// The result of a transfer without an answer.
    ///
    /// - Parameter waited: how long the thread lacked a CPU during the transfer.
    static func result(
        _ code: CURLcode, _ transfer: Transfer, _ options: HTTPOptions, waited: @autoclosure () -> Duration
    ) -> HTTPResult {
        // libcurl's error describes the prevented repeat; the first request may have been stored.
        if transfer.wantedRepeat(endingWith: code) { return .failed(unanswered(transfer, options)) }
        let failure = describe(code, transfer, options, waited: waited())
        return lacksRoute(code, transfer, options) ? .noRoute(failure) : .failed(failure)
    }

    /// The failure for an error code of libcurl.
    static func describe(
        _ code: CURLcode, _ transfer: Transfer, _ options: HTTPOptions,
        waited: @autoclosure () -> Duration = .zero
    ) -> Failure {
        let address = HTTPAddress(transfer.url.isEmpty ? options.url : transfer.url)
        let text = transfer.libraryText
        // libcurl reports success if a connection ends after a head without a status.
        let said =
            code == CURLE_OK ? "no status" : text.isEmpty ? String(cString: curl_easy_strerror(code)) : text
        // The proxy's answer to CONNECT (RFC 9110, section 9.3.6); 0 without a proxy.
        let tunnel = shim_curl_info_long(transfer.easy, CURLINFO_HTTP_CONNECTCODE)
        let host = peer(transfer, options, address, hasTunnel: (200...299).contains(tunnel))
        if code == CURLE_RECV_ERROR, tunnel >= 300 {
            let hint =
                switch tunnel {
                case 407: "it requires other credentials; see proxy"
                case 502...504: "it could not reach it"
                default: "see its rules"
                }
            return Failure(kind: .connect, message: "\(host) answered \(tunnel): \(hint)")
        }
        if let refusal = refusedByServer(said, host) { return Failure(kind: .tls, message: refusal) }
        let (kind, message): (Failure.Kind, String) =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST:
                (.resolve, "cannot resolve \(host): check the url and the name servers")
            case CURLE_COULDNT_RESOLVE_PROXY:
                (.resolve, "cannot resolve \(host): check its name and the name servers")
            case CURLE_COULDNT_CONNECT: (.connect, connect(transfer, host, said))
            case CURLE_OPERATION_TIMEDOUT: timeout(transfer, options, host, waited: waited())
            case CURLE_PEER_FAILED_VERIFICATION: (.tls, verification(transfer.verdict.pointee, host, said))
            case CURLE_SSL_PINNEDPUBKEYNOTMATCH: (.tls, unpinned(host))
            case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE:
                (.local, "a certificate file of this destination cannot be used: \(said)")
            case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED, CURLE_SSL_ISSUER_ERROR,
                CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
                (.tls, noTLS(host, said))
            case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE:
                (.connection, broken(transfer, options, host, said))
            case CURLE_PROXY: (.connect, "\(host) made no connection: \(said)")
            case CURLE_WRITE_ERROR where transfer.isHeadTooLong:
                (.connection, tooLongHead(host))
            // libcurl uses the same code for a line of the head that exceeds its own limit (100 KB).
            case CURLE_OUT_OF_MEMORY where transfer.hasBegunAnswer:
                (.connection, "a line of the answer's head of \(host) is too long, or there was no memory")
            case CURLE_OUT_OF_MEMORY, CURLE_FAILED_INIT, CURLE_URL_MALFORMAT, CURLE_NOT_BUILT_IN,
                CURLE_BAD_FUNCTION_ARGUMENT, CURLE_UNKNOWN_OPTION:
                (.local, "the request cannot be made: \(said)")
            default: (.protocolViolation, "the answer of \(host) is not HTTP: \(said)")
            }
        return Failure(kind: kind, message: message)
    }

    /// The message for an answer whose head the agent has not read to its end.
    private static func tooLongHead(_ host: String) -> String {
        "the head of the answer of \(host) is longer than \(ReceivedAnswer.largestHead >> 10) KiB"
    }

    /// Who failed, for messages: the server, or the proxy as long as nothing of the request was sent.
    private static func peer(
        _ transfer: Transfer, _ options: HTTPOptions, _ address: HTTPAddress?, hasTunnel: Bool
    ) -> String {
        guard let address else { return "the destination" }
        guard shim_curl_info_offset(transfer.easy, CURLINFO_PRETRANSFER_TIME_T) == 0,
            let proxy = options.proxy(to: address)
        else { return address.host }
        return hasTunnel ? "\(address.host) through \(proxy)" : "\(proxy) for \(address.host)"
    }

    /// The message for a connection that ended before an answer. A server that requires a client certificate
    /// may close the connection so early that its alert is lost, and only the kernel's error remains.
    private static func broken(
        _ transfer: Transfer, _ options: HTTPOptions, _ host: String, _ said: String
    ) -> String {
        let hint =
            !transfer.hasBegunAnswer && lacksCertificate(transfer, options)
            ? mayRequire(certificateHint) : ""
        return "the connection to \(host) broke before an answer arrived: \(said)\(hint)"
    }

    /// What a server may require that ends connections without a reason.
    private static func mayRequire(_ what: String) -> String {
        "; if this happens to each batch, the server may require \(what)"
    }

    /// How messages name the certificate that the agent shows, and its setting.
    private static let certificateHint = "a client certificate (tls.certificate)"

    /// Whether the agent has no certificate to show to a server that may ask for one.
    private static func lacksCertificate(_ transfer: Transfer, _ options: HTTPOptions) -> Bool {
        transfer.url.hasPrefix("https:") && options.settings.tls.certificateFile == nil
    }

    /// The failure for a reused connection that ended without an answer. There are two other causes: a server
    /// that wants a client certificate and ends new connections without a word, which libcurl does not always
    /// tell from reused ones, and with HTTP/2 a server that requires HTTP/1.1.
    private static func unanswered(_ transfer: Transfer, _ options: HTTPOptions) -> Failure {
        let url = transfer.url
        let host = HTTPAddress(url)?.host ?? "the destination"
        let broke = "the connection to \(host) broke before an answer arrived"
        if let refusal = refusedByServer(transfer.libraryText, host) {
            return Failure(kind: .connection, message: "\(broke): \(refusal)")
        }
        var hints: [String] = []
        if lacksCertificate(transfer, options) {
            hints.append(certificateHint)
        }
        if options.http.version == .http2 {
            hints.append("http_version = \"1.1\"")
        }
        let hint = hints.isEmpty ? "" : mayRequire(hints.joined(separator: " or "))
        return Failure(kind: .connection, message: "\(broke): the server closed a reused connection\(hint)")
    }

    /// The failure for a success that came before the request had arrived.
    static func early(_ status: Int, url: String) -> Failure {
        Failure(
            kind: .connection, status: status,
            message:
                "\(HTTPAddress(url)?.host ?? "the destination") answered \(status) before it had the events:"
                + " does a proxy answer instead?")
    }

    /// The message for a server whose public key is not pinned.
    static func unpinned(_ host: String) -> String {
        "the public key of \(host) is not in pinned_keys: if it was changed on purpose, pin the new one"
    }

    /// The message for a failed handshake whose reason is unknown.
    static func noTLS(_ host: String, _ said: String) -> String {
        "no TLS with \(host): \(said): this port may not speak TLS, or only older versions, or the server may"
            + " require \(certificateHint)"
    }

    /// The message for a TLS alert of the server; nil if libcurl's text names no alert.
    ///
    /// With TLS 1.3 the server judges the client certificate after the client's side is complete: its
    /// alert, or only the end of the connection, comes while the request is being sent.
    static func refusedByServer(_ said: String, _ host: String) -> String? {
        let alerts: KeyValuePairs = [
            "certificate required":
                "\(host) requires a client certificate and got none: see tls.certificate",
            "alert unknown ca":
                "\(host) does not know the CA of the agent's certificate (unknown ca): use one that it trusts",
            "alert bad certificate": "\(host) does not accept the agent's certificate (bad certificate)",
            "alert certificate expired": "\(host) says that the agent's certificate has expired: renew it",
            "alert certificate revoked": "\(host) says that the agent's certificate was revoked",
            "alert handshake failure":
                "\(host) shares no cipher with the agent, or requires a client certificate (handshake failure):"
                + " see tls.certificate and tls.minimum_version",
            "alert protocol version":
                "\(host) offers no TLS version that is allowed here: see tls.minimum_version",
        ]
        if let alert = alerts.first(where: { strstr(said, $0.key) != nil }) { return alert.value }
        // libcurl asks for the peer's address after the server has closed the connection, and reports that
        // error instead of the reason.
        return strstr(said, "getpeername() failed") != nil ? hungUp(host) : nil
    }

    /// The message for a server that closes the connection right after the handshake.
    static func hungUp(_ host: String) -> String {
        "\(host) closed the connection right after the TLS handshake: it may require a client certificate,"
            + " or not accept the agent's (tls.certificate)"
    }

    /// Whether the kernel has no route to the destination. For agents that may not watch the routes
    /// themselves.
    ///
    /// Answered only for IP addresses: for a name with several addresses, libcurl keeps the error of the
    /// last one, which may be of an IP version that this machine never has.
    static func lacksRoute(_ code: CURLcode, _ transfer: Transfer, _ options: HTTPOptions) -> Bool {
        guard code == CURLE_COULDNT_CONNECT, let address = HTTPAddress(transfer.url),
            address.host.isHostNumber
        else {
            return false
        }
        let number = Int32(clamping: shim_curl_info_long(transfer.easy, CURLINFO_OS_ERRNO))
        // A machine without any IPv6 address lacks a source address, which the kernel reports as
        // EADDRNOTAVAIL.
        guard number == ENETUNREACH || number == EADDRNOTAVAIL && address.host.hasPrefix("[") else {
            return false
        }
        return options.proxy(to: address) == nil
    }

    /// The message for a connection that was refused or could not be routed.
    private static func connect(_ transfer: Transfer, _ host: String, _ said: String) -> String {
        let number = Int32(clamping: shim_curl_info_long(transfer.easy, CURLINFO_OS_ERRNO))
        guard number != 0 else { return "no connection to \(host): \(said)" }
        return
            "no connection to \(host): \(SystemError.clause(number)): check that it runs, and the port"
    }

    /// The failure for a timeout, by the step at which it happened.
    private static func timeout(
        _ transfer: Transfer, _ options: HTTPOptions, _ host: String, waited: Duration
    ) -> (Failure.Kind, String) {
        // When libcurl completed a step; zero if it did not.
        func time(_ step: CURLINFO) -> Duration { .microseconds(shim_curl_info_offset(transfer.easy, step)) }
        let address = HTTPAddress(transfer.url.isEmpty ? options.url : transfer.url)
        let hasBegun = time(CURLINFO_PRETRANSFER_TIME_T) > .zero
        let hasTunnel = (200...299).contains(shim_curl_info_long(transfer.easy, CURLINFO_HTTP_CONNECTCODE))
        // Until the request is sent the limit is that of connecting; libcurl uses one code for both.
        let limit = hasBegun ? options.settings.requestTimeout : options.settings.connectTimeout
        var facts = TimeoutStep.Facts(limit: limit)
        // An IP address needs no look-up. Over HTTP/2 a request may also wait for the connection that
        // another request makes, with a look-up time of 0.
        let isNumber = address?.host.isHostNumber == true
        facts.isResolved = isNumber || time(CURLINFO_NAMELOOKUP_TIME_T) > .zero
        if !hasBegun {
            facts.awaitsProxy = !hasTunnel && address.flatMap { options.proxy(to: $0) } != nil
            facts.awaitsTLS = transfer.url.isEmpty || transfer.url.hasPrefix("https:")
        }
        let progress = transfer.progress
        facts.size = progress.size
        facts.written = progress.written
        facts.connection = transfer.connection.state
        // For libcurl a connection counts only when its tunnel and its TLS are complete.
        facts.isConnected = hasBegun || facts.connection?.isEstablished == true
        // If the thread did not run, its timer fired late: the excess over the limit is time without a CPU.
        facts.starved = max(waited, time(CURLINFO_TOTAL_TIME_T) - limit)
        let step = TimeoutStep(facts)
        return (step == .name ? .resolve : .timeout, step.words(for: host))
    }

    /// The message for a certificate that was not accepted: the server's, or one that it depends on.
    static func verification(_ verdict: shim_openssl_verdict, _ host: String, _ said: String) -> String {
        let name = withUnsafeBytes(of: verdict.name) {
            $0.prefix { $0 != 0 }.filter { (0x20...0x7E).contains($0) }
        }
        let called = "\"\(String(decoding: name, as: UTF8.self))\""
        let about =
            switch verdict.error {
            case X509_V_ERR_CERT_HAS_EXPIRED where verdict.is_ours != 0:
                "depends on \(called), which is trusted here (tls.ca_file) and has expired: replace it"
            case X509_V_ERR_CERT_HAS_EXPIRED where verdict.depth > 0:
                "depends on the intermediate \(called), which has expired: the server must send a newer one"
            case X509_V_ERR_CERT_HAS_EXPIRED: "has expired: renew it, or correct this machine's clock"
            case X509_V_ERR_CERT_NOT_YET_VALID: "is not valid yet: check the clocks of both machines"
            case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
                X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
                "is from an unknown CA, \(called): name it in tls.ca_file; if the CA above it is there, the server does not send"
                    + " its intermediate certificate"
            case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
                X509_V_ERR_CERT_UNTRUSTED:
                "is from an unknown CA, \(called): name it in tls.ca_file"
            case X509_V_ERR_APPLICATION_VERIFICATION:
                "names the server in its CN only (\(called)), which RFC 9525 forbids: issue one with"
                    + " subjectAltName, or set tls.allow_common_name = true"
            // The name is compared before the chain's result is asked for: no error of the chain means a
            // wrong name.
            case X509_V_OK, X509_V_ERR_UNSPECIFIED, X509_V_ERR_HOSTNAME_MISMATCH,
                X509_V_ERR_IP_ADDRESS_MISMATCH:
                "is for another name: \(said)"
            default: "cannot be trusted: \(said)"
            }
        return "the certificate of \(host) \(about)"
    }
}
