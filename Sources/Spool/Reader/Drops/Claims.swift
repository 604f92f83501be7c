internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Claims files and takes them away: drop files are claimed before they are read, append files before they
/// are removed (`Removal`).
final class Claims {
    private let context: SpoolContext
    private let schedule: Schedule
    private let reports: Reports
    private let outlet: Outlet
    private let removal: Removal

    init(
        _ context: SpoolContext, _ schedule: Schedule, _ reports: Reports, _ outlet: Outlet,
        _ removal: Removal
    ) {
        self.context = context
        self.schedule = schedule
        self.reports = reports
        self.outlet = outlet
        self.removal = removal
    }

    // MARK: Claims

    /// Claims a file: renames it to a hidden name of the agent.
    ///
    /// Renames by others are noticed late, in polled directories much later. So the name may belong to
    /// another file by now, which was not read and must not be removed. Such a file gets its name back and is
    /// read as a new one.
    ///
    /// - Parameter status: status of the file, which must be open, so that no other file can have its inode
    ///   number.
    /// - Returns: the name of the claim; nil if another file had the name.
    func claim(
        _ name: FileName, _ status: FileStatus, in directory: SpoolDirectory, _ raw: Int32
    ) throws(SystemError) -> FileName? {
        let claim = try removal.claim(name, status, in: raw)
        guard !claim.isExpected else { return claim.name }
        restoreName(claim.name, name, in: directory, raw)
        if let error = claim.error { throw error }
        return nil
    }

    /// Gives a file that was claimed by mistake its name back. If the name is taken, the file is read under
    /// the claim.
    private func restoreName(
        _ claim: FileName, _ name: FileName, in directory: SpoolDirectory, _ raw: Int32
    ) {
        do {
            try FileSystem.rename(raw, claim, to: name)
            schedule.plan(at: schedule.now, .lookComplete(directory: directory.path, name: name))
        } catch {
            if error.number != EEXIST {
                reports.note(error, "cannot restore the name of a file", directory.path(of: name))
            }
            schedule.plan(at: schedule.now, .lookComplete(directory: directory.path, name: claim))
        }
    }

    // MARK: Removal

    /// Removes a file that was read, or moves it into the archive.
    func putAway(_ name: FileName, _ raw: Int32, of app: String) throws(SystemError) {
        try removal.putAway(
            name, in: raw, of: app, at: context.time.wallTime, isTrusted: { outlet.sink.isClockTrusted() })
    }
}
