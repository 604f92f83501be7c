internal import EventLoops
internal import Glibc
internal import Logs

extension SpoolReader {
    /// How many complaints and refusals are remembered, so that each is reported once.
    private static let mostRemembered = 1024

    /// How many users' names are remembered: of one that is not, the system's files are read each time.
    private static let mostOwners = 65_536

    /// How long a file may have two names.
    private static let linkTime = Duration.seconds(1)

    // MARK: What may be opened

    /// Whether a file may be opened at all; if not, it is refused, counted and told.
    func admit(_ status: FileStatus, _ directory: SpoolDirectory, _ name: FileName) -> Bool {
        guard status.isRegular else {
            if !status.isDirectory {
                refuse(status.isLink ? .symbolicLink : .notRegular, directory.path(of: name.claimed ?? name))
            }
            restoreRefused(name, in: directory, status)
            return false
        }
        guard status.links <= 1 else {
            // Publishing by link and unlink passes through two names.
            if let since = directory.settling[name]?.linkedSince {
                guard now - since >= SpoolReader.linkTime else { return false }
                directory.settling[name] = nil
                if directory.linked.count < SpoolReader.mostRemembered { directory.linked.insert(name) }
                refuse(.hardLink, directory.path(of: name.claimed ?? name))
                restoreRefused(name, in: directory, status)
            } else {
                var stamp = DropStamp.unknown
                stamp.linkedSince = now
                directory.settling[name] = stamp
                recheck(name, in: directory, after: SpoolReader.linkTime)
            }
            return false
        }
        return status.links == 1
    }

    /// What was claimed by a name that was something else before, and is never read, gets its name back: nobody looks for
    /// it under a hidden one. A link, FIFO or socket whose name is taken is removed.
    private func restoreRefused(_ claim: FileName, in directory: SpoolDirectory, _ status: FileStatus) {
        guard options.place == nil, let original = claim.claimed, let raw = directory.descriptor?.raw else { return }
        let path = directory.path(of: claim)
        do throws(SystemError) {
            do throws(SystemError) {
                try FileSystem.rename(raw, claim, to: original)
            } catch {
                guard error.number == EEXIST, !status.isRegular, !status.isDirectory else { throw error }
                try FileSystem.unlink(raw, claim)
                log.warning("refused file removed: its name is taken", ["path": directory.path(of: original).text])
            }
        } catch {
            guard error.number != ENOENT else { return }
            note(error, "cannot restore the name of a refused file", path)
            if error.number != EEXIST { tryAgain(at: claim, in: directory, error) }
        }
    }

    /// Counts and tells a file that is never opened, once.
    func refuse(_ reason: SpoolRefusal, _ path: FileName) {
        guard isNews(path) else { return }
        counters.refused[reason, default: 0] += 1
        log.warning("file refused", ["path": shown(path), "reason": reason.rawValue])
    }

    /// Whether that was not logged before, as far as is remembered.
    func isNews(_ what: FileName) -> Bool {
        if trouble.refusals.count >= SpoolReader.mostRemembered { trouble.refusals.removeAll() }
        return trouble.refusals.insert(what).inserted
    }

    func notOpened(_ directory: SpoolDirectory, _ name: FileName, _ error: SystemError) {
        let path = name.bytes.isEmpty ? directory.path : directory.path(of: name)
        switch error.number {
        case ENOENT, ENOTDIR:
            reached(path)
            if isThere(name, in: directory) { tryAgain(at: name, in: directory, error) }
        case ELOOP: refuse(.symbolicLink, path)
        case EXDEV: refuse(.otherFileSystem, path)
        case EACCES:
            complain(path, nil, "the agent may not read it: let its group read and search the directory")
            tryAgain(at: name, in: directory, error)
        default:
            note(error, "cannot open", path)
            tryAgain(at: name, in: directory, error)
        }
    }

    /// A file could be seen but not opened or not read.
    func notRead(_ directory: SpoolDirectory, _ name: FileName, _ error: SystemError, _ status: FileStatus?) {
        switch error.number {
        case EACCES, EPERM:
            complain(
                directory.path(of: name), status?.owner,
                options.place == nil
                    ? "the agent may not read it: chmod g+r (0640 or 0660), group spoolship"
                    : "the agent may not read it: \(advice(for: status))")
        default: note(error, "cannot read", directory.path(of: name))
        }
        var file = directory.files[name]
        if let unread = file, unread.taken.offset == 0, unread.descriptor == nil,
            trouble.complaints[directory.path(of: name)] == nil, trouble.complaints.count >= Complaints.most
        {
            // Beyond what is reported nothing is kept of it.
            streams.remove(unread)
            file = nil
        }
        guard let file else { return tryAgain(at: name, in: directory, error) }
        tryAgain(.read, directory.path(of: name), error) { self.readAgain(file) }
    }

    /// How the agent may read a file where it lies.
    private func advice(for status: FileStatus?) -> String {
        guard let status, status.mode & 0o040 == 0 else {
            return SpoolReader.advice(group: status?.groupName ?? "adm")
        }
        return "let its writer make it 0640 (it is \(status.shownMode)), or setfacl -m u:spoolship:r"
    }

    /// How to let the agent read what a group may read; its members must not become able to read all else, or to be root.
    static func advice(group: String) -> String {
        let powerful: Set = ["root", "shadow", "disk", "docker", "sudo", "wheel", "kmem", "lxd", "libvirt"]
        guard powerful.contains(group) else {
            return "usermod -aG \(group) spoolship, or setfacl -m u:spoolship:r, and restart it"
        }
        return "setfacl -m u:spoolship:r, and setfacl -d -m u:spoolship:r for its directory; not by its group, \(group)"
    }

    /// Tells a person once what to fix; remembered until it is fixed.
    func complain(_ path: FileName, _ owner: UInt32?, _ advice: String) {
        guard trouble.complaints[path] == nil else { return }
        // Of what is mounted somewhere, the owner of the directory that it is in.
        let owner =
            owner ?? (try? FileSystem.status(tree.root.raw, path).owner)
            ?? (try? FileSystem.status(tree.root.raw, path.parent).owner) ?? 0
        let complaint = SpoolComplaint(path: shown(path), owner: owner, ownerName: ownerName(owner), advice: advice)
        guard trouble.complaints.add(complaint, at: path) else { return }
        log.warning("cannot access", ["path": shown(path), "owner": ownerName(owner), "advice": advice])
    }

    /// Why a file cannot be renamed and removed, and what helps.
    static func notRemoved(_ error: SystemError) -> String {
        let advice =
            error.number == EPERM
            ? "it or its directory is immutable or append-only (lsattr; chattr -ai), or the directory is sticky"
            : "let its group write the directory"
        return "the agent may not rename and remove it: \(advice)"
    }

    // MARK: Descriptors

    func open(_ file: AppendFile) throws(SystemError) {
        held.uses += 1
        file.lastUse = held.uses
        guard file.descriptor == nil else { return }
        guard file.hasName else { throw SystemError("open", number: ENOENT) }
        let raw = try reach(file.directory)
        let looked = try FileSystem.openPath(raw, file.name)
        let status = try FileSystem.status(looked)
        // Another file has the name by now; the change that tells of it is on its way.
        guard status.isRegular, try FileID(looked, status) == file.id else { throw SystemError("open", number: ENOENT) }
        try open(file, looked)
        reached(file.path)
    }

    func open(_ file: AppendFile, _ looked: borrowing Descriptor) throws(SystemError) {
        held.uses += 1
        file.lastUse = held.uses
        let owner = try FileSystem.status(looked).owner
        if owner != file.owner { streams.change(file) { $0.owner = owner } }
        file.descriptor = try FileSystem.read(looked)
        held.files.append(file)
        closeIdleFiles()
    }

    /// Closes the least recently used files beyond the limit, of those that can be opened again: what lost its name
    /// cannot, and what is being removed holds its file lease.
    func closeIdleFiles() {
        while held.files.count > held.mostFiles {
            var victim: (index: Int, hasUnread: Int, lastUse: UInt64)?
            for (index, file) in held.files.enumerated() {
                let lastUse = file.lastUse
                guard lastUse != held.uses, file !== held.compared, file.hasName, file.stage != .leaving
                else { continue }
                // Those that are read to the end first: nothing is lost if they are deleted meanwhile.
                let hasUnread = file.hasUnread ? 1 : 0
                if let victim, (victim.hasUnread, victim.lastUse) <= (hasUnread, lastUse) { continue }
                victim = (index, hasUnread, lastUse)
            }
            guard let victim else { return }
            held.files.swapAt(victim.index, held.files.count - 1)
            let file = held.files.removeLast()
            file.descriptor = nil
            file.rest()
            // Nothing is to be remembered of a file in which nothing ever was: what is written to it is reported.
            if file.isResting, file.length == 0, file.taken.offset == 0, !file.isRotated { streams.remove(file) }
        }
    }

    func closeDescriptor(of file: AppendFile) {
        guard file.descriptor != nil else { return }
        file.descriptor = nil
        held.files.removeAll { $0 === file }
    }

    // MARK: Whose a file is

    /// The app of a file: its directory's, or in `incoming/` its owner's name.
    func app(of directory: SpoolDirectory, _ owner: UInt32) -> String {
        directory.isIncoming ? ownerName(owner) : directory.app
    }

    /// Whose share of the reader's time work on a file uses: its app's, in `incoming/` its owner's.
    func share(of directory: SpoolDirectory, _ owner: UInt32) -> String {
        directory.isIncoming ? share(of: owner) : directory.app
    }

    func share(of file: AppendFile) -> String { share(of: file.directory, file.owner) }

    /// Users beyond the first 65,536 who have no name count as one, so many at a time: who has a range of subordinate ids, which
    /// holds as many, would have as many shares. A name that was not looked up yet is none: the lookup is paid for by a share, too.
    func share(of owner: UInt32) -> String {
        guard owner > UInt16.max else { return ownerName(owner) }
        return owners[owner].flatMap { $0.hasPrefix("uid-") ? nil : $0 } ?? "uids-\(owner >> 16)"
    }

    /// A user's name, or `uid-N` for one without.
    func ownerName(_ owner: UInt32) -> String {
        if let known = owners[owner] { return known }
        if owners.count >= SpoolReader.mostOwners { owners.removeAll() }
        let name = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer -> String in
            var entry = passwd()
            var found: UnsafeMutablePointer<passwd>?
            guard let base = buffer.baseAddress,
                getpwuid_r(owner, &entry, base, buffer.count, &found) == 0, found != nil
            else { return "uid-\(owner)" }
            return entry.pw_name.map { String(cString: $0) } ?? "uid-\(owner)"
        }
        owners[owner] = name
        return name
    }
}
