internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Checks which files may be opened, finds their owners and apps, and reports problems to people.
extension SpoolReader {
    /// How long a file may have two names before it is refused.
    private static let linkTime = Duration.seconds(1)

    /// Whether a file may be opened at all. If not, it is refused, counted and reported.
    func admit(_ status: FileStatus, _ directory: SpoolDirectory, _ name: FileName) -> Bool {
        guard status.isRegular else {
            if !status.isDirectory {
                refuse(
                    status.isLink ? .symbolicLink : .notRegular, directory.path(of: name.claimed ?? name),
                    status.owner)
            }
            restoreRefused(name, in: directory, status)
            return false
        }
        // Hard links are refused only in a spool, whose files the agent removes: a user could link a file
        // that belongs to somebody else into it, to have that file read.
        if options.place != nil { return status.links > 0 }
        guard status.links <= 1 else {
            // A writer that publishes by link(2) and unlink(2) has two names for a moment, so wait.
            if let since = directory.settling[name]?.linkedSince {
                guard now - since >= SpoolReader.linkTime else {
                    recheck(name, in: directory, after: SpoolReader.linkTime - (now - since))
                    return false
                }
                directory.settling[name] = nil
                if directory.linked.count < Complaints.most {
                    directory.linked.insert(name)
                }
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

    /// Opens a name of an append file for its metadata. A link is followed if its file is in a directory of
    /// `follow`; any other link is opened itself, so that it is refused.
    func openName(_ name: FileName, in directory: SpoolDirectory, _ raw: Int32) throws(SystemError)
        -> Descriptor
    {
        let looked = try FileSystem.openPath(raw, name)
        guard let place = options.place, !place.follow.isEmpty, try FileSystem.status(looked).isLink else {
            return looked
        }
        let link = FollowedLinks.Link(directory: directory.path, name: name)
        do throws(SystemError) {
            guard let target = try place.target(of: looked, in: raw) else {
                end(watching.links.gone(link))
                if let file = directory.files[name] {
                    displaced(file)
                }
                return looked
            }
            watch(target, of: link, in: directory)
            return target.takeFile()
        } catch {
            if error.number == ENOENT {
                end(watching.links.found(link, to: name, in: nil))
            }
            throw error
        }
    }

    /// Gives a claimed entry that turns out to be unreadable its original name back, so that its owner finds
    /// it. A link, FIFO or socket whose original name is taken is removed.
    private func restoreRefused(_ claim: FileName, in directory: SpoolDirectory, _ status: FileStatus) {
        guard options.place == nil, let original = claim.claimed, let raw = directory.descriptor?.raw else {
            return
        }
        let path = directory.path(of: claim)
        do throws(SystemError) {
            do throws(SystemError) {
                try FileSystem.rename(raw, claim, to: original)
            } catch {
                guard error.number == EEXIST, !status.isRegular, !status.isDirectory else { throw error }
                try FileSystem.unlink(raw, claim)
                log.warning(
                    "refused file removed: its name is taken", ["path": directory.path(of: original).text])
            }
        } catch {
            guard error.number != ENOENT else { return }
            note(error, "cannot restore the name of a refused file", path)
            if error.number != EEXIST {
                tryAgain(at: claim, in: directory, error)
            }
        }
    }

    /// Counts and logs a file that is never opened, once for as long as it is remembered.
    func refuse(_ reason: SpoolRefusal, _ path: FileName, _ owner: UInt32? = nil) {
        guard !complaints.isRefused(path) else { return }
        let owner = owner ?? (try? FileSystem.status(root.raw, path))?.owner
        guard complaints.refuse(reason, at: path, of: owner) else { return }
        log.warning("file refused", ["path": options.shown(path), "reason": reason.rawValue])
    }

    /// Notes a file that is not read because of its name. Hidden and unfinished files are not reported,
    /// because their names say so on purpose.
    func passOver(_ directory: SpoolDirectory, _ name: FileName) {
        guard options.place == nil, !name.isHidden, !name.isUnfinished else { return }
        complaints.passOver(directory.path(of: name))
    }

    /// Forgets the reports about a name that is gone.
    func forgetName(_ name: FileName, in directory: SpoolDirectory) {
        complaints.nameGone(directory.path(of: name))
    }

    /// Handles an error of looking at a name, or with an empty name of listing the directory.
    func notOpened(_ directory: SpoolDirectory, _ name: FileName, _ error: SystemError) {
        let path = name.bytes.isEmpty ? directory.path : directory.path(of: name)
        switch error.number {
        case ENOENT, ENOTDIR:
            reached(path)
            // What a link leads to is looked for with the path of the place.
            let link = FollowedLinks.Link(directory: directory.path, name: name)
            if !watching.links.isDangling(link), isThere(name, in: directory) {
                tryAgain(at: name, in: directory, error)
            }
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

    /// Handles an error of opening or reading a file that could be seen.
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
        if file.taken.offset == 0, file.descriptor == nil, complaints[directory.path(of: name)] == nil,
            complaints.isFull
        {
            // Nothing was read of the file and no complaint about it fits into the table, so it need not be
            // known.
            streams.remove(file)
            return tryAgain(at: name, in: directory, error)
        }
        tryAgain(.read, directory.path(of: name), error, .read(file.id))
    }

    /// Advice for a file that is read in place and that the agent may not read.
    private func advice(for status: FileStatus?) -> String {
        guard let status, status.mode & 0o040 == 0 else {
            return SpoolReader.advice(group: status?.groupName ?? "adm")
        }
        return "let its writer make it 0640 (it is \(status.shownMode)), or setfacl -m u:spoolship:r"
    }

    /// Advice to let the agent read a file that a group may read. Groups whose members can read everything or
    /// become root are not recommended; an ACL is.
    static func advice(group: String) -> String {
        let powerful: Set = ["root", "shadow", "disk", "docker", "sudo", "wheel", "kmem", "lxd", "libvirt"]
        guard powerful.contains(group) else {
            return "usermod -aG \(group) spoolship, or setfacl -m u:spoolship:r, and restart it"
        }
        return
            "setfacl -m u:spoolship:r, and setfacl -d -m u:spoolship:r for its directory; not by its group, \(group)"
    }

    /// Reports a problem with a path once, until it is resolved.
    func complain(_ path: FileName, _ owner: UInt32?, _ advice: String) {
        guard complaints[path] == nil else { return }
        // The status of a mounted file system is not asked for; take the owner of the directory above it.
        let owner =
            owner ?? (try? FileSystem.status(root.raw, path).owner)
            ?? (try? FileSystem.status(root.raw, path.parent).owner) ?? 0
        let name = shownName(of: owner)
        let complaint = SpoolComplaint(
            path: options.shown(path), owner: owner, ownerName: name, advice: advice)
        guard complaints.add(complaint, at: path, of: owner) else { return }
        log.warning("cannot access", ["path": options.shown(path), "owner": name, "advice": advice])
    }

    /// Advice for a file that cannot be renamed or removed.
    static func notRemoved(_ error: SystemError) -> String {
        let advice =
            error.number == EPERM
            ? "it or its directory is immutable or append-only (lsattr; chattr -ai), or the directory is sticky"
            : "let its group write the directory"
        return "the agent may not rename and remove it: \(advice)"
    }

    /// Advice if all random names for a claim were taken, which must be deliberate.
    static let nameTaken =
        "the agent cannot rename it: others have taken the names that it drew; remove what is named .spoolship.* beside it"

    // MARK: Owners

    /// Time after which a slow lookup of a user's name is reported.
    private static let slowLookup = Duration.seconds(5)

    /// The app of a file: that of its directory, or in `incoming/` the name of its owner, unless an app of
    /// another user has this name.
    func app(of directory: SpoolDirectory, _ owner: UInt32) -> String {
        guard directory.isIncoming else { return directory.app }
        let name = knownName(of: owner) ?? owners.find(owner)
        let app = Owners.app(of: owner, named: name) { isApp($0, notOf: owner) }
        let told = FileName("incoming/*, \(name)")
        switch app {
        case .own: complaints.resolve(told)
        case .clash(let instead):
            complain(
                told, owner,
                "an app of another user has this login name: the user's events are of the app \(instead)")
        }
        return app.name
    }

    /// Whether there is an app with this name, by its directory or its settings, that does not belong to the
    /// user.
    private func isApp(_ name: String, notOf owner: UInt32) -> Bool {
        if name == "default" || options.appsElsewhere.contains(name) { return true }
        guard let directory = try? FileSystem.status(root.raw, FileName(name)) else { return false }
        return directory.isDirectory && directory.owner != owner
    }

    /// The share of the reader's time to which work on a file is charged: that of its app, or in `incoming/`
    /// that of its owner.
    func share(of directory: SpoolDirectory, _ owner: UInt32) -> String {
        directory.isIncoming ? owners.share(of: owner) : directory.app
    }

    func share(of file: AppendFile) -> String { share(of: file.directory, file.owner) }

    /// Whether the app of a file is known. If not, the owner's name is being looked up, and the file waits.
    func isNamed(_ directory: SpoolDirectory, _ owner: UInt32?) -> Bool {
        guard directory.isIncoming, let owner else { return true }
        return knownName(of: owner) != nil
    }

    /// A user's name for messages. An unknown name is looked up for the next call.
    func shownName(of owner: UInt32) -> String {
        _ = knownName(of: owner)
        return owners.shownName(of: owner)
    }

    /// A user's name, or `uid-N` for a user without one; nil while the name is looked up on another thread,
    /// because a directory service may block.
    private func knownName(of owner: UInt32) -> String? {
        switch owners.name(of: owner) {
        case .known(let name): return name
        case .awaited: return nil
        case .toLookUp: break
        }
        if let name = Owners.local(owner) {
            owners.found(name, of: owner)
            return name
        }
        schedule(after: SpoolReader.slowLookup, .reportSlowName(owner))
        let isAsked = Mount.ask(on: "names", "") { [find = owners.find] in
            let name = find(owner)
            self.loop.post { self.assumeIsolated { $0.found(name, of: owner) } }
        }
        if !isAsked {
            found(owners.find(owner), of: owner)
        }
        return owners[owner]
    }

    /// The name of a user was found: files that waited for it can be read.
    private func found(_ name: String, of owner: UInt32) {
        owners.found(name, of: owner)
        complaints.resolve(SpoolReader.nameless(owner))
        complaints.ownerNamed()
        wake()
    }

    /// Reports that the lookup of a user's name is slow, if it is still unknown.
    func tellSlow(_ owner: UInt32) {
        guard owners[owner] == nil else { return }
        complain(
            SpoolReader.nameless(owner), owner,
            "the name of user \(owner) cannot be found out: the directory service (nsswitch.conf) does not answer; "
                + "the user's files in incoming/ wait")
        publish()
    }

    /// The path under which it is reported that a user's name is unknown.
    private static func nameless(_ owner: UInt32) -> FileName { FileName("incoming/*, uid \(owner)") }
}
