internal import EventLoops

/// Small files of the system.
enum HostFile {
    /// A file as text; nil when it cannot be read, or has more than 64 KiB.
    static func read(_ path: String) -> String? {
        (try? WholeFile.bytes(of: path, atMost: 64 << 10)).map { String(decoding: $0, as: UTF8.self) }
    }
}
