internal import CCurl
internal import EventLoops
internal import Glibc
internal import Model

/// What every transfer to a destination is set up with, once for each handle.
struct TransferSettings: Sendable, Equatable {
    var options: HTTPOptions
    var tls: TLSMaterial.Contents
    /// Where the system's certificates are: a directory with names by hash, of which only those needed are read.
    var systemAuthorities = SystemAuthorities.find()

    /// - Returns: nil for want of memory.
    func makeTransfer(generation: Int) -> Transfer? {
        guard let transfer = Transfer(generation: generation) else { return nil }
        let easy = transfer.easy
        func set(_ option: CURLoption, _ value: Int) { shim_curl_set_long(easy, option, value) }
        func set(_ option: CURLoption, _ value: String) { shim_curl_set_string(easy, option, value) }
        set(CURLOPT_POST, 1)
        set(CURLOPT_USERAGENT, options.userAgent)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_NOSIGNAL, 1)
        // A transfer that ends while its name is looked up would wait for the resolver's thread, ten seconds with silent name
        // servers, and with it everything else on this loop. The thread ends by itself.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(
            CURLOPT_HTTP_VERSION,
            Int(options.settings.httpVersion == .http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
        set(CURLOPT_TCP_KEEPALIVE, 1)
        // Headers with secrets are for the destination, not for a proxy before it.
        set(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE))
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        setTimes(easy)
        setTLS(easy)
        setProxy(easy)
        return transfer
    }

    private func setTimes(_ easy: UnsafeMutableRawPointer) {
        func milliseconds(_ wait: Duration) -> Int { max(1, Int(wait.nanosecondsClamped / 1_000_000)) }
        func seconds(_ wait: Duration) -> Int { max(1, Int((wait.nanosecondsClamped + 999_999_999) / 1_000_000_000)) }
        let settings = options.settings
        let stall = options.stallTimeout ?? max(.seconds(30), settings.requestTimeout / 2)
        shim_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(settings.connectTimeout))
        shim_curl_set_long(easy, CURLOPT_TIMEOUT_MS, milliseconds(settings.requestTimeout))
        shim_curl_set_long(easy, CURLOPT_LOW_SPEED_LIMIT, 1)
        shim_curl_set_long(easy, CURLOPT_LOW_SPEED_TIME, seconds(stall))
        shim_curl_set_long(easy, CURLOPT_MAXLIFETIME_CONN, seconds(settings.maxConnectionAge))
        // Names are believed for a minute, but a young connection must not go to where the name no longer leads.
        shim_curl_set_long(easy, CURLOPT_DNS_CACHE_TIMEOUT, seconds(min(.seconds(60), settings.maxConnectionAge)))
    }

    private func setTLS(_ easy: UnsafeMutableRawPointer) {
        shim_curl_set_long(easy, CURLOPT_SSL_VERIFYPEER, 1)
        shim_curl_set_long(easy, CURLOPT_SSL_VERIFYHOST, 2)
        let version = options.settings.tls.minimumVersion == .tls13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        // A number of another kind from curl 8.14 on.
        shim_curl_set_long(easy, CURLOPT_SSLVERSION, Int(version))
        // By content, not by name: the library then sees that a connection was made with another certificate, and it
        // keeps no store of its own that outlives a change.
        if !tls.authorities.isEmpty {
            shim_curl_set_string(easy, CURLOPT_CAPATH, nil)
            shim_curl_set_string(easy, CURLOPT_CAINFO, nil)
            setBlob(easy, CURLOPT_CAINFO_BLOB, tls.authorities)
        } else if case .directory(let path) = systemAuthorities {
            shim_curl_set_string(easy, CURLOPT_CAINFO, nil)
            shim_curl_set_string(easy, CURLOPT_CAPATH, path)
        } else {
            shim_curl_set_long(easy, CURLOPT_CA_CACHE_TIMEOUT, 600)
        }
        if !tls.certificate.isEmpty {
            setBlob(easy, CURLOPT_SSLCERT_BLOB, tls.certificate)
            setBlob(easy, CURLOPT_SSLKEY_BLOB, tls.key)
        }
        let pins = options.settings.tls.pinnedKeys
        if !pins.isEmpty { shim_curl_set_string(easy, CURLOPT_PINNEDPUBLICKEY, pins.joined(separator: ";")) }
    }

    private func setBlob(_ easy: UnsafeMutableRawPointer, _ option: CURLoption, _ bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes { shim_curl_set_blob(easy, option, $0.baseAddress, $0.count) }
    }

    private func setProxy(_ easy: UnsafeMutableRawPointer) {
        if let proxy = options.settings.proxy {
            shim_curl_set_string(easy, CURLOPT_PROXY, proxy.text)
        } else if !options.mayUseProxyOfEnvironment {
            shim_curl_set_string(easy, CURLOPT_PROXY, "")
        }
    }
}

/// Where the system keeps the certificates that it trusts.
enum SystemAuthorities: Sendable, Equatable {
    /// A directory with names by hash: only those that are needed are read, and a change is seen at once.
    case directory(String)
    /// What the library was built with: one file with all of them, some megabytes of memory.
    case library

    /// Looks for Debian's directory.
    static func find(_ path: String = "/etc/ssl/certs") -> SystemAuthorities {
        for name in (try? WholeFile.names(in: path)) ?? [] {
            let parts = name.split(separator: ".", omittingEmptySubsequences: false)
            if parts.count == 2, parts[0].count == 8, parts[0].allSatisfy(\.isHexDigit), parts[1] == "0" {
                return .directory(path)
            }
        }
        return .library
    }
}
