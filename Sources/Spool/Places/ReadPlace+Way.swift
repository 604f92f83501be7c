internal import CLinux
internal import EventLoops
internal import Glibc
internal import Model

/// The way to a place's directory, which links and mounts of others may change at any time.
extension ReadPlace {
    /// Why a directory that is there is not read.
    struct Refusal: Error {
        let reason: SpoolRefusal
        let owner: UInt32
        let advice: String
    }

    /// How far a path is followed: links of root and the agent's user only, links of other users too, or also
    /// into given mounts that may never answer.
    enum Reach: Equatable {
        case ownLinks, links
        case mounts([String])
    }

    /// Why the place is not read; nil if it is read, if nothing exists there, or if only the file system
    /// could say.
    public var problem: String? {
        guard case .failure(let refusal as Refusal) = Result(catching: { _ = try opened(.links) }) else {
            return nil
        }
        return refusal.advice
    }

    /// The paths of its files; nil if only the file system could say. What is mounted below the root is not
    /// looked at.
    public var files: [String]? {
        var found: [String] = []
        // Links may lead to a directory above them, or several to one.
        var entered: Set<[UInt64]> = []
        func add(_ directory: borrowing Descriptor, _ path: FileName, depth: Int) {
            guard depth <= Directories.deepest, let own = try? FileSystem.status(directory),
                entered.insert([own.device, own.inode]).inserted,
                let stream = try? DirectoryStream(directory)
            else { return }
            while let name = try? stream.next()?.name {
                guard let status = try? FileSystem.status(stream.descriptor, name) else { continue }
                let below =
                    path.bytes.isEmpty ? name : FileName(path.bytes + [UInt8(ascii: "/")] + name.bytes)
                let isFile = status.isRegular || status.isLink && leadsToFile(name, in: stream.descriptor)
                if isFile, fits(path, name) || !named(path, name).isEmpty {
                    found.append("\(root)/\(below.text)")
                }
                guard status.isDirectory || status.isLink, mayHold(below: below),
                    let inner = try? self.directory(at: name, beneath: stream.descriptor)
                else { continue }
                add(inner, below, depth: depth + 1)
            }
        }
        do {
            add(try opened(.links), FileName(""), depth: 0)
        } catch {
            return error is SystemError ? found : nil
        }
        return found.sorted()
    }

    /// The same files where the root leads by links that no user has made, as far as that is known without
    /// asking a file system.
    public var resolved: ReadPlace {
        guard let directory = try? opened(.ownLinks) else { return self }
        return at(directory)
    }

    private func at(_ directory: borrowing Descriptor) -> ReadPlace {
        moved(to: ReadPlace.path(of: directory))
    }

    /// Opens its directory, and compares it with what else is read.
    ///
    /// - Parameter known: the directory that is read now.
    /// - Returns: a descriptor that the caller closes; nil if it is the known one.
    /// - Throws: `SystemError`; `Refusal`; `Mount` of one that has to be waited for.
    func open(_ reach: Reach, unless known: SpoolFigures.Root?, _ options: SpoolOptions) throws -> Int32? {
        let directory = try opened(reach)
        let status = try FileSystem.status(directory)
        if let known, known.device == status.device, known.inode == status.inode { return nil }
        // Neither an entry that is not a directory, nor a directory in which nothing can be opened.
        _ = try FileSystem.openDirectory(directory.raw, FileName(""))
        let real = at(directory)
        if let conflict = conflict(at: real, own: options.own, places: options.places) {
            let advice = "the directory \(real.root), where this leads now, is not read: it \(conflict)"
            throw Refusal(reason: .symbolicLink, owner: status.owner, advice: advice)
        }
        return directory.release()
    }

    /// Whether a link is followed to a file.
    private func leadsToFile(_ name: FileName, in directory: Int32) -> Bool {
        guard let link = try? FileSystem.openPath(directory, name),
            let found = try? target(of: link, in: directory), let status = try? FileSystem.status(found.file)
        else { return false }
        return status.isRegular
    }

    /// Opens a directory into which links are followed.
    static func opened(_ directory: String) throws -> Descriptor {
        var links = 0
        return try follow(directory, from: AT_FDCWD, &links, .links)
    }

    /// Where the path of a directory leads.
    static func real(_ directory: String) throws -> String { path(of: try opened(directory)) }

    private func opened(_ reach: Reach) throws -> Descriptor {
        var links = 0
        return try ReadPlace.follow(root, from: AT_FDCWD, &links, reach)
    }

    /// Opens the directory at a path, name by name, so that the checked object is the one that is opened.
    ///
    /// A link is followed if it belongs to root or the agent's user, or if its owner also owns the target. So
    /// no user can lead the agent to another user's files. A link in a user's directory counts as that
    /// user's, who may have moved it there. A link on a network file system, which can report any owner, is
    /// not followed to another file system.
    private static func follow(
        _ path: String, from start: Int32, _ links: inout Int, _ reach: Reach
    ) throws -> Descriptor {
        var directory = try Descriptor(
            checking: openat(start, path.hasPrefix("/") ? "/" : ".", way), "openat")
        for name in path.split(separator: "/") {
            let next = try step(String(name), from: directory, reach)
            guard let target = RealPath.target(of: "", in: next.raw) else {
                directory = next
                continue
            }
            links += 1
            guard links <= RealPath.mostLinks else { throw SystemError("openat", number: ELOOP) }
            let end = try follow(target, from: directory.raw, &links, reach)
            let holder = try FileSystem.status(directory)
            let link = try FileSystem.status(next)
            let found = try FileSystem.status(end)
            let owner = holder.belongs(toRootOr: geteuid()) ? link : holder
            guard owner.belongs(toRootOr: geteuid()) || reach != .ownLinks && found.owner == owner.owner,
                found.device == link.device || Mount(of: next.raw).isLocal
            else {
                let link = "\(self.path(of: directory))/\(name)"
                throw Refusal(
                    reason: .symbolicLink, owner: owner.owner,
                    advice:
                        "the link \(link) is not followed, because a user may turn it and what it leads to "
                        + "is not that user's: name that directory in `read`")
            }
            directory = end
        }
        return directory
    }

    private static let way = CLINUX_O_PATH | O_NOFOLLOW | O_CLOEXEC

    /// Opens a name for its metadata; what is mounted there is judged before it is asked anything.
    private static func step(
        _ name: String, from directory: borrowing Descriptor, _ reach: Reach
    ) throws -> Descriptor {
        let known = if case .mounts(let known) = reach { known } else { [String]() }
        if known.isEmpty, let next = try? FileSystem.openPath(directory.raw, FileName(name)) { return next }
        // What is mounted only when it is entered (autofs) is, where that can be waited for.
        var raw = known.isEmpty ? -1 : openat(directory.raw, name, way | O_DIRECTORY)
        if raw < 0 {
            raw = openat(directory.raw, name, way)
        }
        let next = try Descriptor(checking: raw, "openat")
        let mount = Mount(of: next.raw)
        if let user = mount.provider, user != 0, user != geteuid() {
            let advice =
                "what a user has mounted at \(path(of: next)) is not read: name another directory in `read`"
            throw Refusal(reason: .otherFileSystem, owner: user, advice: advice)
        }
        guard mount.isLocal || known.contains(mount.number) else { throw mount }
        return next
    }

    /// The path of an open directory, without links. Without /proc nothing can be opened either.
    static func path(of directory: borrowing Descriptor) -> String {
        RealPath.target(of: FileSystem.selfPath(directory.raw)) ?? ""
    }
}
