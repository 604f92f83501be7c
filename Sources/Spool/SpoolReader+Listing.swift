internal import EventLoops
internal import Glibc
internal import Logs

/// Directories that are to be listed, and the one that is.
struct Listing {
    var waiting = Queue<SpoolDirectory>()
    var current: (directory: SpoolDirectory, stream: DirectoryStream)?
    /// Whether every directory has been listed once since the start.
    var isFirstDone = false
}

/// The names in a directory, one after another.
final class DirectoryStream {
    private let stream: OpaquePointer

    init(_ looked: borrowing Descriptor) throws(SystemError) {
        let readable = try FileSystem.read(looked, directory: true)
        guard let stream = fdopendir(readable.raw) else { throw SystemError("fdopendir") }
        // The stream closes it from now on.
        _ = readable.release()
        self.stream = stream
    }

    deinit { closedir(stream) }

    /// The directory's descriptor, for as long as this lives.
    var descriptor: Int32 { dirfd(stream) }

    /// The next name, and its type as the directory tells it; nil at the end.
    func next() -> (name: FileName, type: Int, inode: UInt64)? {
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { FileName($0.prefix { $0 != 0 }) }
            if name.bytes == [0x2E] || name.bytes == [0x2E, 0x2E] { continue }
            return (name, Int(entry.pointee.d_type), UInt64(entry.pointee.d_ino))
        }
        return nil
    }
}

extension SpoolReader {
    /// How deep directories may lie in the spool.
    private static let deepest = 16
    /// How many names are read before other work gets its turn.
    private static let slice = 128
    /// While more drop files wait, no more are looked for.
    private static let mostWaiting = 4096
    /// How often it is looked whether the spool is there, once a directory in it was removed.
    private static let rootChecks = 10
    /// How many directories are held open at most.
    private static let mostOpenDirectories = 64

    // MARK: Directories

    /// Begins to watch and to read a directory.
    func open(_ path: FileName, depth: Int) {
        guard directories[path] == nil, !SpoolReader.isHidden(path) else { return }
        guard depth <= SpoolReader.deepest else { return refuse(.tooDeep, path) }
        let directory = SpoolDirectory(path: path, depth: depth)
        do {
            let descriptor = try FileSystem.openDirectory(root.raw, path.bytes.isEmpty ? FileName(".") : path)
            if let archive {
                let status = try FileSystem.status(descriptor)
                // What was read and put away is not read again, whatever name the archive was given.
                guard (status.device, status.inode) != archive.identity else { return }
            }
            directories[path] = directory
            // Watch first, list then: what comes between is told twice, never missed.
            watch(directory, descriptor)
            keep(consume descriptor, of: directory)
            scan(directory)
        } catch {
            switch error.number {
            case ENOENT, ENOTDIR: break
            case ELOOP: refuse(.symbolicLink, path)
            case EXDEV: refuse(.otherFileSystem, path)
            default: note(error, "cannot open directory", path)
            }
        }
    }

    /// Whether the last name of a path is hidden: such directories are not for us, our own `.spoolship` among them.
    private static func isHidden(_ path: FileName) -> Bool {
        FileName(path.bytes[((path.bytes.lastIndex(of: UInt8(ascii: "/")) ?? -1) + 1)...]).isHidden
    }

    /// Forgets a directory and all below it: it was removed or moved away. Its files are known still.
    func close(_ directory: SpoolDirectory) {
        guard !directory.isGone else { return }
        directory.isGone = true
        directories[directory.path] = nil
        complaints[directory.path] = nil
        if directory.path.bytes.isEmpty { lostRoot() }
        if let watch = directory.watch, let kernel = inotify?.raw {
            // Fails when the kernel has ended the watch itself, because the directory is gone.
            _ = inotify_rm_watch(kernel, watch)
        }
        directory.watch = nil
        directory.descriptor = nil
        openDirectories.removeAll { $0 === directory }
        polled.removeAll { $0 === directory }
        for file in directory.files.values { displaced(file) }
        let below = directory.path.bytes + [UInt8(ascii: "/")]
        for child in directories.values where child.path.bytes.starts(with: below) && !directory.path.bytes.isEmpty {
            close(child)
        }
    }

    /// While a directory is open the kernel does not tell that it was removed, but that its content was.
    func planRootCheck() {
        if rootChecksLeft == 0 { remember(.checkRoot, after: options.pollInterval) }
        rootChecksLeft = SpoolReader.rootChecks
    }

    func checkRoot() {
        guard let directory = directories[FileName("")], let status = try? FileSystem.status(root) else {
            rootChecksLeft = 0
            return
        }
        guard status.links > 0 else {
            rootChecksLeft = 0
            return close(directory)
        }
        rootChecksLeft -= 1
        if rootChecksLeft > 0 { remember(.checkRoot, after: options.pollInterval) }
    }

    private func lostRoot() {
        guard phase == .running else { return }
        log.error("spool directory is gone", ["path": options.directory, "advice": "make it again"])
        complaints[FileName("")] = SpoolComplaint(
            path: options.directory, owner: 0, ownerName: ownerName(0),
            advice: "the spool directory is gone: make it again")
        for child in directories.values { close(child) }
        remember(.findRoot, after: options.pollInterval)
        publish()
    }

    /// Looks whether the spool is there again.
    func findRoot() {
        guard directories[FileName("")] == nil else { return }
        do throws(SpoolError) {
            root = try SpoolReader.openRoot(options.directory)
            complaints[FileName("")] = nil
            log.info("spool directory is back", ["path": options.directory])
            open(FileName(""), depth: 0)
        } catch {
            // Told when it went; it is looked for until it is back.
            remember(.findRoot, after: options.pollInterval)
        }
    }

    /// An open descriptor of a directory; nil if it is gone.
    func descriptor(of directory: SpoolDirectory) -> Int32? {
        guard !directory.isGone else { return nil }
        if let raw = directory.descriptor?.raw { return raw }
        do {
            let path = directory.path.bytes.isEmpty ? FileName(".") : directory.path
            let descriptor = try FileSystem.openDirectory(root.raw, path)
            let raw = descriptor.raw
            keep(consume descriptor, of: directory)
            return raw
        } catch {
            switch error.number {
            case ENOENT: close(directory)
            // Something was mounted over it.
            case EXDEV: refuse(.otherFileSystem, directory.path)
            default: note(error, "cannot open directory", directory.path)
            }
            return nil
        }
    }

    /// Keeps a directory open for the next use, and closes the one that has been open longest.
    private func keep(_ descriptor: consuming Descriptor, of directory: SpoolDirectory) {
        directory.descriptor = consume descriptor
        openDirectories.append(directory)
        if openDirectories.count > SpoolReader.mostOpenDirectories {
            openDirectories.removeFirst().descriptor = nil
        }
    }

    // MARK: Listing

    /// Has a directory listed.
    func scan(_ directory: SpoolDirectory) {
        guard !directory.isScanQueued else {
            directory.isScanStale = true
            return
        }
        directory.isScanQueued = true
        listing.waiting.append(directory)
        wake()
    }

    /// Looks at some names of the directory that is being listed. False: there is none, or enough files wait.
    func list() -> Bool {
        guard drops.count < SpoolReader.mostWaiting else { return false }
        guard let (directory, stream) = listing.current else { return beginListing() }
        for _ in 0..<SpoolReader.slice {
            guard let entry = stream.next() else {
                endListing(directory)
                break
            }
            found(entry.name, entry.type, entry.inode, in: directory)
        }
        return true
    }

    private func beginListing() -> Bool {
        guard let directory = listing.waiting.popFirst() else {
            // Only now is every file known that was there at the start.
            if !listing.isFirstDone, drops.isEmpty, reading == nil {
                listing.isFirstDone = true
                firstListingEnded()
            }
            return false
        }
        directory.isScanStale = false
        guard descriptor(of: directory) != nil, directory.descriptor != nil else {
            directory.isScanQueued = false
            return true
        }
        do {
            let path = directory.path.bytes.isEmpty ? FileName(".") : directory.path
            let descriptor = try FileSystem.openDirectory(root.raw, path)
            listing.current = (directory, try DirectoryStream(descriptor))
            complaints[directory.path] = nil
        } catch {
            directory.isScanQueued = false
            notOpened(directory, FileName(""), error)
        }
        return true
    }

    private func endListing(_ directory: SpoolDirectory) {
        listing.current = nil
        directory.isScanQueued = false
        if directory.isScanStale { scan(directory) }
    }

    private func found(_ name: FileName, _ type: Int, _ inode: UInt64, in directory: SpoolDirectory) {
        if type == Int(DT_DIR) {
            if !name.isHidden { open(directory.path(of: name), depth: directory.depth + 1) }
            return
        }
        switch name.kind {
        case .append: notice(directory, name)
        case .drop:
            if directory.settling[name] == nil { offer(directory, name, isComplete: false) }
        case .other:
            if type == Int(DT_LNK) { return refuse(.symbolicLink, directory.path(of: name)) }
            // A file that was known under another name when the agent stopped.
            if !kept.isEmpty, keptInodes.contains(inode) { notice(directory, name) }
        }
    }
}
