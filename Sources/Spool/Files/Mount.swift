internal import EventLoops
internal import Synchronization

/// A file system where it is mounted, as the kernel's table describes it: it is not asked itself, because it may never answer.
struct Mount: Error {
    /// The kernel's number for it.
    let number: String
    /// Whether it is on a disk of this machine, or in its memory.
    let isLocal: Bool
    /// With FUSE, the user who decides what it answers, and whether; nil for others.
    let provider: UInt32?

    /// The one that a descriptor leads into.
    init(of descriptor: Int32) {
        func lines(_ name: String) -> [Substring] {
            let bytes = try? WholeFile.bytes(of: "/proc/self/\(name)", atMost: 64 << 20)
            return String(decoding: (bytes ?? nil) ?? [], as: UTF8.self).split(separator: "\n")
        }
        let number = lines("fdinfo/\(descriptor)").first { $0.hasPrefix("mnt_id:") }?.dropFirst(8) ?? ""
        let line = lines("mountinfo").first { $0.hasPrefix("\(number) ") } ?? ""
        // `36 35 98:0 / /mnt rw,noatime - ext3 /dev/root rw`; a source may be empty.
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        let (device, type) = (words.dropFirst(2).first ?? "0:", words.dropLast(2).last ?? "")
        self.number = String(number)
        isLocal = Mount.localTypes.contains(type) || !device.hasPrefix("0:") && type != "fuseblk"
        let user = words.last?.split(separator: ",").first { $0.hasPrefix("user_id=") }
        provider = type.hasPrefix("fuse") ? user.flatMap { UInt32($0.dropFirst(8)) } : nil
    }

    /// Those without a device of their own.
    private static let localTypes: Set<Substring> = [
        "bcachefs", "btrfs", "ecryptfs", "overlay", "ramfs", "rootfs", "tmpfs", "ubifs", "zfs",
    ]

    /// A thread for each mount that was ever asked, and for what else may block for long: one that never answers holds one.
    private static let threads = Mutex<[String: EventLoop]>([:])

    /// Asks something on one of them, after what it was asked before. False: there are no threads left.
    static func ask(on name: String, _ number: String, _ question: @escaping @Sendable () -> Void) -> Bool {
        let thread = threads.withLock { threads in
            if threads[name + number] == nil, let new = try? EventLoop(name: name), (try? new.start()) != nil {
                threads[name + number] = new
            }
            return threads[name + number]
        }
        thread?.post(question)
        return thread != nil
    }
}
