internal import EventLoops
internal import Glibc
internal import Model

/// Takes files away that were read: renames them to names that only the agent uses (claims), and removes or
/// archives them. Used on the reader's loop only.
///
/// The name of a claim proves nothing, because any user can choose such a name. Files that an earlier reader
/// has claimed are recognised by their identities in the queue's done records and checkpoints; every other
/// file, under any name, is checked, bounded and claimed like a new one.
final class Removal {
    /// Number of random names tried for a claim.
    private static let attempts = 8

    /// The archive for files that were read; nil if they are removed or stay.
    private let archive: Archive?
    private var random: any RandomNumberGenerator
    /// Files that were removed or archived since the start.
    private(set) var count = 0

    init(_ archive: Archive?, _ random: any RandomNumberGenerator) {
        self.archive = archive
        self.random = random
    }

    /// Whether a directory is the archive. It is recognised by its identity, whatever its name is: its files
    /// were read already.
    func isArchive(_ status: FileStatus) -> Bool {
        archive.map { (status.device, status.inode) == $0.identity } ?? false
    }

    /// Renames a file to a random name of a claim that is free.
    ///
    /// - Returns: the name; and whether the file with this name is the expected one. Renames by others are
    ///   noticed late, so the old name may have belonged to another file, which was not read.
    func claim(_ name: FileName, _ status: FileStatus, in directory: Int32) throws(SystemError) -> Claim {
        let claim = try rename(name, in: directory)
        do throws(SystemError) {
            let claimed = try FileSystem.status(directory, claim)
            let isExpected = claimed.inode == status.inode && claimed.device == status.device
            return Claim(name: claim, isExpected: isExpected, error: nil)
        } catch {
            return Claim(name: claim, isExpected: false, error: error)
        }
    }

    /// A file under the name of a claim.
    struct Claim {
        var name: FileName
        /// Whether the claimed file is the expected one. If not, its name must be restored.
        var isExpected: Bool
        /// The error because of which the file's identity is unknown.
        var error: SystemError?
    }

    private func rename(_ name: FileName, in directory: Int32) throws(SystemError) -> FileName {
        for _ in 0..<Removal.attempts {
            // Users can see claims, so the numbers must be unpredictable: a user who knew the next ones could
            // block a file from being claimed with directories of these names.
            let claim = name.claim(random.next())
            do {
                try FileSystem.rename(directory, name, to: claim)
                return claim
            } catch {
                guard error.number == EEXIST else { throw error }
            }
        }
        throw SystemError("renameat2", number: EEXIST)
    }

    /// Removes a file that was read, or moves it into the archive.
    ///
    /// - Parameter isTrusted: whether the clock may decide on the age of archived files.
    func putAway(
        _ name: FileName, in directory: Int32, of app: String, at time: Timestamp, isTrusted: () -> Bool
    ) throws(SystemError) {
        if let archive {
            try archive.add(name, from: directory, of: app, at: time, isTrusted: isTrusted, using: &random)
        } else {
            try FileSystem.unlink(directory, name)
        }
        count += 1
    }

    /// Makes the archive's new names durable. Must come before the sync of the directory that the files came
    /// from: otherwise a power cut could leave a file in neither directory.
    func sync() throws(SystemError) { try archive?.sync() }
}
