internal import EventLoops
internal import Model

/// Whose files are: which app their events are of, and whose share of the reader's time they use.
extension SpoolReader {
    /// How long a name is looked up before a person is told.
    private static let slowLookup = Duration.seconds(5)

    /// The app of a file: its directory's, or in `incoming/` its owner's name, unless that is another's app.
    func app(of directory: SpoolDirectory, _ owner: UInt32) -> String {
        guard directory.isIncoming else { return directory.app }
        let name = knownName(of: owner) ?? findUser(owner)
        let told = FileName("incoming/*, \(name)")
        guard isApp(name, notOf: owner) else {
            trouble.complaints.remove(told)
            return name
        }
        complain(
            told, owner, "an app of another user has this login name: the user's events are of the app uid-\(owner)")
        return "uid-\(owner)"
    }

    /// Whether an app has a name, by its directory or its settings, that does not belong to a user.
    private func isApp(_ name: String, notOf owner: UInt32) -> Bool {
        if name == "default" || options.appsElsewhere.contains(name) { return true }
        guard let directory = try? FileSystem.status(tree.root.raw, FileName(name)) else { return false }
        return directory.isDirectory && directory.owner != owner
    }

    /// Whose share of the reader's time work on a file uses: its app's, in `incoming/` its owner's.
    func share(of directory: SpoolDirectory, _ owner: UInt32) -> String {
        directory.isIncoming ? share(of: owner) : directory.app
    }

    func share(of file: AppendFile) -> String { share(of: file.directory, file.owner) }

    /// Users beyond the first 65,536 who have no name count as one, so many at a time: who has a range of subordinate ids, which
    /// holds as many, would have as many shares. A name that was not looked up yet is none.
    func share(of owner: UInt32) -> String {
        guard owner > UInt16.max else { return "uid-\(owner)" }
        return names[owner].flatMap { $0.hasPrefix("uid-") ? nil : $0 } ?? "uids-\(owner >> 16)"
    }

    /// Whether it is known of which app a file's events are; if not, that is being found out.
    func isNamed(_ directory: SpoolDirectory, _ owner: UInt32?) -> Bool {
        guard directory.isIncoming, let owner else { return true }
        return knownName(of: owner) != nil
    }

    /// A user's name for people.
    func shownName(of owner: UInt32) -> String { knownName(of: owner) ?? "uid-\(owner)" }

    /// A user's name, or `uid-N` for one without; nil while it is looked up, on a thread of its own.
    private func knownName(of owner: UInt32) -> String? {
        if let name = names[owner] { return name }
        guard names.ask(about: owner) else { return nil }
        if let name = OwnerNames.local(owner) {
            names.keep(name, of: owner)
            return name
        }
        schedule(after: SpoolReader.slowLookup) { self.tellSlow(owner) }
        let isAsked = Mount.ask(on: "names", "") { [findUser] in
            let name = findUser(owner)
            self.loop.post { self.assumeIsolated { $0.found(name, of: owner) } }
        }
        if !isAsked { found(findUser(owner), of: owner) }
        return names[owner]
    }

    private func found(_ name: String, of owner: UInt32) {
        names.keep(name, of: owner)
        trouble.complaints.remove(SpoolReader.nameless(owner))
        trouble.complaints.touch()
        wake()
    }

    private func tellSlow(_ owner: UInt32) {
        guard names[owner] == nil else { return }
        complain(
            SpoolReader.nameless(owner), owner,
            "the name of user \(owner) cannot be found out: the directory service (nsswitch.conf) does not answer; "
                + "the user's files in incoming/ wait")
        publish()
    }

    /// Under which path it is reported that a user's name is not known.
    private static func nameless(_ owner: UInt32) -> FileName { FileName("incoming/*, uid \(owner)") }
}
