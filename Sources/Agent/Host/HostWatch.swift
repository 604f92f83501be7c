internal import EventLoops
internal import Glibc
internal import Spool

/// Reports that the host was renamed, or that the machine's time zone was set. Costs nothing while neither
/// happens. It lives on the loop *reader*, whose inotify instance it shares.
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
    private let shared: LoopBound<SharedReading>
    private var zoneWatch: NameWatch?
    private var timer: EventLoop.TimerID?

    /// - Parameters:
    ///   - shared: what the readers of the loop share.
    ///   - localTime: the link to the zone's file.
    ///   - changed: called on the loop; something may have changed.
    init(
        on loop: EventLoop, sharing shared: LoopBound<SharedReading>,
        nameFile: String = "/proc/sys/kernel/hostname",
        localTime: String = "/etc/localtime", changed: @escaping @Sendable () -> Void
    ) {
        self.loop = loop
        self.shared = shared
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
        let zone = zone
        zoneWatch = shared.assumeOnLoop { shared in
            try? shared.watchNames(in: zone.directory) { [weak self] name in
                guard name == nil || name == zone.name else { return }
                self?.assumeIsolated { $0.plan() }
            }
        }
        return hostName != nil && zoneWatch != nil
    }

    func stop() {
        if let raw = hostName?.raw {
            loop.forget(raw)
        }
        zoneWatch?.stop()
        if let timer {
            loop.cancel(timer)
        }
        hostName = nil
        zoneWatch = nil
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
