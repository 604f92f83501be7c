internal import EventLoops
internal import Glibc

final class DirectoryStream {
    private let stream: OpaquePointer

    init(_ looked: borrowing Descriptor) throws(SystemError) {
        let readable = try FileSystem.read(looked, directory: true)
        guard let stream = fdopendir(readable.raw) else { throw SystemError("fdopendir") }
        // The stream closes it from now on.
        _ = readable.release()
        self.stream = stream
    }

    deinit { closedir(stream) }

    /// The directory's descriptor, for as long as this lives.
    var descriptor: Int32 { dirfd(stream) }

    private var isRemoved: Bool { (try? FileStatus(of: descriptor))?.links == 0 }

    /// The next name, and its type as the directory tells it; nil at the end.
    func next() throws(SystemError) -> (name: FileName, type: Int, inode: UInt64)? {
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                let number = errno
                // ENOENT is the end of a directory that was removed, and of no other.
                if number == 0 || number == ENOENT && isRemoved { return nil }
                throw SystemError("readdir", number: number)
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { FileName($0.prefix { $0 != 0 }) }
            if name.bytes == [0x2E] || name.bytes == [0x2E, 0x2E] { continue }
            return (name, Int(entry.pointee.d_type), UInt64(entry.pointee.d_ino))
        }
    }
}
