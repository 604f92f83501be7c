internal import EventLoops
internal import Glibc

/// A directory for one test, removed with all it holds when the last reference goes.
public final class TemporaryDirectory: Sendable {
    /// Its absolute path, without a slash at the end.
    public let path: String

    /// A new, empty directory.
    ///
    /// - Parameter parent: where to make it; default `/tmp`. For durability tests name a real disk.
    public init(in parent: String = "/tmp") throws {
        var template = Array("\(parent)/spoolship-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemError("mkdtemp") }
        path = template.withUnsafeBufferPointer { buffer in
            String(decoding: buffer.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    deinit { removeTree(path) }
}

/// Removes a directory and all below it, following no link; what cannot be removed stays.
public func removeTree(_ path: String) {
    // A test may have taken the permissions away.
    _ = chmod(path, 0o700)
    if let directory = opendir(path) {
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name != "." && name != ".." else { continue }
            if entry.pointee.d_type == DT_DIR {
                removeTree("\(path)/\(name)")
            } else {
                unlink("\(path)/\(name)")
            }
        }
        closedir(directory)
    }
    rmdir(path)
}
