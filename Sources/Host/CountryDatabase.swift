internal import CMaxMind
public import EventLoops
public import Events

/// Countries of addresses, from a MaxMind database (GeoLite2-Country and similar ones).
///
/// libmaxminddb is loaded when a database is opened, so that installations without one do not need it. The
/// file is mapped into memory: a new version must be opened again.
public final class CountryDatabase {
    /// The library's handle, closed with this object.
    private let database: OpaquePointer

    /// Opens a database.
    ///
    /// - Throws: `HostError` with code `countryDatabase`.
    public init(path: String) throws(HostError) {
        var message = [CChar](repeating: 0, count: 256)
        guard let opened = cmaxmind_open(path, &message, message.count) else {
            let reason = String(
                decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw HostError(.countryDatabase, "the country database \(path) cannot be used: \(reason)")
        }
        database = opened
    }

    deinit { cmaxmind_close(database) }

    /// The country of an IPv4 or IPv6 address in text form. If only the country of its registration is
    /// known, that one; nil if neither is.
    public func country(of address: String) -> CountryCode? {
        var code: (CChar, CChar) = (0, 0)
        let found = withUnsafeMutableBytes(of: &code) { bytes in
            guard let start = bytes.baseAddress else { return false }
            return cmaxmind_country(database, address, start.assumingMemoryBound(to: CChar.self)) == 1
        }
        return found
            ? CountryCode(
                String(decoding: [UInt8(bitPattern: code.0), UInt8(bitPattern: code.1)], as: UTF8.self)) : nil
    }
}
