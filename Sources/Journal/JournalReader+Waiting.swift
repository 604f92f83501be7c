public import EventLoops
internal import Glibc
internal import Logs
internal import Synchronization

/// How the reader waits, and what it says.
extension JournalReader {
    // MARK: Waiting

    /// A directory, as the kernel tells it from others.
    struct DirectoryID: Equatable {
        let device: UInt
        let file: UInt
    }

    /// What the paths of the directories lead to now; nil: to none.
    var directoryIDs: [DirectoryID?] {
        JournalReader.directories(options.directory).map { path in
            var found = stat()
            return stat(path, &found) == 0 ? DirectoryID(device: found.st_dev, file: found.st_ino) : nil
        }
    }

    /// Returns once journald has written, or removed files, or the reader is to stop, and after `look`.
    func waitForNews() async throws(JournalError) {
        guard let open, !isStopping else { return }
        guard !open.isLeft else {
            hasReadLeft = true
            return close()
        }
        let timer = loop.after(min(open.handle.patience ?? look, look)) { self.assumeIsolated { $0.wake() } }
        do throws(SystemError) {
            try loop.watch(open.descriptor, for: .readable) { _ in self.assumeIsolated { $0.wake() } }
        } catch {
            throw JournalError(.failed, "changes of the journal cannot be watched: \(error)")
        }
        await withCheckedContinuation { wakeUp = $0 }
        loop.cancel(timer)
        guard let open = self.open else { return }
        loop.forget(open.descriptor)
        guard !isStopping else { return }
        // With other files there may be other directories, which the library looks for only when it opens a journal: one that moves to the disk
        // begins /var/log/journal.
        if try open.handle.process() { return self.open = nil }
        open.isLeft = open.directories != directoryIDs
    }

    /// Lets time pass, or less where the paths lead elsewhere by then.
    func pause(_ wait: Duration) async {
        let directories = directoryIDs
        var left = wait
        while left > .zero, !isStopping, directories == directoryIDs {
            let part = min(left, look)
            left -= part
            let timer = loop.after(part) { self.assumeIsolated { $0.wake() } }
            await withCheckedContinuation { wakeUp = $0 }
            loop.cancel(timer)
        }
    }

    func wake() {
        wakeUp?.resume()
        wakeUp = nil
    }

    func close() {
        guard let open else { return }
        loop.forget(open.descriptor)
        self.open = nil
    }

    // MARK: What it says

    func note(_ piece: JournalPiece) {
        published.withLock {
            $0.entries += piece.entries
            $0.cut += piece.cut
            $0.gaps += piece.gap == nil ? 0 : 1
        }
        guard let gap = piece.gap else { return }
        log.error(
            "the journal was removed before it was read",
            [
                "from": "\(gap.from)", "until": "\(gap.until)",
                "entries_at_most": gap.atMost.map { "\($0)" } ?? "unknown",
                "hint": "let journald keep more (SystemMaxUse in journald.conf)",
            ])
    }

    func report(_ error: JournalError) {
        let isNew = published.withLock { figures in
            defer { figures.problem = error }
            return figures.problem != error
        }
        guard isNew else { return }
        log.error("the journal is not read", ["reason": error.code.rawValue, "hint": error.message])
    }

    /// Why a journal with these options would not be read now; nil: it would. Blocks.
    public static func problem(_ options: JournalOptions) -> JournalError? {
        do throws(JournalError) {
            let handle = try JournalHandle(directory: options.directory, longest: 64)
            _ = try handle.descriptor()
            _ = try unreadableFiles(options)
            return nil
        } catch {
            return error
        }
    }

    /// Which of the journal's files cannot be read.
    ///
    /// - Throws: `noPermission` when that is all of them.
    private static func unreadableFiles(
        _ options: JournalOptions
    ) throws(JournalError) -> [(path: String, error: Int32)] {
        let (files, bad) = JournalHandle.unreadable(in: directories(options.directory))
        if !bad.isEmpty, bad.count == files, bad.allSatisfy({ $0.error == EACCES || $0.error == EPERM }) {
            throw JournalError(
                .noPermission,
                "the agent's user may not read the journal; run `systemctl edit spoolship`, add [Service] and"
                    + " SupplementaryGroups=systemd-journal, and restart")
        }
        return bad
    }

    /// Notes which files cannot be read.
    ///
    /// - Throws: `noPermission` when that is all of them.
    func reportFiles() throws(JournalError) {
        let bad = try JournalReader.unreadableFiles(options)
        published.withLock { $0.unreadableFiles = bad.count }
        guard let first = bad.first else { return }
        log.warning(
            "files of the journal cannot be read",
            ["files": bad.count, "first": first.path, "reason": SystemError.message(first.error)])
    }

    /// Where the journals are: of this machine, in memory and on the disk, unless a directory is given.
    static func directories(_ directory: String?) -> [String] {
        if let directory { return [directory] }
        return ["/run/log/journal", "/var/log/journal"]
    }
}
