internal import EventLoops
internal import Glibc

/// How a file becomes ours: it is renamed to a name that only the agent uses, and looked at again under that name. Drop files
/// are claimed before they are read, append files before they are removed.
extension SpoolReader {
    /// Names drawn for a claim before giving up.
    private static let claimAttempts = 8

    /// Renames a file to a name of ours.
    ///
    /// Renames are noticed later than they happen, where directories are polled much later: the name may have been given to
    /// another file by now, which nobody has read. That file gets its name back, and is looked at.
    ///
    /// - Parameter status: the file's, which is open: its inode number is nobody else's.
    /// - Returns: the name of ours; nil if the name was another file's.
    func claim(
        _ name: FileName, _ status: FileStatus, in directory: SpoolDirectory, _ raw: Int32
    ) throws(SystemError) -> FileName? {
        let claim = try rename(name, in: raw)
        var isIts = false
        defer { if !isIts { restoreName(claim, name, in: directory, raw) } }
        let claimed = try FileSystem.status(raw, claim)
        isIts = claimed.inode == status.inode && claimed.device == status.device
        return isIts ? claim : nil
    }

    private func rename(_ name: FileName, in raw: Int32) throws(SystemError) -> FileName {
        for _ in 0..<SpoolReader.claimAttempts {
            // Drawn once for a reader, then counted.
            lastClaim &+= 1
            let claim = name.claim(lastClaim)
            do {
                try FileSystem.rename(raw, name, to: claim)
                return claim
            } catch {
                guard error.number == EEXIST else { throw error }
            }
        }
        throw SystemError("renameat2", number: EEXIST)
    }

    /// A file that has a name of ours by mistake gets its own back. If that is taken, it is read under ours.
    private func restoreName(_ claim: FileName, _ name: FileName, in directory: SpoolDirectory, _ raw: Int32) {
        do {
            try FileSystem.rename(raw, claim, to: name)
            look(at: name, in: directory, isComplete: true)
        } catch {
            if error.number != EEXIST { note(error, "cannot restore the name of a file", directory.path(of: name)) }
            look(at: claim, in: directory, isComplete: true)
        }
    }
}
