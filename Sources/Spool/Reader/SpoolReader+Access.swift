internal import EventLoops
internal import Glibc
internal import Logs

extension SpoolReader {
    /// How long a file may have two names.
    private static let linkTime = Duration.seconds(1)

    /// Whether a file may be opened at all; if not, it is refused, counted and told.
    func admit(_ status: FileStatus, _ directory: SpoolDirectory, _ name: FileName) -> Bool {
        guard status.isRegular else {
            if !status.isDirectory {
                refuse(
                    status.isLink ? .symbolicLink : .notRegular, directory.path(of: name.claimed ?? name), status.owner)
            }
            restoreRefused(name, in: directory, status)
            return false
        }
        guard status.links <= 1 else {
            // Publishing by link and unlink passes through two names.
            if let since = directory.settling[name]?.linkedSince {
                guard now - since >= SpoolReader.linkTime else { return false }
                directory.settling[name] = nil
                if directory.linked.count < HeldPaths<SpoolRefusal>.most { directory.linked.insert(name) }
                refuse(.hardLink, directory.path(of: name.claimed ?? name), status.owner)
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

    /// Counts and tells a file that is never opened, once, as long as it is remembered.
    func refuse(_ reason: SpoolRefusal, _ path: FileName, _ owner: UInt32? = nil) {
        guard trouble.refusals[path] == nil else { return }
        let owner = owner ?? (try? FileSystem.status(tree.root.raw, path))?.owner
        guard trouble.refusals.add(reason, at: path, of: owner) else { return }
        counters.refused[reason, default: 0] += 1
        log.warning("file refused", ["path": shown(path), "reason": reason.rawValue])
    }

    /// A file whose name is of no kind that is read. Hidden and unfinished ones are meant to be passed over.
    func passOver(_ directory: SpoolDirectory, _ name: FileName) {
        guard options.place == nil, !name.isHidden, !name.isUnfinished else { return }
        let path = directory.path(of: name)
        if trouble.passedOver[path] == nil { _ = trouble.passedOver.add((), at: path, of: nil) }
    }

    /// A name is gone about which there was something to say.
    func forgetName(_ name: FileName, in directory: SpoolDirectory) {
        guard !trouble.passedOver.isEmpty || !trouble.refusals.isEmpty else { return }
        let path = directory.path(of: name)
        trouble.passedOver.remove(path)
        trouble.refusals.remove(path)
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
        guard let file = directory.files[name] else { return tryAgain(at: name, in: directory, error) }
        if file.taken.offset == 0, file.descriptor == nil, trouble.complaints[directory.path(of: name)] == nil,
            trouble.complaints.count >= HeldPaths<SpoolComplaint>.most
        {
            // Beyond what is reported nothing is kept of it.
            streams.remove(file)
            return tryAgain(at: name, in: directory, error)
        }
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
        let name = shownName(of: owner)
        let complaint = SpoolComplaint(path: shown(path), owner: owner, ownerName: name, advice: advice)
        guard trouble.complaints.add(complaint, at: path, of: owner) else { return }
        log.warning("cannot access", ["path": shown(path), "owner": name, "advice": advice])
    }

    /// Why a file cannot be renamed and removed, and what helps.
    static func notRemoved(_ error: SystemError) -> String {
        let advice =
            error.number == EPERM
            ? "it or its directory is immutable or append-only (lsattr; chattr -ai), or the directory is sticky"
            : "let its group write the directory"
        return "the agent may not rename and remove it: \(advice)"
    }

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
}
