internal import CLinux
internal import EventLoops
internal import Glibc
internal import Model

/// How much waits to be read, counted while reading is held back, when the figures would stand still as the spool grows.
struct Census {
    var directories: [SpoolDirectory] = []
    var stream: (directory: SpoolDirectory, stream: DirectoryStream)?
    var began = BootInstant(nanoseconds: 0)
    var drops = CountedDrops()
}

struct CountedDrops {
    var files = 0
    var bytes: ByteCount = 0
    /// When the oldest of them got its content or its name.
    var oldest: Timestamp?
}

/// What the last census counted.
struct Backlog {
    var census: Census?
    var isCensusPlanned = false
    var drops = CountedDrops()
    /// When freed memory went back last, and what had been read by then.
    var released = BootInstant(nanoseconds: 0)
    var readWhenReleased: ByteCount = 0
}

extension SpoolReader {
    /// How long reading must be held back until a census is taken, and how long it is at least until the next.
    private static let censusInterval = Duration.seconds(2)
    /// A census takes at most this part of the time.
    private static let censusShare = 50
    /// Names looked at before other work gets its turn.
    private static let censusSlice = 256

    /// How often freed memory goes back at most, and how much is read in between at least: it costs milliseconds.
    private static let releaseInterval = Duration.seconds(10)
    private static let releaseBytes: Int64 = 16 << 20

    /// Whether reading waits for commits.
    var isHeldBack: Bool {
        commits.underWay >= 2 || commits.underWay > 0 && now - commits.last >= SpoolReader.censusInterval
    }

    /// A commit has begun: has what waits counted, should it take long.
    func planCensus() {
        guard !backlog.isCensusPlanned else { return }
        backlog.isCensusPlanned = true
        schedule(after: SpoolReader.censusInterval) { self.takeCensus() }
    }

    func takeCensus() {
        guard isHeldBack else {
            backlog.isCensusPlanned = false
            backlog.census = nil
            releaseMemory()
            return publish()
        }
        var census = backlog.census ?? Census(directories: Array(tree.directories.values), began: now)
        backlog.census = nil
        for _ in 0..<SpoolReader.censusSlice where !count(next: &census) {
            backlog.drops = census.drops
            publish()
            let cost = now - census.began
            let wait = max(SpoolReader.censusInterval, cost * SpoolReader.censusShare)
            return schedule(after: wait) { self.takeCensus() }
        }
        backlog.census = census
        schedule(after: .zero) { self.takeCensus() }
    }

    /// Lines of all lengths from thousands of files leave holes in malloc's memory, which it keeps: after twenty minutes under a
    /// hostile user it held 39 MB, of which 14 were in use.
    private func releaseMemory() {
        let read = counters.bytesRead
        guard now - backlog.released >= SpoolReader.releaseInterval,
            (read - backlog.readWhenReleased).value >= SpoolReader.releaseBytes
        else { return }
        backlog.released = now
        backlog.readWhenReleased = read
        clinux_release_memory()
    }

    private func count(next census: inout Census) -> Bool {
        guard let (directory, stream) = census.stream else {
            guard let directory = census.directories.popLast() else { return false }
            // A directory that cannot be listed is reported when it is to be read.
            guard let raw = self.descriptor(of: directory),
                let looked = try? FileSystem.openDirectory(raw, FileName(".")),
                let stream = try? DirectoryStream(looked)
            else { return true }
            census.stream = (directory, stream)
            return true
        }
        guard let entry = try? stream.next() else {
            census.stream = nil
            return true
        }
        let kind = kind(of: entry.name, in: directory)
        guard kind != .other, entry.type != Int(DT_DIR) else { return true }
        // A file that is gone by now does not wait.
        guard let status = try? FileSystem.status(stream.descriptor, entry.name), status.isRegular else { return true }
        if kind == .append {
            // Of another file that has the name by now this says nothing.
            if let file = directory.files[entry.name], file.trace.inode == status.inode {
                file.see(length: status.size)
            }
        } else {
            census.drops.files += 1
            census.drops.bytes += ByteCount(status.size)
            // Not when its content was changed: that time is its owner's to choose.
            census.drops.oldest = min(census.drops.oldest ?? time.wallTime, status.changed)
        }
        return true
    }

    /// A drop file that was counted may have been read: less waits.
    func uncount(_ drop: DropReading) {
        backlog.drops.bytes -= ByteCount(drop.status.size)
        backlog.drops.files = max(0, backlog.drops.files - 1)
    }

    /// All that was counted has been read, or is gone.
    func endCount() {
        guard backlog.drops.files > 0 || backlog.drops.bytes > 0, !isHeldBack else { return }
        backlog.drops = CountedDrops()
    }

    /// Bytes that wait, and since when.
    func countUnread() {
        var bytes = backlog.drops.bytes
        var oldest = backlog.drops.oldest
        for file in streams.unread.values {
            bytes += ByteCount(file.unread)
            if let since = file.unreadSince { oldest = min(oldest ?? since, since) }
        }
        if backlog.census == nil, backlog.drops.bytes == 0 {
            if !drops.asides.isEmpty {
                for drop in drops.asides.values { bytes += ByteCount(drop.status.size - drop.position) }
            }
            if let reading = drops.reading { bytes += ByteCount(reading.status.size - reading.position) }
        }
        counters.unreadBytes = bytes
        counters.oldestUnread = bytes > 0 ? oldest : nil
        counters.waitingDropFiles = max(backlog.drops.files, drops.countUnread)
    }
}
