internal import CCurl
internal import EventLoops
internal import Glibc
package import Model

/// Connects to a destination as a request would, for `check`: name, route, proxy, TLS with its
/// certificates. Sends neither a request nor a secret.
package enum HTTPHandshake {
    /// Makes one attempt. Blocks its thread, for `connectTimeout` at most.
    ///
    /// A server that judges the agent's certificate only with the first request, as nginx does, does not
    /// refuse it here.
    /// - Returns: what failed, in words that say what to do; nil if the connection was made.
    /// - Throws: `OutputError` for settings without meaning and unreadable files.
    package static func attempt(_ options: HTTPOptions) throws(OutputError) -> Failure? {
        try options.check()
        let settings = TransferSettings(options: options, tls: try TLSMaterial(options.settings.tls).contents)
        guard shim_curl_global_init() == CURLE_OK, let transfer = settings.makeTransfer(generation: 0) else {
            throw OutputError(.library, "libcurl could not be set up: no memory")
        }
        shim_curl_set_long(transfer.easy, CURLOPT_CONNECT_ONLY, 1)
        shim_curl_set_string(transfer.easy, CURLOPT_URL, options.url)
        let code = curl_easy_perform(transfer.easy)
        guard code == CURLE_OK else { return TransferFailure.describe(code, transfer, options) }
        return options.url.hasPrefix("https:") ? lateRefusal(transfer, options) : nil
    }

    /// The server's refusal of the agent's certificate after the handshake; nil if it sends none in time.
    /// With TLS 1.3 the client's side of the handshake is complete before the server has judged the
    /// client's certificate (RFC 8446, section 2).
    ///
    /// Blocks for 300 ms, or as long as the handshake took if that is longer: a refusal from far away needs
    /// about that time too.
    private static func lateRefusal(_ transfer: Transfer, _ options: HTTPOptions) -> Failure? {
        let handshake = Int64(shim_curl_info_offset(transfer.easy, CURLINFO_APPCONNECT_TIME_T))
        let end = SystemTime().monotonicMicroseconds + max(300_000, handshake)
        var socket = pollfd(fd: shim_curl_active_socket(transfer.easy), events: Int16(POLLIN), revents: 0)
        while true {
            var (byte, count): (UInt8, Int) = (0, 0)
            let code = curl_easy_recv(transfer.easy, &byte, 1, &count)
            if code == CURLE_OK, count > 0 { return nil }
            if code == CURLE_OK {
                return Failure(
                    kind: .tls,
                    message: TransferFailure.hungUp(HTTPAddress(options.url)?.host ?? "the destination"))
            }
            guard code == CURLE_AGAIN else { return TransferFailure.describe(code, transfer, options) }
            // Bytes without data are a session ticket of the server: a refusal may still follow.
            let left = (end - SystemTime().monotonicMicroseconds) / 1000
            guard left > 0, poll(&socket, 1, Int32(clamping: left)) > 0 else { return nil }
        }
    }
}
