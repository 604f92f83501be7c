internal import CCurl
internal import EventLoops
internal import Glibc
package import Model

/// Connects to a destination as a request would: name, route, proxy, TLS with its certificates; sends no secret.
package enum HTTPHandshake {
    /// One attempt. Blocks, for `connectTimeout` at most.
    ///
    /// A server that judges the agent's certificate with the first request only, as nginx does, is not seen to refuse it.
    /// - Returns: what failed, in words that say what to do; nil when it came about.
    /// - Throws: `OutputError` for settings without meaning, and files that cannot be read.
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

    /// What the server says against the agent's certificate after the handshake: with TLS 1.3 our side is done first.
    ///
    /// Blocks for 300 ms, or for as long as the handshake took, which an answer from far away may need as well.
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
                    kind: .tls, message: TransferFailure.hungUp(HTTPAddress(options.url)?.host ?? "the destination"))
            }
            guard code == CURLE_AGAIN else { return TransferFailure.describe(code, transfer, options) }
            // What comes now and is no answer is a ticket for the next session: a refusal may still follow.
            let left = (end - SystemTime().monotonicMicroseconds) / 1000
            guard left > 0, poll(&socket, 1, Int32(clamping: left)) > 0 else { return nil }
        }
    }
}
