internal import Glibc

extension WholeFile {
    /// What is left of an open file, to its end; nil when that is more than `limit` bytes.
    public static func bytes(of raw: Int32, atMost limit: Int) throws(SystemError) -> [UInt8]? {
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= limit {
            let count = read(raw, &block, block.count)
            if count == 0 { return bytes }
            if count > 0 { bytes += block[..<count] } else if errno != EINTR { throw SystemError("read") }
        }
        return nil
    }

    /// A file, whole; nil when it has more than `limit` bytes. Waits for no writer of a FIFO.
    public static func bytes(of path: String, atMost limit: Int) throws(SystemError) -> [UInt8]? {
        let file = try Descriptor(checking: open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), "open")
        return try bytes(of: file.raw, atMost: limit)
    }

    /// The names in a directory, in no order, without `.` and `..`; no more than `most`.
    public static func names(in directory: String, atMost most: Int = .max) throws(SystemError) -> [String] {
        guard let stream = opendir(directory) else { throw SystemError("opendir") }
        defer { closedir(stream) }
        var names: [String] = []
        while names.count < most, let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
