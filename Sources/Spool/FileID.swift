internal import CLinux
internal import EventLoops
internal import Glibc

/// What tells a file from every other one that lives or lived in the spool: its handle (inode with generation).
///
/// An inode number comes back as soon as its file is gone; with the generation it does not. Where a file system gives
/// no handles (overlay), the time when the file was made stands in for the generation. Device numbers change from boot
/// to boot and are left out.
struct FileID: Hashable {
    /// As the queue keeps it: a kind, then what the kernel says.
    let bytes: [UInt8]

    private enum Form: UInt8 {
        case handle = 1
        case birth = 2
        case inode = 3
    }

    /// An identity as it was kept.
    init(bytes: [UInt8]) { self.bytes = bytes }

    /// The identity of an open file; a descriptor that only looks will do.
    init(_ descriptor: borrowing Descriptor, _ status: FileStatus) {
        let number = descriptor.raw
        self.bytes = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 128) { buffer in
            var type: Int32 = 0
            let length = clinux_file_handle(number, buffer.baseAddress, buffer.count, &type)
            if length > 0 {
                return [Form.handle.rawValue, UInt8(truncatingIfNeeded: type)] + buffer.prefix(Int(length))
            }
            var birth: Int64 = 0
            guard clinux_birth_time(number, &birth) == 0 else {
                return [Form.inode.rawValue] + FileID.bytes(of: status.inode)
            }
            return [Form.birth.rawValue] + FileID.bytes(of: status.inode) + FileID.bytes(of: UInt64(bitPattern: birth))
        }
    }

    private static func bytes(of number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
    }
}
