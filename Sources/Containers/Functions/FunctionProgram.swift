internal import CLinux
internal import EventLoops
internal import Glibc

/// Checks the program of a function. It runs with the agent's rights, so other users must not be able to
/// change it.
public enum FunctionProgram {
    /// Why a program must not be run; nil if it may.
    ///
    /// The file and each directory on its path must belong to root or the agent's user, and be writable by no
    /// other user. A symbolic link is followed if the same holds for it.
    ///
    /// - Parameter user: the agent's user; by default that of this process.
    public static func problem(_ path: String, user: UInt32? = nil) -> String? {
        let user = user ?? geteuid()
        do throws(TrustedPath.Refusal) {
            let program = try TrustedPath.open(path, flags: CLINUX_O_PATH, user: user, followsLinks: true)
            guard let status = try? FileStatus(of: program.raw), status.isRegular else {
                return "\(path) is not a program"
            }
            guard status.belongs(toRootOr: user) else {
                return "\(path) belongs to another user; it must belong to root or the agent's user"
            }
            guard !status.isWritableByOthers else {
                return "\(path) can be written by others (mode \(status.shownMode)); run chmod go-w \(path)"
            }
            return nil
        } catch {
            return error.number == nil
                ? "\(path) can be replaced by others: \(error.message)" : error.message
        }
    }
}
