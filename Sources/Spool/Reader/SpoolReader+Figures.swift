internal import EventLoops
internal import Model
internal import Synchronization

/// The figures of all types and parts, put together for other threads.
extension SpoolReader {
    /// Copies the figures of all parts for other threads.
    func publish() {
        if context.root.identity == nil, tree.top != nil,
            let status = try? FileSystem.status(context.root.descriptor)
        {
            context.root.identity = SpoolFigures.Root(
                path: context.options.directory, device: status.device, inode: status.inode)
        }
        var figures = self.figures
        figures.root = context.root.identity
        figures.directories = tree.count
        // A directory that is not there holds nothing that waits; `complaints` and `places` name it.
        figures.unlistedReaders = tree.listing.isFirstDone || tree.top == nil ? 0 : 1
        figures.polledDirectories = watching.polled.count
        figures.pollReason = watching.pollReason
        figures.overflows = watching.overflows
        figures.crowdedDirectories = tree.listing.crowdedCount
        figures.secondTries = schedule.obstacles
        figures.secondTryPaths = schedule.obstructed.map { context.wholePath($0) }
        figures.isHeldBack = outlet.isHeldBack
        countFiles(in: &figures)
        census.countUnread(in: &figures)
        reports.show(in: &figures)
        published.withLock { [figures] in $0 = figures }
        publishDue = schedule.now + SpoolReader.publishInterval
    }

    private func countFiles(in figures: inout SpoolFigures) {
        figures.appendFiles = lives.streams.files.count
        figures.appendFilesRead = lives.appendFiles.counts.read
        figures.rotations = lives.appendFiles.counts.rotations
        figures.truncations = lives.appendFiles.counts.truncations
        figures.unclosedLines = lives.appendFiles.counts.unclosedLines
        figures.bytesGivenUp = lives.appendFiles.counts.bytesGivenUp
        figures.lostFiles = lives.lostFiles
        figures.zeroBytes = lives.appendFiles.counts.zeroBytes
        figures.openFiles = opener.openFiles.count
        figures.loweredOpenFiles = opener.openFiles.lowered
        figures.leaseWaits = opener.openFiles.leaseWaits
        figures.dropFilesRead = drops.countRead
        figures.filesRemoved = removal.count
        figures.bytesRead = outlet.handover.counts.bytes
        figures.commits = outlet.handover.counts.commits
        figures.linesTooLong = outlet.handover.counts.tooLong
    }
}
