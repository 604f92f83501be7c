internal import CCrashDisk
internal import Glibc

/// Puts a file in the place of another at one stroke, as an app does that writes the same name again and again, and tells
/// what became of the one before.
public enum FileExchange {
    /// What was in the place.
    public enum Outcome: Sendable {
        /// Nothing: the file has the place.
        case free
        /// Another file, which now has the name that this one had.
        case returned
    }

    /// - Returns: nil if the system refused, or the place changed too often.
    public static func put(_ path: String, at place: String) -> Outcome? {
        for _ in 0..<1000 {
            switch csyscalls_exchange(path, place) {
            case 0: return .returned
            case ENOENT: break
            default: return nil
            }
            if crashspool_rename(path, place) == 0 { return .free }
            guard errno == EEXIST else { return nil }
        }
        return nil
    }
}
