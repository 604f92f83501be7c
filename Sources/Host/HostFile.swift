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

    /// Writes a file as a whole, durably: whoever reads it finds the old text or the new one.
    static func replace(_ path: String, with text: String, mode: mode_t) throws(SystemError) {
        let temporary = path + ".new"
        unlink(temporary)
        do throws(SystemError) {
            let descriptor = try Descriptor(
                checking: open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode), "open")
            var left = Array(text.utf8)[...]
            while !left.isEmpty {
                let count = left.withUnsafeBytes { write(descriptor.raw, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw SystemError("write") }
                left = left.dropFirst(count)
            }
            guard fsync(descriptor.raw) == 0 else { throw SystemError("fsync") }
            guard rename(temporary, path) == 0 else { throw SystemError("rename") }
        } catch {
            unlink(temporary)
            throw error
        }
        let parent = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        let directory = try Descriptor(
            checking: open(parent.isEmpty ? "/" : parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open")
        guard fsync(directory.raw) == 0 else { throw SystemError("fsync") }
    }
}
