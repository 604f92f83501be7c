internal import EventLoops
internal import Glibc
internal import Model

/// How much waits to be read, counted while reading is held back: nothing is read then, and the figures would stand
/// still while the spool grows.
struct Census {
    var directories: [SpoolDirectory] = []
    var stream: (directory: SpoolDirectory, stream: DirectoryStream, descriptor: Int32)?
    var began = BootInstant(nanoseconds: 0)
    var dropFiles = 0
    var dropBytes: ByteCount = 0
    /// When the oldest drop file got its content or its name.
    var oldest: Timestamp?
}

extension SpoolReader {
    /// How long reading must be held back until a census is taken, and how long it is at least until the next.
    private static let censusInterval = Duration.seconds(2)
    /// A census takes at most this part of the time.
    private static let censusShare = 50
    /// Names looked at before other work gets its turn.
    private static let censusSlice = 256

    /// Whether reading waits for commits.
    var isHeldBack: Bool {
        commitsUnderWay >= 2 || commitsUnderWay > 0 && now - lastCommit >= SpoolReader.censusInterval
    }

    /// A commit has begun: has what waits counted, should it take long.
    func planCensus() {
        guard !isCensusPlanned else { return }
        isCensusPlanned = true
        remember(.census, after: SpoolReader.censusInterval)
    }

    func takeCensus() {
        guard isHeldBack else {
            isCensusPlanned = false
            census = nil
            return publish()
        }
        var census = census ?? Census(directories: Array(directories.values), began: now)
        self.census = nil
        for _ in 0..<SpoolReader.censusSlice where !count(next: &census) {
            waitingDropBytes = census.dropBytes
            waitingDrops = census.dropFiles
            oldestDrop = census.oldest
            publish()
            let cost = now - census.began
            return remember(.census, after: max(SpoolReader.censusInterval, cost * SpoolReader.censusShare))
        }
        self.census = census
        remember(.census, after: .zero)
    }

    /// Counts a file. False: all are counted.
    private func count(next census: inout Census) -> Bool {
        guard let (directory, stream, descriptor) = census.stream else {
            guard let directory = census.directories.popLast() else { return false }
            guard let raw = self.descriptor(of: directory) else { return true }
            // A directory that cannot be listed is told when it is to be read.
            guard let looked = try? FileSystem.openDirectory(raw, FileName(".")),
                let stream = try? DirectoryStream(looked)
            else { return true }
            census.stream = (directory, stream, stream.descriptor)
            return true
        }
        guard let entry = try? stream.next() else {
            census.stream = nil
            return true
        }
        let kind = entry.name.kind
        guard kind != .other, entry.type != Int(DT_DIR) else { return true }
        // A file that is gone by now does not wait.
        guard let status = try? FileSystem.status(descriptor, entry.name), status.isRegular else { return true }
        if kind == .append {
            // Of another file that has the name by now this says nothing.
            if let file = directory.files[entry.name], file.trace.inode == status.inode { file.size = status.size }
        } else {
            census.dropFiles += 1
            census.dropBytes += ByteCount(status.size)
            // Not when its content was changed: that time is its owner's to choose.
            census.oldest = min(census.oldest ?? time.wallTime, status.changed)
        }
        return true
    }

    /// A drop file that was counted may have been read: less waits.
    func uncount(_ drop: DropReading) {
        waitingDropBytes -= ByteCount(drop.status.size)
        waitingDrops = max(0, waitingDrops - 1)
    }

    /// All that was counted has been read, or is gone.
    func endCount() {
        guard waitingDrops > 0 || waitingDropBytes > 0, !isHeldBack else { return }
        waitingDropBytes = 0
        waitingDrops = 0
        oldestDrop = nil
    }

    /// Bytes that wait, and since when.
    func countUnread() {
        var bytes = waitingDropBytes
        var oldest = oldestDrop
        for file in unread.values {
            bytes += ByteCount(file.unread)
            if let since = file.unreadSince { oldest = min(oldest ?? since, since) }
        }
        if census == nil, waitingDropBytes == 0 {
            for drop in asides.values { bytes += ByteCount(drop.status.size - drop.position) }
            if let reading { bytes += ByteCount(reading.status.size - reading.position) }
        }
        counters.unreadBytes = bytes
        counters.oldestUnread = bytes > 0 ? oldest : nil
        counters.waitingDropFiles =
            max(waitingDrops, drops.count + asides.count + cutDrops.count + (reading == nil ? 0 : 1))
    }
}
