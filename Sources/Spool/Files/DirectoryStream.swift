internal import EventLoops
internal import Glibc

/// The names in a directory, read one at a time (readdir(3)), so that a directory of millions of names can be
/// listed in slices. Closes its descriptor when it is freed.
final class DirectoryStream {
    private let stream: OpaquePointer

    /// - Parameter looked: a descriptor opened with O_PATH; it is reopened for reading.
    init(_ looked: borrowing Descriptor) throws(SystemError) {
        let readable = try FileSystem.read(looked, directory: true)
        guard let stream = fdopendir(readable.raw) else { throw SystemError("fdopendir") }
        // The stream owns the descriptor from now on.
        _ = readable.release()
        self.stream = stream
    }

    deinit { closedir(stream) }

    /// The directory's descriptor; valid as long as the stream.
    var descriptor: Int32 { dirfd(stream) }

    private var isRemoved: Bool { (try? FileStatus(of: descriptor))?.links == 0 }

    /// The next name with its type (d_type, may be DT_UNKNOWN) and inode number; nil at the end.
    func next() throws(SystemError) -> (name: FileName, type: Int, inode: UInt64)? {
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                let number = errno
                // ENOENT is the normal end only if the directory was removed.
                if number == 0 || number == ENOENT && isRemoved { return nil }
                throw SystemError("readdir", number: number)
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { FileName($0.prefix { $0 != 0 }) }
            if name.bytes == [0x2E] || name.bytes == [0x2E, 0x2E] { continue }
            return (name, Int(entry.pointee.d_type), UInt64(entry.pointee.d_ino))
        }
    }
}
