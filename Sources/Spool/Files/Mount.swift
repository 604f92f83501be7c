internal import EventLoops
internal import Synchronization

/// A mount as described by the kernel's table (proc_pid_mountinfo(5)). The file system itself is not asked,
/// because a network or FUSE file system may never answer.
struct Mount: Error {
    /// The mount's id.
    let number: String
    /// Where the file system is mounted.
    let path: String
    /// Whether the file system is on a disk or in the memory of this machine, so that inotify sees all
    /// changes.
    let isLocal: Bool
    /// For FUSE, the user who runs the file system, and decides what it answers and whether; nil for others.
    let provider: UInt32?

    /// The mount of a descriptor's file.
    init(of descriptor: Int32) {
        let information = Mount.lines("fdinfo/\(descriptor)")
        let number = information.first { $0.hasPrefix("mnt_id:") }?.dropFirst(8) ?? ""
        self.init(line: Mount.lines("mountinfo").first { $0.hasPrefix("\(number) ") } ?? "")
    }

    /// The mount that a path is in, by the names in the path alone.
    init(atName path: String) {
        let mounts = Mount.lines("mountinfo").map { Mount(line: $0) }
        // Of several mounts on one directory the last one is seen.
        let found = mounts.reversed().filter { mount in
            mount.path == "/" || path == mount.path || path.hasPrefix(mount.path + "/")
        }.max { $0.path.utf8.count < $1.path.utf8.count }
        self = found ?? Mount(line: "")
    }

    /// The lines of a file of `/proc/self`; empty if it cannot be read.
    private static func lines(_ name: String) -> [Substring] {
        let bytes = try? WholeFile.bytes(of: "/proc/self/\(name)", atMost: 64 << 20)
        return String(decoding: (bytes ?? nil) ?? [], as: UTF8.self).split(separator: "\n")
    }

    /// A mount by its line in the kernel's table.
    private init(line: Substring) {
        // `36 35 98:0 / /mnt rw,noatime - ext3 /dev/root rw`; a source may be empty.
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        let device = words.dropFirst(2).first ?? "0:"
        let type = words.dropLast(2).last ?? ""
        number = words.first.map(String.init) ?? ""
        path = SilentFiles.mountPoints(in: Array(line.utf8)).first ?? ""
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

/// A mount whose file system may never answer: on another machine, or served by a process (FUSE).
public struct DistantMount: Sendable, Hashable {
    /// The mount's id.
    let number: String
    /// Where the file system is mounted.
    public let path: String

    /// Where a path leads; the path itself if its file system does not answer.
    public static func realPath(of path: String) -> String {
        onTheWay(of: path) == nil ? RealPath.of(path) : SilentFiles.realPath(of: path)
    }

    init(_ mount: Mount) { (number, path) = (mount.number, mount.path) }

    /// The first such mount on the way of a path; nil without one. No such file system is asked.
    public static func onTheWay(of path: String) -> DistantMount? {
        do {
            _ = try ReadPlace.opened(path)
        } catch let mount as Mount {
            return DistantMount(mount)
        } catch is ReadPlace.Refusal {
            // The way is one on which no directory of `read` is followed, as through a user's FUSE mount.
            let mount = Mount(atName: path)
            return mount.isLocal ? nil : DistantMount(mount)
        } catch {
            // Nothing is there.
        }
        return nil
    }
}
