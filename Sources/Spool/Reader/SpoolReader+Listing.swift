internal import EventLoops
internal import Glibc

/// Directories that are to be listed, and those that are.
struct Listing {
    var waiting = FairQueue<SpoolDirectory>()
    /// How many are being listed: one an app.
    var streams = 0
    /// Whether every directory has been listed once since the start.
    var isFirstDone = false
}

/// What is in directories: each is listed a slice at a time, and what was found goes to the part that reads it.
extension SpoolReader {
    /// How many names are read before other work gets its turn.
    private static let slice = 128
    /// While more drop files wait, no more are looked for, but for apps of which few wait.
    private static let mostWaiting = 4096
    static let fewWaiting = 64
    /// How many directories are listed at a time.
    private static let mostStreams = 32

    func scan(_ directory: SpoolDirectory) {
        guard !directory.isScanQueued else {
            directory.isScanStale = true
            return
        }
        directory.isScanQueued = true
        listing.waiting.append(directory, to: directory.app)
        wake()
    }

    /// Looks at some names of a directory that is to be listed. False: there is none, or enough files wait.
    func list() -> Bool {
        if listing.waiting.isEmpty { endFirstListing() }
        let hasRoom = listing.streams < min(SpoolReader.mostStreams, max(1, held.mostDirectories / 2))
        let next = listing.waiting.popFirst(shares) { _, directory in
            if directory.isGone { return true }
            return hasRoom || directory.stream != nil ? mayList(directory) : false
        }
        guard let (line, directory) = next else { return false }
        let turn = beginTurn(of: line)
        let hasMore = listNames(of: directory)
        endTurn(turn)
        if hasMore { listing.waiting.putBack(directory, to: line) }
        return true
    }

    /// In the drop box each owner has its own bound (`offer`): it is listed however many files of one owner wait.
    private func mayList(_ directory: SpoolDirectory) -> Bool {
        directory.isIncoming || drops.waiting.count < SpoolReader.mostWaiting
            || drops.waiting.count(of: directory.app) < SpoolReader.fewWaiting
    }

    /// Only when all is listed and read is every file known that was there at the start.
    private func endFirstListing() {
        guard !listing.isFirstDone, drops.areAllRead, tree.directories[FileName("")] != nil else { return }
        listing.isFirstDone = true
        firstListingEnded()
    }

    /// True: there are more names.
    private func listNames(of directory: SpoolDirectory) -> Bool {
        if directory.stream == nil { directory.stream = beginListing(directory) }
        guard let stream = directory.stream else { return false }
        for _ in 0..<SpoolReader.slice {
            do throws(SystemError) {
                guard let entry = try stream.next() else {
                    endListing(directory)
                    return false
                }
                found(entry.name, entry.type, entry.inode, in: directory)
            } catch {
                endListing(directory)
                notOpened(directory, FileName(""), error)
                return false
            }
        }
        return true
    }

    private func beginListing(_ directory: SpoolDirectory) -> DirectoryStream? {
        directory.isScanStale = false
        guard descriptor(of: directory) != nil, directory.descriptor != nil else {
            directory.isScanQueued = false
            return nil
        }
        do {
            let descriptor = try FileSystem.openDirectory(tree.root.raw, directory.path)
            guard try FileSystem.status(descriptor).inode == directory.inode else {
                // Another one has its name.
                directory.isScanQueued = false
                open(directory.path, depth: directory.depth)
                return nil
            }
            let stream = try DirectoryStream(descriptor)
            listing.streams += 1
            if directory.isIncoming { trouble.nested?.wasSeen = false }
            reached(directory.path)
            return stream
        } catch {
            directory.isScanQueued = false
            // A shortage passes within seconds. What its owner keeps shut is nothing that the files beside it wait for.
            switch SpoolObstacle(error) {
            case .descriptors, .memory: break
            default: directory.wasListed = true
            }
            notOpened(directory, FileName(""), error)
            return nil
        }
    }

    private func endListing(_ directory: SpoolDirectory) {
        directory.stream = nil
        listing.streams -= 1
        directory.wasListed = true
        directory.isScanQueued = false
        forgetCrowds()
        if directory.isIncoming, let nested = trouble.nested, !nested.wasSeen { forgetNested(nested.path) }
        if directory.isScanStale { scan(directory) }
    }

    private func found(_ name: FileName, _ type: Int, _ inode: UInt64, in directory: SpoolDirectory) {
        if type == Int(DT_DIR) {
            let path = directory.path(of: name)
            if !name.isHidden, tree.directories[path]?.inode != inode { open(path, depth: directory.depth + 1) }
            return
        }
        switch kind(of: name, in: directory) {
        case .append: notice(directory, name)
        case .drop:
            if directory.settling[name] == nil { offer(directory, name, isComplete: false) }
        case .other:
            if type == Int(DT_LNK), options.place == nil { return refuse(.symbolicLink, directory.path(of: name)) }
            if type == Int(DT_REG) || type == Int(DT_UNKNOWN) { passOver(directory, name) }
            // A file that was known under another name when the agent stopped.
            if !streams.remembered.kept.isEmpty, streams.remembered.inodes.contains(inode) { notice(directory, name) }
        }
    }
}
