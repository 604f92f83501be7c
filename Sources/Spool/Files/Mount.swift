internal import EventLoops
internal import Synchronization

/// A mount as described by the kernel's table (proc_pid_mountinfo(5)). The file system itself is not asked,
/// because a network or FUSE file system may never answer.
struct Mount: Error {
    /// The mount's id.
    let number: String
    /// Whether the file system is on a disk or in the memory of this machine, so that inotify sees all
    /// changes.
    let isLocal: Bool
    /// For FUSE, the user who runs the file system, and decides what it answers and whether; nil for others.
    let provider: UInt32?

    /// The mount of a descriptor's file.
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

    /// Local file systems that have no block device of their own (major number 0).
    private static let localTypes: Set<Substring> = [
        "bcachefs", "btrfs", "ecryptfs", "overlay", "ramfs", "rootfs", "tmpfs", "ubifs", "zfs",
    ]

    /// One thread for each mount that was ever asked, and for other calls that may block. A mount that never
    /// answers occupies its own thread only.
    private static let threads = Mutex<[String: EventLoop]>([:])

    /// Runs a question on the thread of a mount, after earlier questions. False if no thread could be
    /// created.
    static func ask(on name: String, _ number: String, _ question: @escaping @Sendable () -> Void) -> Bool {
        let thread = threads.withLock { threads in
            if threads[name + number] == nil, let new = try? EventLoop(name: name), (try? new.start()) != nil
            {
                threads[name + number] = new
            }
            return threads[name + number]
        }
        thread?.post(question)
        return thread != nil
    }
}
