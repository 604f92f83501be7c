internal import EventLoops

/// The files of one sequence that have one name (`system`, `user-1000`). journald appends to the last of them
/// and numbers its entries upwards, whatever the clock says.
///
/// Each sequence has a handle of its own. In one handle for several sequences libsystemd orders by boot and
/// clock, and passes over entries whose time is before that of the last one: they were lost. Within a
/// sequence it orders by number. The name is part of the identity, because since systemd 255 the files of the
/// system, of users and of memory share a sequence, and what is copied from memory gets numbers that other
/// files' entries may have had (DESIGN.md, "Numbers alone").
final class JournalSequence {
    /// Id of the sequence, and the owner of its files.
    let id: String
    /// Paths of its files.
    let files: [String]
    /// The files as one journal.
    let handle: JournalHandle
    /// Matches of the filter, to be restored after a search among all entries.
    private let matches: [[String]]

    /// Opens files as one journal, with the filter's matches.
    init(_ id: String, _ files: [String], _ options: JournalOptions) throws(JournalError) {
        self.id = id
        self.files = files
        // A field that is longer than a line shows so by its length: let some bytes more than a line through.
        handle = try JournalHandle(files, longest: options.maxEventSize + 64)
        matches = JournalFilter(options).matches
        try handle.match(matches)
    }

    /// Opens all sequences, each at its position, with the files as they were at one moment.
    ///
    /// Rotation renames a file and then makes a new one under the old name. If the new file were opened
    /// without the renamed one, the position would be set behind entries that were never read. So the files
    /// are listed before and after, up to 100 times, until both lists are the same.
    static func all(
        _ options: JournalOptions, from places: [String: JournalPosition] = [:]
    ) throws(JournalError) -> (sequences: [JournalSequence], files: JournalFiles) {
        for _ in 0..<100 {
            let files = try JournalFiles(of: options.directory)
            var sequences: [JournalSequence] = []
            for (id, paths) in files.sequences {
                do throws(JournalError) {
                    let sequence = try JournalSequence(id, paths, options)
                    try sequence.go(to: places[id])
                    sequences.append(sequence)
                } catch {
                    // A file was removed meanwhile: the lists differ, and all are opened again.
                    guard error.code == .missing else { throw error }
                }
            }
            if JournalFiles.identities(options.directory) == files.identities { return (sequences, files) }
        }
        throw JournalError(.failed, "the journal's files are rotated faster than they can be opened")
    }

    /// Makes the entry after a position the next one; without a position the first.
    ///
    /// The search is in the open files: other files may have their names by now.
    func go(to position: JournalPosition?) throws(JournalError) {
        guard let position else { return try handle.seekHead() }
        guard try !handle.find(position) else { return }
        try handle.match([])
        var read: JournalPosition? = position
        // An entry that is found once the matches are removed is only hidden by them. If the first entry that
        // is left has a higher number, the position's entry was vacuumed, and reading continues with the next
        // number.
        if try !handle.find(position), try handle.goToFirst(), let first = handle.position,
            first.number <= position.number
        {
            // A power cut has taken the entry from the disk, and the next boot uses its number again. What is
            // left of the entry's boot was read, whatever the clock says. If nothing is left of it, only the
            // clock can decide.
            try handle.match([["_BOOT_ID=\(position.boot)"]])
            try handle.seek(position.entry)
            read = try handle.previous() ? handle.position : nil
            try handle.match([])
            if read == nil {
                try handle.seek("t=\(position.time)")
                if try handle.previous() {
                    read = handle.position
                }
            }
        }
        try handle.match(matches)
        guard let read else { return try handle.seekHead() }
        _ = try handle.find(read)
    }

    /// The last entry that is not later than an entry of another sequence; nil if all are later. Moves the
    /// handle: `go` must follow.
    func last(until other: JournalPosition) throws(JournalError) -> JournalPosition? {
        // Search by boot first. After the end of a boot the library finds nothing later in that boot, and
        // later boots can only be found by the clock.
        for cursor in [other.entry, "t=\(other.time)"] {
            try handle.seek(cursor)
            guard try handle.next() else { continue }
            if handle.position?.entry == other.entry { return handle.position }
            return try handle.previous() ? handle.position : nil
        }
        return try handle.goToLast() ? handle.position : nil
    }
}

/// The files of a journal, grouped by sequence.
struct JournalFiles {
    /// Paths by the id of their `JournalSequence`.
    var sequences: [String: [String]] = [:]
    /// Files without entries, each with its status before it was opened. A file gets its sequence with its
    /// first entry, so a change means that the journal must be opened again.
    var empty: [(path: String, status: FileStatus?)] = []
    /// Files that cannot be opened, and why.
    var bad: [(path: String, error: JournalError)] = []
    /// Device and inode by path, read before any file was opened.
    let identities: [String: [UInt64]]

    /// Lists and opens the files of a journal.
    ///
    /// - Parameter directory: nil for the journal of this machine.
    /// - Throws: `noPermission` if there are files and the agent's user may read none of them.
    init(of directory: String?) throws(JournalError) {
        identities = JournalFiles.identities(directory)
        for path in identities.keys.sorted() {
            let status = FileStatus(path)
            do throws(JournalError) {
                let file = try JournalHandle([path])
                if try file.goToLast(), let last = file.position {
                    sequences[last.sequence + JournalFiles.owner(path), default: []].append(path)
                } else {
                    empty.append((path, status))
                }
            } catch {
                // The file was removed meanwhile, or is being made.
                if error.code == .missing {
                    empty.append((path, status))
                } else {
                    bad.append((path, error))
                }
            }
        }
        guard !bad.isEmpty, sequences.isEmpty, empty.isEmpty,
            bad.allSatisfy({ $0.error.code == .noPermission })
        else { return }
        throw JournalError(
            .noPermission,
            "the agent's user may not read the journal; run `systemctl edit spoolship`, add [Service] and"
                + " SupplementaryGroups=systemd-journal, and restart")
    }

    /// The owner of a file, after a blank: `system`, `user-1000`, or the name of another machine. It is the
    /// same before and after rotation, which adds `@…`. Files in memory have the same names as those on disk,
    /// so their owner begins with `/run`.
    private static func owner(_ path: String) -> String {
        let name = path[(path.lastIndex(of: "/") ?? path.startIndex)...]
        let end = name.firstIndex(of: "@") ?? name.lastIndex(of: ".") ?? name.endIndex
        return (path.hasPrefix("/run/") ? " /run" : " ") + name[..<end]
    }

    /// Device and inode of the file that each path leads to now; empty if it cannot be looked at.
    static func identities(_ directory: String?) -> [String: [UInt64]] {
        Dictionary(paths(of: directory).map { ($0, FileStatus($0).map { [$0.device, $0.inode] } ?? []) }) {
            $1
        }
    }

    /// The directories of a journal. journald writes to /run until /var is writable, so both belong to this
    /// machine's.
    static func directories(_ directory: String?) -> [String] {
        if let directory { return [directory] }
        return ["/run/log/journal", "/var/log/journal"]
    }

    /// Paths of journald's files. A `~` at the end marks a file that journald found unclosed and set aside.
    /// Files are in the directories and in subdirectories named by a machine id; on this machine's disk only
    /// in its own, as with SD_JOURNAL_LOCAL_ONLY of sd_journal_open(3).
    private static func paths(of directory: String?) -> [String] {
        let machine = (try? WholeFile.bytes(of: "/etc/machine-id", atMost: 64)) ?? []
        func names(_ path: String) -> [String] { ((try? WholeFile.names(in: path)) ?? []).sorted() }
        return directories(directory).flatMap { root in
            let isOwn = directory == nil && root.hasPrefix("/var")
            let machines = names(root).filter { name in
                name.count == 32 && name.allSatisfy(\.isHexDigit)
                    && (!isOwn || machine.starts(with: name.utf8))
            }
            return ([root] + machines.map { "\(root)/\($0)" }).flatMap { path in
                names(path).filter { $0.hasSuffix(".journal") || $0.hasSuffix(".journal~") }.map {
                    "\(path)/\($0)"
                }
            }
        }
    }
}
