internal import CCurl
internal import COpenSSL
internal import EventLoops
internal import Glibc
internal import Model

/// Puts what libcurl says of a failed transfer into words that say what to do.
enum TransferFailure {
    static func result(_ code: CURLcode, _ transfer: Transfer, _ options: HTTPOptions) -> HTTPResult {
        let failure = describe(code, transfer, options)
        return lacksRoute(code, transfer, options) ? .noRoute(failure) : .failed(failure)
    }

    static func describe(_ code: CURLcode, _ transfer: Transfer, _ options: HTTPOptions) -> Failure {
        let address = HTTPAddress(transfer.url.isEmpty ? options.url : transfer.url)
        let text = transfer.libraryText
        // The library calls it success when a head without a status ends a connection.
        let said = code == CURLE_OK ? "no status" : text.isEmpty ? String(cString: curl_easy_strerror(code)) : text
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
            case CURLE_COULDNT_RESOLVE_HOST: (.resolve, "cannot resolve \(host): check the url and the name servers")
            case CURLE_COULDNT_RESOLVE_PROXY: (.resolve, "cannot resolve \(host): check its name and the name servers")
            case CURLE_COULDNT_CONNECT: (.connect, connect(transfer, host, said))
            case CURLE_OPERATION_TIMEDOUT: timeout(transfer, host)
            case CURLE_PEER_FAILED_VERIFICATION: (.tls, verification(transfer.verdict.pointee, host, said))
            case CURLE_SSL_PINNEDPUBKEYNOTMATCH: (.tls, unpinned(host))
            case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE:
                (.local, "a certificate file of this destination cannot be used: \(said)")
            case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED, CURLE_SSL_ISSUER_ERROR,
                CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
                (.tls, noTLS(host, said))
            case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE:
                (.connection, "the connection to \(host) broke before an answer arrived: \(said)")
            case CURLE_PROXY: (.connect, "\(host) made no connection: \(said)")
            // The library says the same of a head that is longer than it keeps (100 KB).
            case CURLE_OUT_OF_MEMORY where transfer.hasBegunAnswer:
                (.connection, "the head of the answer of \(host) is too long, or there was no memory for it")
            case CURLE_OUT_OF_MEMORY, CURLE_FAILED_INIT, CURLE_URL_MALFORMAT, CURLE_NOT_BUILT_IN,
                CURLE_BAD_FUNCTION_ARGUMENT, CURLE_UNKNOWN_OPTION:
                (.local, "the request cannot be made: \(said)")
            default: (.protocolViolation, "the answer of \(host) is not HTTP: \(said)")
            }
        return Failure(kind: kind, message: message)
    }

    /// Who failed, for messages: the server itself, or while nothing of the request is on its way the proxy before it.
    private static func peer(
        _ transfer: Transfer, _ options: HTTPOptions, _ address: HTTPAddress?, hasTunnel: Bool
    ) -> String {
        guard let address else { return "the destination" }
        guard shim_curl_info_offset(transfer.easy, CURLINFO_PRETRANSFER_TIME_T) == 0,
            let proxy = options.proxy(to: address)
        else { return address.host }
        return hasTunnel ? "\(address.host) through \(proxy)" : "\(proxy) for \(address.host)"
    }

    /// A success before the request was there.
    static func early(_ status: Int, url: String) -> Failure {
        Failure(
            kind: .connection, status: status,
            message: "\(HTTPAddress(url)?.host ?? "the destination") answered \(status) before it had the events:"
                + " does a proxy answer instead?")
    }

    static func unpinned(_ host: String) -> String {
        "the public key of \(host) is not in pinned_keys: if it was changed on purpose, pin the new one"
    }

    static func noTLS(_ host: String, _ said: String) -> String {
        "no TLS with \(host): \(said): this port may not speak TLS, or only older versions, or require a certificate"
    }

    /// What the server's TLS said of us before it hung up; nil when it said nothing of that kind.
    ///
    /// With TLS 1.3 the server judges our certificate after our side is done: its alert, or only the end of the connection,
    /// comes when the request is on its way.
    static func refusedByServer(_ said: String, _ host: String) -> String? {
        let alerts: KeyValuePairs = [
            "certificate required":
                "\(host) requires a client certificate and got none: see tls.certificate_file and tls.key_file",
            "alert unknown ca":
                "\(host) does not know the CA of the agent's certificate (unknown ca): use one that it trusts",
            "alert bad certificate": "\(host) does not accept the agent's certificate (bad certificate)",
            "alert certificate expired": "\(host) says that the agent's certificate has expired: renew it",
            "alert certificate revoked": "\(host) says that the agent's certificate was revoked",
            "alert handshake failure":
                "\(host) shares no cipher with the agent, or requires a client certificate (handshake failure):"
                + " see tls.certificate_file and tls.minimum_version",
            "alert protocol version":
                "\(host) offers no TLS version that is allowed here: see tls.minimum_version",
        ]
        if let alert = alerts.first(where: { strstr(said, $0.key) != nil }) { return alert.value }
        // The library looks who is at the other end and finds that nobody is: its words hide why.
        return strstr(said, "getpeername() failed") != nil ? hungUp(host) : nil
    }

    /// A server that ends the connection when it has seen the agent's certificate, or none.
    static func hungUp(_ host: String) -> String {
        "\(host) closed the connection right after the TLS handshake: it may require a client certificate,"
            + " or not accept the agent's (tls.certificate_file)"
    }

    /// Whether the kernel knows no way to the destination (ac15). For agents that may not watch its routes.
    ///
    /// Told of numbers only: of a name's several addresses the last one that failed is known, and it may be one of a kind
    /// that this machine never has a way to.
    static func lacksRoute(_ code: CURLcode, _ transfer: Transfer, _ options: HTTPOptions) -> Bool {
        guard code == CURLE_COULDNT_CONNECT, let address = HTTPAddress(transfer.url), address.host.isHostNumber else {
            return false
        }
        let number = Int32(clamping: shim_curl_info_long(transfer.easy, CURLINFO_OS_ERRNO))
        // Without any address of its own the machine has no source for IPv6, which the kernel says in another word.
        guard number == ENETUNREACH || number == EADDRNOTAVAIL && address.host.hasPrefix("[") else { return false }
        return options.proxy(to: address) == nil
    }

    private static func connect(_ transfer: Transfer, _ host: String, _ said: String) -> String {
        let number = Int32(clamping: shim_curl_info_long(transfer.easy, CURLINFO_OS_ERRNO))
        guard number != 0 else { return "no connection to \(host): \(said)" }
        return
            "no connection to \(host): \(SystemError.message(number).lowercased()): is it running, is the port right?"
    }

    private static func timeout(_ transfer: Transfer, _ host: String) -> (Failure.Kind, String) {
        if shim_curl_info_offset(transfer.easy, CURLINFO_NAMELOOKUP_TIME_T) == 0 {
            return (.resolve, "the name of \(host) was not resolved in time: do the name servers answer?")
        }
        return shim_curl_info_offset(transfer.easy, CURLINFO_PRETRANSFER_TIME_T) == 0
            ? (.timeout, "no connection to \(host) in time (connect_timeout): a firewall may drop it")
            : (.timeout, "no answer from \(host) in time (request_timeout)")
    }

    /// What is wrong with the other side's certificate, or with one that it depends on.
    static func verification(_ verdict: shim_openssl_verdict, _ host: String, _ said: String) -> String {
        let name = withUnsafeBytes(of: verdict.name) { $0.prefix { $0 != 0 }.filter { (0x20...0x7E).contains($0) } }
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
            // The library compares names before it asks how the chain was verified.
            case X509_V_OK, X509_V_ERR_UNSPECIFIED, X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
                "is for another name: \(said)"
            default: "cannot be trusted: \(said)"
            }
        return "the certificate of \(host) \(about)"
    }
}
