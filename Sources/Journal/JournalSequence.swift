internal import EventLoops

/// The files of one sequence: journald numbers their entries one after the other, whatever the clock says.
///
/// Of several sequences in one handle the library reads on by the clock: what has an earlier time than the last entry is passed over.
final class JournalSequence {
    let id: String
    let files: [String]
    let handle: JournalHandle

    init(_ id: String, _ files: [String], matches: [[String]], longest: Int) throws(JournalError) {
        self.id = id
        self.files = files
        handle = try JournalHandle(files, longest: longest)
        try handle.match(matches)
    }

    /// Makes the entry after a position the next one; nil: the first.
    func go(to position: JournalPosition?) throws(JournalError) {
        guard let position else { return try handle.seekHead() }
        try handle.seek(position.cursor)
        // Without that entry the search ends at the first one after it, which is to be read.
        guard try handle.next(), !handle.isAt(position) else { return }
        try handle.seek(position.cursor)
    }

    /// The last entry that is not later than one of another sequence; nil: there is none. After it, `go` is to be called.
    func last(until other: JournalPosition) throws(JournalError) -> JournalPosition? {
        // After the end of a boot the library finds nothing that is later in that boot; what is of later boots the clock tells.
        for cursor in [other.cursor, "t=\(other.time)"] {
            try handle.seek(cursor)
            guard try handle.next() else { continue }
            guard !handle.isAt(other) else { return handle.position }
            return try handle.previous() ? handle.position : nil
        }
        return try handle.goToLast() ? handle.position : nil
    }
}

/// The files of a journal, as the library reads them.
struct JournalFiles {
    /// By the sequence of their entries.
    var sequences: [String: [String]] = [:]
    /// Those without entries, and what the kernel said of each before: a file gets its sequence with the first one.
    var empty: [(path: String, status: FileStatus?)] = []
    /// Those that cannot be opened, and why.
    var bad: [(path: String, error: JournalError)] = []

    /// - Parameter directory: nil for this machine's own.
    /// - Throws: `noPermission` when there are files, and none may be read.
    init(of directory: String?) throws(JournalError) {
        for path in JournalFiles.paths(of: directory) {
            let status = FileStatus(path)
            do throws(JournalError) {
                let file = try JournalHandle([path])
                if try file.goToLast(), let last = file.position {
                    sequences[last.sequence, default: []].append(path)
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
