internal import CLinux
internal import EventLoops
internal import Glibc

/// The program of a function: it runs with the agent's rights, so nobody else may be able to change it.
public enum FunctionProgram {
    /// Why a program is not to be run; nil when it may be.
    ///
    /// It and each directory on the way to it must belong to root or the agent's user and be writable by nobody else; links are
    /// followed where that holds for them too.
    ///
    /// - Parameter user: the agent's user; default this process's.
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
