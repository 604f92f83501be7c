internal import CLinux
internal import EventLoops
internal import Glibc

/// What tells a file from every other one that lives or lived in the spool: its handle (inode with generation).
///
/// An inode number comes back as soon as its file is gone; with the generation it does not. Where a file system gives
/// no handles (overlay), the time when the file was made stands in for the generation. Device numbers change from boot
/// to boot and are left out.
struct FileID: Hashable {
    /// Up to `shortest` bytes, and in the last one how many; zeros where `long` is set. There may be a million of these:
    /// those of the usual file systems need no memory of their own.
    private var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
    private var long: [UInt8]?

    private static let shortest = 23

    /// As the queue keeps it: a kind, then what the kernel says.
    var bytes: [UInt8] {
        if let long { return long }
        return withUnsafeBytes(of: words) { Array($0.prefix(Int($0[FileID.shortest]))) }
    }

    static func == (left: FileID, right: FileID) -> Bool { left.words == right.words && left.long == right.long }

    func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        if let long { hasher.combine(long) }
    }

    private enum Form: UInt8 {
        case handle = 1
        case birth = 2
        case inode = 3
    }

    /// An identity as it was kept.
    init(bytes: [UInt8]) { self = bytes.withUnsafeBytes { FileID($0) } }

    private init(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count <= FileID.shortest else {
            long = Array(bytes)
            return
        }
        withUnsafeMutableBytes(of: &words) {
            $0.copyMemory(from: bytes)
            $0[FileID.shortest] = UInt8(bytes.count)
        }
    }

    /// The identity of an open file; a descriptor that only looks will do.
    ///
    /// - Throws: `SystemError` where it cannot be told now; by another kind of identity the file would be another one.
    init(_ descriptor: borrowing Descriptor, _ status: FileStatus) throws(SystemError) {
        let number = descriptor.raw
        self = try withUnsafeTemporaryAllocation(byteCount: 2 + 128, alignment: 8) { buffer throws(SystemError) in
            var type: Int32 = 0
            let handle = UnsafeMutableRawBufferPointer(rebasing: buffer[2...])
            let bytes = handle.bindMemory(to: UInt8.self)
            let length = clinux_file_handle(number, bytes.baseAddress, bytes.count, &type)
            if length > 0 {
                buffer[0] = Form.handle.rawValue
                buffer[1] = UInt8(truncatingIfNeeded: type)
                return FileID(UnsafeRawBufferPointer(rebasing: buffer[..<(2 + Int(length))]))
            }
            guard FileID.isNotToBeHad(errno) else { throw SystemError("name_to_handle_at") }
            var birth: Int64 = 0
            guard clinux_birth_time(number, &birth) == 0 else {
                guard FileID.isNotToBeHad(errno) else { throw SystemError("statx") }
                return FileID(bytes: [Form.inode.rawValue] + FileID.bytes(of: status.inode))
            }
            return FileID(
                bytes: [Form.birth.rawValue] + FileID.bytes(of: status.inode)
                    + FileID.bytes(of: UInt64(bitPattern: birth)))
        }
    }

    /// Whether the file system, the kernel or a sandbox never tells.
    private static func isNotToBeHad(_ error: Int32) -> Bool {
        switch error {
        case EOPNOTSUPP, EOVERFLOW, ENOSYS, EPERM, EINVAL: true
        default: false
        }
    }

    private static func bytes(of number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
    }
}
