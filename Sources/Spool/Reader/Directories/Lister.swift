internal import CLinux
internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Lists directories, a slice of names at a time; `Listing` says which is next.
final class Lister {
    private let context: SpoolContext
    private let schedule: Schedule
    private let reports: Reports
    private let outlet: Outlet
    private let opener: Opener
    private let admission: Admission
    private let tree: Tree
    private let drops: DropTable
    private let turns: Turns

    /// Handles a name: the name, its type and inode number, and the directory.
    typealias Found = (FileName, Int, UInt64, SpoolDirectory) -> Void

    init(
        _ context: SpoolContext, _ schedule: Schedule, _ reports: Reports, _ outlet: Outlet, _ opener: Opener,
        _ admission: Admission, _ tree: Tree, _ drops: DropTable, _ turns: Turns
    ) {
        self.context = context
        self.schedule = schedule
        self.reports = reports
        self.outlet = outlet
        self.opener = opener
        self.admission = admission
        self.tree = tree
        self.drops = drops
        self.turns = turns
    }

    // MARK: Listing

    /// Number of directory entries that are read at a time. Other work runs in between, so that a directory
    /// with a million files does not stop the loop.
    private static let slice = 128
    /// Most directories that are listed at a time.
    private static let mostStreams = 32

    /// Queues a directory to be listed.
    func scan(_ directory: SpoolDirectory) {
        if tree.listing.queue(directory) {
            schedule.wake()
        }
    }

    /// Reads some names of a directory. False if no directory waits, or if enough files wait.
    ///
    /// - Parameter found: called for each name.
    func list(_ found: Found) -> Bool {
        let most = min(Lister.mostStreams, max(1, opener.openFiles.mostDirectories / 2))
        let next = tree.listing.next(turns.shares, most: most) { mayList($0) }
        guard let (line, directory) = next else { return false }
        let turn = turns.begin(of: line, schedule.now)
        let hasMore = listNames(of: directory, found)
        turns.end(turn, schedule.now)
        if hasMore {
            tree.listing.putBack(directory, to: line)
        }
        return true
    }

    /// Whether a directory may be listed although files wait. The drop box always may: it has a bound for
    /// each owner (`offer`), and one owner's files must not hide those of others.
    private func mayList(_ directory: SpoolDirectory) -> Bool {
        directory.isIncoming || drops.wantsMore(of: directory.app)
    }

    /// Whether the first listing, or the first sight of the patterns, may end: no directory waits, and all
    /// drop files are read. Only then is every file known that existed at the start.
    var mayEndFirst: Bool {
        tree.listing.isIdle && (!tree.listing.isFirstDone || tree.listing.isSeeing) && drops.areAllRead
            && tree.top != nil
    }

    /// Ends the first sight of the patterns, once every compressed file that existed has settled. A file that
    /// is judged later counts as new, so existing content would be read.
    func endFirstSight() {
        guard tree.listing.isSeeing, tree.all.allSatisfy({ $0.settling.isEmpty }) else { return }
        if let passed = tree.listing.sight?.end() {
            report(passed)
        }
        if tree.listing.sight?.hasChanges == true {
            outlet.wantCommit()
            schedule.wake()
        }
    }

    /// Says what of the existing files is not read.
    private func report(_ passed: FirstSight.Passed) {
        let path = context.options.directory
        if passed.files > 0 {
            context.log.info(
                "existing files passed over, as `since` says",
                ["path": path, "files": passed.files, "bytes": passed.bytes.value])
        }
        if passed.archives > 0 {
            context.log.info(
                "existing archives left alone",
                ["path": path, "files": passed.archives, "bytes": passed.archiveBytes.value])
        }
    }

    /// Reads a slice of names. True if there are more.
    private func listNames(of directory: SpoolDirectory, _ found: Found) -> Bool {
        if directory.stream == nil {
            beginListing(directory)
        }
        guard let stream = directory.stream else { return false }
        for _ in 0..<Lister.slice {
            do throws(SystemError) {
                guard let entry = try stream.next() else {
                    endListing(directory)
                    return false
                }
                found(entry.name, entry.type, entry.inode, directory)
            } catch {
                endListing(directory)
                admission.notOpened(directory, FileName(""), error)
                return false
            }
        }
        return true
    }

    /// Opens a directory to list it.
    private func beginListing(_ directory: SpoolDirectory) {
        directory.isScanStale = false
        guard opener.descriptor(of: directory) != nil, directory.descriptor != nil else {
            return tree.listing.cannotBegin(directory)
        }
        do {
            let descriptor = try opener.openDirectory(directory.path)
            let status = try FileSystem.status(descriptor)
            guard status.inode == directory.inode, status.device == directory.device else {
                // Another directory has the name.
                tree.listing.cannotBegin(directory)
                return schedule.plan(
                    at: schedule.now, .open(directory: directory.path, depth: directory.depth))
            }
            tree.listing.began(try DirectoryStream(descriptor), of: directory)
            if directory.isIncoming {
                tree.beginDropBoxListing()
            }
            reports.reached(directory.path)
        } catch {
            tree.listing.cannotBegin(directory)
            // Copies wait until all directories near them are listed. A shortage passes within seconds, but a
            // directory that its owner keeps closed must not hold them up.
            switch SpoolObstacle(error) {
            case .descriptors, .memory: break
            default: directory.wasListed = true
            }
            admission.notOpened(directory, FileName(""), error)
        }
    }

    /// Ends a listing, and queues the directory again if names may have been missed.
    private func endListing(_ directory: SpoolDirectory) {
        tree.listing.ended(directory)
        forgetCrowds()
        if directory.isIncoming, let nested = tree.endDropBoxListing() {
            reports.resolve(nested)
        }
        if directory.isScanStale {
            scan(directory)
        }
    }

    /// A directory was listed: resolves the complaints of holders whose files all have room by now.
    private func forgetCrowds() {
        for holder in tree.listing.takeUncrowded() {
            reports.resolve(Lister.crowdOfLines(of: holder))
        }
    }

    /// The path under which a holder's excess of files is reported.
    static func crowdOfLines(of holder: Holder) -> FileName {
        FileName("\(FileName(holder.top).text)/*.jsonl\(holder.owner.map { ", uid \($0)" } ?? "")")
    }
}
