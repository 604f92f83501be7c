internal import CLinux
internal import EventLoops
internal import Glibc

/// One inotify instance (inotify(7)), and the readers that share it.
///
/// A user may have 128 instances by default (`fs.inotify.max_user_instances`); one for each app that reads in
/// place would leave none to the user's other programs. The kernel identifies a watch by the inode, so two
/// readers of one directory get the same watch number. Each change therefore goes to the inbox of every
/// reader that watches its directory, and the kernel's watch ends with the last of these readers.
///
/// To be used on the loop's thread only.
final class KernelQueue {
    /// One reader's part: its watches, and the changes that it has not handled yet.
    final class Member: Hashable {
        private let queue: KernelQueue
        fileprivate(set) var inbox = ChangeInbox()
        /// Whether changes wake the reader. If not, they gather in the inbox until the reader asks.
        fileprivate var isListening = true
        /// Whether changes may wait until a reader asks. If all readers let theirs gather, those of a patient
        /// member do not wake the loop; without readers they do.
        fileprivate let isPatient: Bool
        /// Called when changes are in the inbox. The callback must not handle them at once, because changes
        /// are still being handed out to other readers.
        fileprivate let changesCame: () -> Void

        fileprivate init(of queue: KernelQueue, isPatient: Bool, _ changesCame: @escaping () -> Void) {
            self.queue = queue
            self.isPatient = isPatient
            self.changesCame = changesCame
        }

        /// Ends all watches; the instance is closed with its last reader.
        func leave() { queue.leave(self) }

        /// Watches what a path leads to.
        ///
        /// - Returns: the watch's number, which is that of an earlier watch of the same directory or file.
        func watch(_ path: String, _ mask: UInt32) throws(SystemError) -> Int32 {
            try queue.watch(path, mask, for: self)
        }

        func endWatch(_ watch: Int32) { queue.endWatch(watch, of: self) }

        /// Lets changes wake the reader.
        func listen() throws(SystemError) { try queue.listen(self) }

        /// Lets changes gather without waking the reader. The loop sleeps through them once all readers have
        /// paused.
        ///
        /// - Throws: if the kernel refuses; then changes continue to wake the reader.
        func pause() throws(SystemError) { try queue.pause(self) }

        /// Asks the kernel for changes.
        func gather() { queue.handOut(to: self) }

        /// Takes all changes out of the inbox; `putBack` returns those for which there was no time.
        func takeChanges() -> [UInt8] { inbox.takeAll() }

        func putBack(_ rest: ArraySlice<UInt8>) { inbox.putBack(rest) }

        static func == (left: Member, right: Member) -> Bool { left === right }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    /// Length of the longest change. With less free space in the buffer, read(2) may have left a change
    /// behind.
    private static let longestChange = MemoryLayout<inotify_event>.size + Int(NAME_MAX) + 1
    private static let bufferSize = 8 << 10
    /// Time after which handing out changes pauses, so that a flood of changes does not block the loop.
    private static let handOutTime = Duration.milliseconds(5)

    private let loop: EventLoop
    private let time: any TimeSource
    private var inotify: Descriptor?
    private var members: [Member] = []
    private var watchers = WatchTable<Member>()
    /// Whether the kernel's changes wake the loop.
    private var wakesLoop = false

    init(on loop: EventLoop, time: any TimeSource = SystemTime()) { (self.loop, self.time) = (loop, time) }

    // MARK: Readers

    /// Takes in a reader, and opens the instance for the first one.
    func join(
        isPatient: Bool = false, _ changesCame: @escaping () -> Void
    ) throws(SystemError) -> Member {
        let member = Member(of: self, isPatient: isPatient, changesCame)
        if inotify == nil {
            let raw = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
            let opened = try Descriptor(checking: raw, "inotify_init1")
            try watchInstance(opened.raw, isAwaited: true)
            inotify = consume opened
        }
        // Listen before the member is added: if this throws, a member without an owner would keep the loop
        // awake.
        try listen(member)
        members.append(member)
        return member
    }

    /// Removes a reader and its watches; the last one closes the instance.
    private func leave(_ member: Member) {
        members.removeAll { $0 === member }
        let ended = watchers.removeAll(of: member)
        guard let raw = inotify?.raw else { return }
        guard members.isEmpty else {
            // This fails for a watch that the kernel has already removed, which is harmless.
            for watch in ended { _ = inotify_rm_watch(raw, watch) }
            // The last reader may have left while it let changes gather: nobody would ask for those of a
            // patient member.
            if !wakesLoop, members.allSatisfy(\.isListening) {
                try? watchInstance(raw, isAwaited: true)
            }
            return
        }
        loop.forget(raw)
        inotify = nil
        wakesLoop = false
    }

    // MARK: Watches

    private func watch(_ path: String, _ mask: UInt32, for member: Member) throws(SystemError) -> Int32 {
        guard let raw = inotify?.raw else { throw SystemError("inotify_add_watch", number: EBADF) }
        let watch = path.withCString { inotify_add_watch(raw, $0, mask) }
        guard watch >= 0 else { throw SystemError("inotify_add_watch") }
        watchers.add(watch, for: member)
        return watch
    }

    private func endWatch(_ watch: Int32, of member: Member) {
        guard watchers.remove(watch, of: member), let raw = inotify?.raw else { return }
        // This fails if the kernel has already removed the watch because its inode is gone.
        _ = inotify_rm_watch(raw, watch)
    }

    // MARK: Changes

    private func listen(_ member: Member) throws(SystemError) {
        member.isListening = true
        if let raw = inotify?.raw, !wakesLoop {
            try watchInstance(raw, isAwaited: true)
        }
    }

    private func pause(_ member: Member) throws(SystemError) {
        let isAwaited = members.contains { $0 !== member && $0.isListening && !$0.isPatient }
        if let raw = inotify?.raw, wakesLoop, !isAwaited {
            try watchInstance(raw, isAwaited: false)
        }
        member.isListening = false
    }

    /// Starts or stops waking the loop for changes.
    private func watchInstance(_ raw: Int32, isAwaited: Bool) throws(SystemError) {
        // The loop may outlive the queue's last reader.
        try loop.watch(raw, for: isAwaited ? .readable : []) { [weak self] _ in self?.handOut(to: nil) }
        wakesLoop = isAwaited
    }

    /// Reads the kernel's changes, and puts each into the inboxes of its readers.
    ///
    /// - Parameter reader: the reader that asks, and looks into its inbox next; nil if the kernel has woken
    ///   the loop.
    private func handOut(to reader: Member?) {
        guard let raw = inotify?.raw else { return }
        let end = time.bootTime + KernelQueue.handOutTime
        withUnsafeTemporaryAllocation(byteCount: KernelQueue.bufferSize, alignment: 8) { buffer in
            while true {
                let count = Glibc.read(raw, buffer.baseAddress, buffer.count)
                guard count > 0 else { break }
                let isMidRename = sort(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                // Both halves of a rename must be handed out together: a file that was only moved away looks
                // deleted.
                if isMidRename { continue }
                // Room for another change was left, so the kernel has no more of them.
                if buffer.count - count >= KernelQueue.longestChange || time.bootTime >= end { break }
            }
        }
        for member in members where member !== reader && member.isListening && !member.inbox.isEmpty {
            member.changesCame()
        }
    }

    /// Puts changes into the inboxes. True if the last change is the first half of a rename.
    private func sort(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var isMidRename = false
        var changes = KernelWatch.changes(in: bytes)
        var begin = 0
        while let change = changes.next() {
            isMidRename = change.kind == .movedAway
            let own = UnsafeRawBufferPointer(rebasing: bytes[begin..<changes.offset])
            begin = changes.offset
            if change.kind == .overflow {
                for member in members { member.inbox.overflow() }
                continue
            }
            for member in watchers.readers(of: change.watch) { member.inbox.add(own) }
            if change.kind == .watchEnded {
                watchers.forget(change.watch)
            }
        }
        return isMidRename
    }
}

/// The readers of each watch. The table makes no system call.
struct WatchTable<Reader: Hashable> {
    private var readers: [Int32: Set<Reader>] = [:]

    var count: Int { readers.count }

    func readers(of watch: Int32) -> Set<Reader> { readers[watch] ?? [] }

    mutating func add(_ watch: Int32, for reader: Reader) { readers[watch, default: []].insert(reader) }

    /// Removes a reader from a watch. Returns true if no other reader is left, so that the
    /// kernel's watch must be removed.
    mutating func remove(_ watch: Int32, of reader: Reader) -> Bool {
        guard readers[watch]?.remove(reader) != nil, readers[watch]?.isEmpty == true else { return false }
        readers[watch] = nil
        return true
    }

    /// Removes a reader from all watches; returns those that no other reader has, to be removed from the
    /// kernel.
    mutating func removeAll(of reader: Reader) -> [Int32] {
        let own = readers.filter { $0.value.contains(reader) }.keys.sorted()
        return own.filter { remove($0, of: reader) }
    }

    /// The kernel has ended a watch.
    mutating func forget(_ watch: Int32) { readers[watch] = nil }
}

/// Changes for one reader that it has not handled yet, as the bytes that the kernel gave.
///
/// The inbox is bounded like the kernel's own queue. Beyond the bound all changes are replaced by a single
/// overflow event, after which the reader lists everything again.
struct ChangeInbox {
    /// Most bytes: 16,384 changes, as many as the kernel keeps, with names of eight bytes.
    static let most = 16_384 * (MemoryLayout<inotify_event>.size + 16)

    private var bytes: [UInt8] = []

    var isEmpty: Bool { bytes.isEmpty }
    var count: Int { bytes.count }

    mutating func add(_ change: UnsafeRawBufferPointer) {
        guard bytes.count + change.count <= ChangeInbox.most else { return overflow() }
        bytes.append(contentsOf: change)
    }

    /// Replaces all changes by an overflow event. Earlier changes are superfluous, because everything is
    /// listed again.
    mutating func overflow() {
        var event = inotify_event()
        event.wd = -1
        event.mask = UInt32(IN_Q_OVERFLOW)
        bytes = withUnsafeBytes(of: &event) { Array($0.prefix(MemoryLayout<inotify_event>.size)) }
    }

    mutating func takeAll() -> [UInt8] {
        defer { bytes = [] }
        return bytes
    }

    /// Returns changes that were taken and not handled, before those that arrived since.
    mutating func putBack(_ rest: ArraySlice<UInt8>) { bytes = Array(rest) + bytes }
}
