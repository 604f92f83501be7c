internal import EventLoops
internal import Glibc
internal import Logs
internal import Model
internal import Synchronization

extension JournalReader {
    /// Device and inode of each directory that the paths lead to now; nil for a path that leads to nothing.
    var directoryIDs: [[UInt64]?] {
        JournalFiles.directories(options.directory).map { FileStatus($0).map { [$0.device, $0.inode] } }
    }

    /// Returns when journald has written or removed files, when the reader must stop, or after `look`.
    func waitForNews() async throws(JournalError) {
        guard let open, !isStopping else { return }
        guard !open.isLeft else {
            hasReadLeft = true
            return close()
        }
        let descriptor = open.descriptor
        try relaying(try loop.watch(descriptor, for: .readable) { _ in self.assumeIsolated { $0.wake() } }) {
            JournalError(.failed, "changes of the journal cannot be watched: \($0 as SystemError)")
        }
        await wait(min(open.handle.patience ?? look, look))
        guard let open = self.open else { return }
        loop.forget(open.descriptor)
        guard !isStopping else { return }
        // Files were added or removed. The library searches for directories only when it opens: if the
        // journal moves to the disk, /var/log/journal is new. So open again.
        if try open.handle.process() { return self.open = nil }
        // The library does not say that a file which was empty has its first entry: compare its status.
        guard !open.empty.contains(where: { FileStatus($0.path) != $0.status }) else {
            return self.open = nil
        }
        open.isLeft = open.directories != directoryIDs
    }

    /// Waits until `wake`, at most `most`.
    func wait(_ most: Duration) async {
        let timer = loop.after(most) { self.assumeIsolated { $0.wake() } }
        await withCheckedContinuation { wakeUp = $0 }
        loop.cancel(timer)
    }

    /// Resumes the waiting `next`, if one waits.
    func wake() {
        wakeUp?.resume()
        wakeUp = nil
    }

    /// Closes the journal; `opened` opens it again. The descriptor is forgotten first, because the library
    /// closes it.
    func close() {
        if let open {
            loop.forget(open.descriptor)
        }
        open = nil
    }

    /// Counts a piece, and logs its gaps.
    func note(_ piece: JournalPiece) {
        published.withLock {
            $0.entries += piece.entries
            $0.cut += piece.cut
            $0.gaps += piece.gaps.count
        }
        for gap in piece.gaps {
            log.error(
                "the journal was removed before it was read",
                [
                    "from": "\(gap.from)", "until": "\(gap.until)",
                    "entries_at_most": gap.atMost.map { "\($0)" } ?? "unknown",
                    "hint": "let journald keep more (SystemMaxUse in journald.conf)",
                ])
        }
    }

    /// Logs an error, unless it was the last one too: a journal that cannot be read is tried every ten
    /// seconds.
    func report(_ error: JournalError) {
        let isNew = published.withLock { figures in
            defer { figures.problem = error }
            return figures.problem != error
        }
        guard isNew else { return }
        log.error("the journal is not read", ["reason": error.code.rawValue, "hint": error.message])
    }

    /// Why a journal with these options cannot be read now; nil if it can. For `check` and the start. It
    /// blocks as long as the disk takes, but not for a file system that does not answer.
    package static func problem(_ options: JournalOptions) -> JournalError? {
        for path in JournalFiles.directories(options.directory)
        where SilentFiles.answer(about: path, { FileStatus(path) }) == nil { return .hangs }
        do throws(JournalError) {
            let handle = try JournalHandle(directory: options.directory)
            _ = try handle.descriptor()
            _ = try JournalFiles(of: options.directory)
            return nil
        } catch {
            return error
        }
    }

    /// Publishes and logs the files that cannot be read.
    func report(_ files: JournalFiles) {
        published.withLock { $0.unreadableFiles = files.bad.count }
        guard let first = files.bad.first else { return }
        log.warning(
            "files of the journal cannot be read",
            ["files": files.bad.count, "first": first.path, "reason": first.error.message])
    }
}
