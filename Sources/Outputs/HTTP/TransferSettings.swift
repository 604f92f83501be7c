internal import CCurl
internal import COpenSSL
internal import EventLoops
internal import Glibc
internal import Model

/// The settings that all transfers to a destination share; applied once to each new handle.
struct TransferSettings: Sendable, Equatable {
    /// The destination's settings.
    var options: HTTPOptions
    /// Certificates and key in force.
    var tls: TLSMaterial.Contents
    /// Where the system's authorities are, for destinations without `ca_file`.
    var systemAuthorities = SystemAuthorities.find()

    /// A new handle with all settings.
    ///
    /// - Returns: nil if there is no memory.
    func makeTransfer(generation: Int) -> Transfer? {
        guard let transfer = Transfer(generation: generation) else { return nil }
        let easy = transfer.easy
        transfer.verdict.pointee.allows_common_name = options.settings.tls.allowsCommonName ? 1 : 0
        func set(_ option: CURLoption, _ value: Int) { shim_curl_set_long(easy, option, value) }
        func set(_ option: CURLoption, _ value: String) { shim_curl_set_string(easy, option, value) }
        set(CURLOPT_POST, 1)
        set(CURLOPT_USERAGENT, options.userAgent)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_NOSIGNAL, 1)
        // Without QUICK_EXIT, a transfer that ends during a name look-up waits for the resolver's thread,
        // ten seconds if the name servers are silent, and blocks the loop for that time. The thread ends by
        // itself later.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(
            CURLOPT_HTTP_VERSION,
            Int(options.http.version == .http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
        set(CURLOPT_TCP_KEEPALIVE, 1)
        // Headers may contain secrets: they are for the destination, not for the proxy's CONNECT.
        set(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE))
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        setTimes(easy)
        setTLS(easy)
        setProxy(easy)
        return transfer
    }

    /// A time in milliseconds, at least 1: libcurl takes 0 for its default.
    private func milliseconds(_ wait: Duration) -> Int { max(1, Int(wait.nanosecondsClamped / 1_000_000)) }

    /// A time in seconds, rounded up, at least 1.
    private func seconds(_ wait: Duration) -> Int {
        max(1, Int((wait.nanosecondsClamped + 999_999_999) / 1_000_000_000))
    }

    /// Sets the limits for the whole request and for a stall (no byte in either direction), times a factor.
    func limitTime(of transfer: Transfer, factor: Int) {
        let stall = options.stallTimeout ?? max(.seconds(30), options.settings.requestTimeout / 2)
        shim_curl_set_long(
            transfer.easy, CURLOPT_TIMEOUT_MS, milliseconds(options.settings.requestTimeout * factor))
        shim_curl_set_long(transfer.easy, CURLOPT_LOW_SPEED_TIME, seconds(stall * factor))
    }

    /// Sets the other limits of time. A stall is less than 1 byte a second.
    private func setTimes(_ easy: UnsafeMutableRawPointer) {
        let settings = options.settings
        shim_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(settings.connectTimeout))
        shim_curl_set_long(easy, CURLOPT_LOW_SPEED_LIMIT, 1)
        shim_curl_set_long(easy, CURLOPT_MAXLIFETIME_CONN, seconds(settings.maxConnectionAge))
        // Names are cached for a minute, but not longer than a connection may live: a new connection must
        // not go to an outdated address.
        shim_curl_set_long(
            easy, CURLOPT_DNS_CACHE_TIMEOUT, seconds(min(.seconds(60), settings.maxConnectionAge)))
    }

    /// Sets verification, versions, authorities, the client certificate and pinned keys.
    private func setTLS(_ easy: UnsafeMutableRawPointer) {
        shim_curl_set_long(easy, CURLOPT_SSL_VERIFYPEER, 1)
        shim_curl_set_long(easy, CURLOPT_SSL_VERIFYHOST, 2)
        let version =
            options.settings.tls.minimumVersion == .tls13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        // The constant has another type from curl 8.14 on.
        shim_curl_set_long(easy, CURLOPT_SSLVERSION, Int(version))
        // Passed by content: libcurl then notices that a connection was made with other certificates, and
        // keeps no cache of its own that outlives a change of the file.
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
        if !pins.isEmpty {
            shim_curl_set_string(easy, CURLOPT_PINNEDPUBLICKEY, pins.joined(separator: ";"))
        }
    }

    /// Gives libcurl a copy of a file's content.
    private func setBlob(_ easy: UnsafeMutableRawPointer, _ option: CURLoption, _ bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes { shim_curl_set_blob(easy, option, $0.baseAddress, $0.count) }
    }

    /// Sets the proxy; an empty one stops libcurl from reading the environment.
    private func setProxy(_ easy: UnsafeMutableRawPointer) {
        if let proxy = options.settings.proxy {
            shim_curl_set_string(easy, CURLOPT_PROXY, proxy.text)
        } else if !options.mayUseProxyOfEnvironment {
            shim_curl_set_string(easy, CURLOPT_PROXY, "")
        }
    }
}

/// Where the system keeps the authorities that it trusts.
enum SystemAuthorities: Sendable, Equatable {
    /// A directory with files named by hash (openssl-rehash(1)): only those needed are read, and changes
    /// count at once.
    case directory(String)
    /// libcurl's built-in location: one file with all authorities, some megabytes of memory once parsed.
    case library

    /// Finds Debian's directory, if it has at least one file named by hash.
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
