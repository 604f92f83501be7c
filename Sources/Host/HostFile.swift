internal import EventLoops
internal import Glibc

/// Small files of the system.
enum HostFile {
    /// The first 64 KiB of a file as text; nil when it cannot be read.
    static func read(_ path: String) -> String? {
        guard let descriptor = try? Descriptor(checking: open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), "open") else {
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = Glibc.read(descriptor.raw, &bytes, bytes.count)
        return count >= 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
}
