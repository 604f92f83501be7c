internal import EventLoops
internal import Glibc

/// How much waits to be read, counted while reading is held back: nothing is read then, and the figures would stand
/// still while the spool grows.
struct Census {
    var directories: [SpoolDirectory] = []
    var stream: (directory: SpoolDirectory, stream: DirectoryStream, descriptor: Int32)?
    var began = BootInstant(nanoseconds: 0)
    var dropFiles = 0
    var dropBytes: Int64 = 0
    /// Nanoseconds since 1970 when the oldest drop file was changed last.
    var oldest: Int64?
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
            oldestDrop = census.oldest.map { Timestamp(nanoseconds: $0) }
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
        guard let entry = stream.next() else {
            census.stream = nil
            return true
        }
        let kind = entry.name.kind
        guard kind != .other, entry.type != Int(DT_DIR) else { return true }
        // A file that is gone by now does not wait.
        guard let status = try? FileSystem.status(descriptor, entry.name), status.isRegular else { return true }
        if kind == .append {
            if let file = directory.files[entry.name], file.size < status.size { file.size = status.size }
        } else {
            census.dropFiles += 1
            census.dropBytes += status.size
            census.oldest = min(census.oldest ?? .max, status.modified)
        }
        return true
    }

    /// A drop file that was counted may have been read: less waits.
    func uncount(_ drop: DropReading) {
        waitingDropBytes = max(0, waitingDropBytes - drop.status.size)
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
            bytes += file.unread
            if let since = file.unreadSince { oldest = min(oldest ?? since, since) }
        }
        if let reading, census == nil, waitingDropBytes == 0 {
            bytes += max(0, reading.status.size - reading.position)
        }
        counters.unreadBytes = bytes
        counters.oldestUnread = bytes > 0 ? oldest : nil
        counters.waitingDropFiles =
            max(waitingDrops, drops.count + cutDrops.count + (reading == nil ? 0 : 1))
    }
}
