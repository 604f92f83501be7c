internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Problems with paths, and the owners of files.
///
/// Each problem is reported once until it is resolved: `Complaints` remembers, and `Owners` knows the names
/// of users. A name that a directory service has to be asked for is looked up on another thread, and comes
/// later.
final class Reports {
    private let context: SpoolContext
    private let schedule: Schedule
    private(set) var complaints = Complaints()
    let owners: Owners

    init(_ context: SpoolContext, _ schedule: Schedule, _ owners: Owners) {
        self.context = context
        self.schedule = schedule
        self.owners = owners
    }

    // MARK: Problems

    /// A problem with a path was solved.
    func resolve(_ path: FileName) { complaints.resolve(path) }

    /// A path that was never to be opened may be opened now.
    func readmit(_ path: FileName) { complaints.readmit(path) }

    /// A directory is gone, with all names in it.
    func directoryGone(_ path: FileName) { complaints.directoryGone(path) }

    /// A call has failed, and reading goes on.
    func failed() { complaints.failed() }

    /// Notes that a file holds zeros. True if that is new and must be logged.
    func foundZeros(in path: FileName) -> Bool { complaints.foundZeros(in: path) }

    /// Notes that the log has reported a rewritten file that is sent again.
    func repeatReported() { complaints.repeatReported(schedule.now) }

    /// The directory of the spool is gone, which the log says already.
    func spoolIsMissing() {
        let complaint = SpoolComplaint(
            path: context.options.directory, owner: 0, ownerName: shownName(of: 0),
            advice: "the spool directory is missing: create it")
        _ = complaints.add(complaint, at: FileName(""), of: 0)
    }

    /// Counts and logs a file that is never opened, once for as long as it is remembered.
    func refuse(_ reason: SpoolRefusal, _ path: FileName, _ owner: UInt32? = nil) {
        guard !complaints.isRefused(path) else { return }
        let owner = owner ?? (try? FileSystem.status(context.root.raw, path))?.owner
        guard complaints.refuse(reason, at: path, of: owner) else { return }
        context.log.warning("file refused", ["path": context.options.shown(path), "reason": reason.rawValue])
    }

    /// Notes a file that is not read because of its name. Hidden and unfinished files are not reported,
    /// because their names say so on purpose.
    func passOver(_ directory: SpoolDirectory, _ name: FileName) {
        guard context.options.place == nil, !name.isHidden, !name.isUnfinished else { return }
        complaints.passOver(directory.path(of: name))
    }

    /// Forgets the reports about a name that is gone.
    func forgetName(_ name: FileName, in directory: SpoolDirectory) {
        complaints.nameGone(directory.path(of: name))
    }

    /// Reports a problem with a path once, until it is resolved.
    func complain(_ path: FileName, _ owner: UInt32?, _ advice: String) {
        guard complaints[path] == nil else { return }
        // The status of a mounted file system is not asked for; take the owner of the directory above it.
        let owner =
            owner ?? (try? FileSystem.status(context.root.raw, path).owner)
            ?? (try? FileSystem.status(context.root.raw, path.parent).owner) ?? 0
        let name = shownName(of: owner)
        let complaint = SpoolComplaint(
            path: context.options.shown(path), owner: owner, ownerName: name, advice: advice)
        guard complaints.add(complaint, at: path, of: owner) else { return }
        context.log.warning(
            "cannot access", ["path": context.options.shown(path), "owner": name, "hint": advice])
    }

    /// Counts and logs an error after which reading continues.
    func note(_ error: SystemError, _ text: StaticString, _ path: FileName) {
        complaints.failed()
        context.log.warning(text, ["path": path.text, "error": error.description])
    }

    /// Resolves the complaints and retries of a path that was reached or is gone. The path is only computed
    /// if there are any.
    func reached(_ path: @autoclosure () -> FileName) {
        guard !complaints.isQuiet || schedule.hasFailures else { return }
        let path = path()
        complaints.reached(path)
        schedule.reached(path)
    }

    /// Advice for a file that is read in place and that the agent may not read.
    func advice(for status: FileStatus?) -> String {
        guard let status, status.mode & 0o040 == 0 else {
            return Reports.advice(group: status?.groupName ?? "adm")
        }
        return "let its writer make it 0640 (it is \(status.shownMode)), or setfacl -m u:spoolship:r"
    }

    /// Advice to let the agent read a file that a group may read. Groups whose members can read everything or
    /// become root are not recommended; an ACL is.
    static func advice(group: String) -> String {
        let powerful: Set = [
            "root", "shadow", "disk", "docker", "sudo", "wheel", "kmem", "lxd", "libvirt",
        ]
        guard powerful.contains(group) else {
            return "usermod -aG \(group) spoolship, or setfacl -m u:spoolship:r, and restart it"
        }
        return
            "setfacl -m u:spoolship:r, and setfacl -d -m u:spoolship:r for its directory;"
            + " not by its group, \(group)"
    }

    /// Advice for a file that cannot be renamed or removed.
    static func notRemoved(_ error: SystemError) -> String {
        let advice =
            error.number == EPERM
            ? "it or its directory is immutable or append-only (lsattr; chattr -ai),"
                + " or the directory is sticky"
            : "let its group write the directory"
        return "the agent may not rename and remove it: \(advice)"
    }

    /// Advice if all random names for a claim were taken, which must be deliberate.
    static let nameTaken =
        "the agent cannot rename it: others have taken the names that it drew;"
        + " remove what is named .spoolship.* beside it"

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
        if name == "default" || context.options.appsElsewhere.contains(name) { return true }
        guard let directory = try? FileSystem.status(context.root.raw, FileName(name)) else { return false }
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
        schedule.plan(after: Reports.slowLookup, .reportSlowName(owner))
        let loop = context.loop
        let own = LoopBound(self, to: loop)
        let isAsked = Mount.ask(on: "names", "") { [find = owners.find] in
            let name = find(owner)
            loop.post { own.assumeOnLoop { $0.found(name, of: owner) } }
        }
        if !isAsked {
            found(owners.find(owner), of: owner)
        }
        return owners[owner]
    }

    /// The name of a user was found: files that waited for it can be read.
    private func found(_ name: String, of owner: UInt32) {
        owners.found(name, of: owner)
        complaints.resolve(Reports.nameless(owner))
        complaints.ownerNamed()
        schedule.wake()
    }

    /// Reports that the lookup of a user's name is slow, if it is still unknown.
    func tellSlow(_ owner: UInt32) {
        guard owners[owner] == nil else { return }
        complain(
            Reports.nameless(owner), owner,
            "the name of user \(owner) cannot be found out: the directory service (nsswitch.conf)"
                + " does not answer; the user's files in incoming/ wait")
    }

    /// The path under which it is reported that a user's name is unknown.
    private static func nameless(_ owner: UInt32) -> FileName { FileName("incoming/*, uid \(owner)") }

    // MARK: Figures

    /// Some of the complaints; a list that has not changed is left as it was published last.
    func show(in figures: inout SpoolFigures) {
        figures.refused = complaints.refused
        figures.errors = complaints.errors
        if let (shown, count) = complaints.takeUnresolved(atMost: 16) {
            figures.complaints = shown
            for index in shown.indices {
                figures.complaints[index].ownerName = shownName(of: shown[index].owner)
            }
            figures.inaccessible = count
        }
        if let (shown, count) = complaints.takeRefusals(atMost: 8) {
            figures.refusedNames = shown.map { "\(context.options.shown($0.path)) (\($0.reason.rawValue))" }
            figures.refusedFiles = count
        }
        if let (shown, count) = complaints.takePassedOver(atMost: 8) {
            figures.passedOverNames = shown.map(\.text)
            figures.passedOver = count
        }
    }
}
