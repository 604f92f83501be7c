internal import CBuild
internal import CCurl
internal import CGzip
internal import CMicroHTTPD
internal import COpenSSL
internal import CSQLite
internal import CZstd

enum Build {
    /// The version, by semver.org.
    static let version = "0.1.0"

    /// The commit that it was built from, where the build said so.
    static let commit = String(cString: cbuild_commit())

    static var toolchain: String {
        #if compiler(>=6.5)
            "Swift 6.5 or newer"
        #elseif compiler(>=6.4)
            "Swift 6.4"
        #elseif compiler(>=6.3.1)
            "Swift 6.3.1"
        #elseif compiler(>=6.3)
            "Swift 6.3"
        #else
            "Swift 6.2"
        #endif
    }

    /// The libraries, with the versions that are loaded now (isa-l: that it was built with).
    static var libraries: [(name: String, version: String)] {
        [
            ("sqlite", String(cString: sqlite3_libversion())),
            ("curl", curlVersion),
            ("openssl", OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? "unknown"),
            ("zstd", String(cString: ZSTD_versionString())),
            ("isa-l", String(cString: cgzip_version())),
            ("libmicrohttpd", MHD_get_version().map { String(cString: $0) } ?? "unknown"),
        ]
    }

    /// curl tells the versions of all that it is made of; its own comes first: `libcurl/7.88.1 OpenSSL/…`.
    private static var curlVersion: String {
        guard let text = curl_version() else { return "unknown" }
        let own = String(cString: text).prefix { $0 != " " }
        return String(own.split(separator: "/").last ?? own)
    }
}
