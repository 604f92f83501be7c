internal import CLinux
internal import EventLoops
internal import Glibc

/// Reports that the host was renamed, or that the machine's time zone was set. Costs nothing while neither
/// happens. It lives on the main loop.
///
/// A name that only a resolver knows, and rules of a zone that an update of tzdata changes, are read at the
/// next start.
actor HostWatch: LoopActor {
    /// Time from an event to the call: `timedatectl` and `hostnamectl` change several things one after the
    /// other.
    private static let settling = Duration.milliseconds(500)

    nonisolated let loop: EventLoop
    /// The kernel's name of the host, of which poll(2) reports changes (proc_sys_poll).
    private let nameFile: String
    /// The directory and the name of the link to the zone's file.
    private let zone: (directory: String, name: String)
    private let changed: @Sendable () -> Void
    private var hostName: Descriptor?
    private var inotify: Descriptor?
    private var timer: EventLoop.TimerID?

    /// - Parameters:
    ///   - localTime: the link to the zone's file.
    ///   - changed: called on the loop; something may have changed.
    init(
        on loop: EventLoop, nameFile: String = "/proc/sys/kernel/hostname",
        localTime: String = "/etc/localtime", changed: @escaping @Sendable () -> Void
    ) {
        self.loop = loop
        self.nameFile = nameFile
        let parts = localTime.split(separator: "/")
        zone = ("/" + parts.dropLast().joined(separator: "/"), parts.last.map { String($0) } ?? "")
        self.changed = changed
    }

    /// Begins to watch the host's name and the time zone. A change of one that cannot be watched counts from
    /// the next start.
    ///
    /// - Returns: whether both are watched.
    @discardableResult func start() -> Bool {
        if let file = try? Descriptor(checking: open(nameFile, O_RDONLY | O_CLOEXEC | O_NONBLOCK), "open"),
            (try? loop.watch(file.raw, for: .priority, { _ in self.assumeIsolated { $0.renamed() } })) != nil
        {
            hostName = consume file
        }
        let mask = UInt32(IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR)
        guard
            let queue = try? Descriptor(
                checking: inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC)), "inotify_init1"),
            inotify_add_watch(queue.raw, zone.directory, mask) >= 0,
            (try? loop.watch(queue.raw, for: .readable, { _ in self.assumeIsolated { $0.namesChanged() } }))
                != nil
        else { return false }
        inotify = consume queue
        return hostName != nil
    }

    func stop() {
        if let raw = hostName?.raw {
            loop.forget(raw)
        }
        if let raw = inotify?.raw {
            loop.forget(raw)
        }
        if let timer {
            loop.cancel(timer)
        }
        hostName = nil
        inotify = nil
        timer = nil
    }

    /// The kernel reports that the host's name was set.
    private func renamed() {
        // Read to the end: a kernel may go on to report until that was done.
        if let raw = hostName?.raw {
            var name = [UInt8](repeating: 0, count: 256)
            _ = pread(raw, &name, name.count, 0)
        }
        plan()
    }

    /// Names have appeared in the directory of the zone's link.
    private func namesChanged() {
        guard let raw = inotify?.raw else { return }
        var bytes = [UInt8](repeating: 0, count: 4096)
        var isOfZone = false
        while true {
            let count = read(raw, &bytes, bytes.count)
            guard count > 0 else { break }
            bytes.withUnsafeBytes { buffer in
                var offset = 0
                let header = MemoryLayout<inotify_event>.size
                while offset + header <= count {
                    let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
                    let end = min(count, offset + header + Int(event.len))
                    let name = buffer[(offset + header)..<end].prefix { $0 != 0 }
                    isOfZone = isOfZone || event.len == 0 || name.elementsEqual(zone.name.utf8)
                    offset = end
                }
            }
        }
        if isOfZone {
            plan()
        }
    }

    /// Calls `changed` soon, once for several events.
    private func plan() {
        guard timer == nil else { return }
        timer = loop.after(HostWatch.settling) { self.assumeIsolated { $0.report() } }
    }

    private func report() {
        timer = nil
        changed()
    }
}
