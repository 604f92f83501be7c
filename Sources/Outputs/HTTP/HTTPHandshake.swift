internal import CCurl
public import EventLoops
public import Model

/// Opens a connection to a destination as a request would, and closes it again: name, route, proxy, TLS with its
/// certificates. No request is sent, and so no secret.
public enum HTTPHandshake {
    /// One attempt. Blocks, for `connectTimeout` at most.
    ///
    /// A server of TLS 1.3 looks at the agent's own certificate after the handshake: that it does not want it is told by the
    /// first request only.
    /// - Returns: what failed, in words that say what to do; nil when it came about.
    /// - Throws: `OutputError` for settings without meaning, and files that cannot be read.
    public static func attempt(_ options: HTTPOptions) throws(OutputError) -> Failure? {
        try options.check()
        let settings = TransferSettings(options: options, tls: try TLSMaterial(options.settings.tls).contents)
        guard shim_curl_global_init() == CURLE_OK, let transfer = settings.makeTransfer(generation: 0) else {
            throw OutputError(.library, "libcurl could not be set up: no memory")
        }
        shim_curl_set_long(transfer.easy, CURLOPT_CONNECT_ONLY, 1)
        shim_curl_set_string(transfer.easy, CURLOPT_URL, options.url)
        let code = curl_easy_perform(transfer.easy)
        return code == CURLE_OK ? nil : TransferFailure.describe(code, transfer, url: options.url)
    }
}
