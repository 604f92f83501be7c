internal import EventLoops

/// The files of one sequence that have one name: journald appends to the last of them, and numbers its entries upwards, whatever the clock says.
///
/// Of several sequences in one handle the library reads on by the clock: what has an earlier time than the last entry is passed over. Of
/// one sequence it reads on by number. But since systemd 255 the files of the system, of users and of memory share a sequence, and what is
/// copied from memory gets the next numbers of the system's file, which others may have had.
final class JournalSequence {
    /// Its sequence, and whose its entries are.
    let id: String
    let files: [String]
    let handle: JournalHandle
    private let matches: [[String]]

    init(_ id: String, _ files: [String], _ options: JournalOptions) throws(JournalError) {
        self.id = id
        self.files = files
        // One byte more than fits shows that a field was longer.
        handle = try JournalHandle(files, longest: options.maxEventSize + 64)
        matches = JournalFilter(options).matches
        try handle.match(matches)
    }

    /// Opens all sequences, each at its place, with the files as they lay at one moment.
    ///
    /// Rotation renames a file, then makes a new one under the old name. With the new one but without the renamed one, the
    /// place would be set behind entries that nobody has read.
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
                    // A file of it has gone since.
                    guard error.code == .missing else { throw error }
                }
            }
            if JournalFiles.identities(options.directory) == files.identities { return (sequences, files) }
        }
        throw JournalError(.failed, "the journal's files are rotated faster than they can be opened")
    }

    /// Makes the entry after a position the next one; nil: the first.
    ///
    /// In the files that are open: under their names may be others by now.
    func go(to position: JournalPosition?) throws(JournalError) {
        guard let position else { return try handle.seekHead() }
        guard try !handle.find(position) else { return }
        try handle.match([])
        var read: JournalPosition? = position
        // Otherwise only the matches hide it, or what is left has higher numbers.
        if try !handle.find(position), try handle.goToFirst(), let first = handle.position,
            first.number <= position.number
        {
            // A power cut has taken it from the disk, and the next boot uses its number again: what is left of its boot was read, whatever
            // the clock says by now. If nothing is, the clock tells.
            try handle.match([["_BOOT_ID=\(position.boot)"]])
            try handle.seek(position.entry)
            read = try handle.previous() ? handle.position : nil
            try handle.match([])
            if read == nil {
                try handle.seek("t=\(position.time)")
                if try handle.previous() { read = handle.position }
            }
        }
        try handle.match(matches)
        guard let read else { return try handle.seekHead() }
        _ = try handle.find(read)
    }

    /// The last entry that is not later than one of another sequence; nil: there is none. After it, `go` is to be called.
    func last(until other: JournalPosition) throws(JournalError) -> JournalPosition? {
        // After the end of a boot the library finds nothing that is later in that boot; what is of later boots the clock tells.
        for cursor in [other.entry, "t=\(other.time)"] {
            try handle.seek(cursor)
            guard try handle.next() else { continue }
            if handle.position?.entry == other.entry { return handle.position }
            return try handle.previous() ? handle.position : nil
        }
        return try handle.goToLast() ? handle.position : nil
    }
}

struct JournalFiles {
    /// By the id of their `JournalSequence`.
    var sequences: [String: [String]] = [:]
    /// Those without entries, and what the kernel said of each before: a file gets its sequence with the first one.
    var empty: [(path: String, status: FileStatus?)] = []
    /// Those that cannot be opened, and why.
    var bad: [(path: String, error: JournalError)] = []
    /// By path, device and number before any was opened.
    let identities: [String: [UInt64]]

    /// - Parameter directory: nil for this machine's own.
    /// - Throws: `noPermission` when there are files, and none may be read.
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
                // It has gone since, or is being made.
                if error.code == .missing { empty.append((path, status)) } else { bad.append((path, error)) }
            }
        }
        guard !bad.isEmpty, sequences.isEmpty, empty.isEmpty, bad.allSatisfy({ $0.error.code == .noPermission })
        else { return }
        throw JournalError(
            .noPermission,
            "the agent's user may not read the journal; run `systemctl edit spoolship`, add [Service] and"
                + " SupplementaryGroups=systemd-journal, and restart")
    }

    /// Whose entries a file has, behind a blank: `system`, `user-1000`, or another machine's; before and after it is set aside. What is in
    /// memory has the same names.
    private static func owner(_ path: String) -> String {
        let name = path[(path.lastIndex(of: "/") ?? path.startIndex)...]
        let end = name.firstIndex(of: "@") ?? name.lastIndex(of: ".") ?? name.endIndex
        return (path.hasPrefix("/run/") ? " /run" : " ") + name[..<end]
    }

    /// Which file each path leads to now; none where it cannot be looked at.
    static func identities(_ directory: String?) -> [String: [UInt64]] {
        Dictionary(paths(of: directory).map { ($0, FileStatus($0).map { [$0.device, $0.inode] } ?? []) }) { $1 }
    }

    /// Where the journals are: of this machine, in memory and on the disk, unless a directory is given.
    static func directories(_ directory: String?) -> [String] {
        if let directory { return [directory] }
        return ["/run/log/journal", "/var/log/journal"]
    }

    /// journald's files, `~` at the end of those that it found unclosed: in the directories, and in those in them that are named like a
    /// machine, on the disk like this one.
    private static func paths(of directory: String?) -> [String] {
        let machine = (try? WholeFile.bytes(of: "/etc/machine-id", atMost: 64)) ?? []
        func names(_ path: String) -> [String] { ((try? WholeFile.names(in: path)) ?? []).sorted() }
        return directories(directory).flatMap { root in
            let isOwn = directory == nil && root.hasPrefix("/var")
            let machines = names(root).filter { name in
                name.count == 32 && name.allSatisfy(\.isHexDigit) && (!isOwn || machine.starts(with: name.utf8))
            }
            return ([root] + machines.map { "\(root)/\($0)" }).flatMap { path in
                names(path).filter { $0.hasSuffix(".journal") || $0.hasSuffix(".journal~") }.map { "\(path)/\($0)" }
            }
        }
    }
}
