/// How a client writes events.
public struct ClientSettings: Sendable, Equatable {
    /// How the client writes events.
    public enum Style: Sendable, Equatable {
        /// Appends lines to a file of this process. This is the least work, and the agent reads the file as
        /// it grows.
        case append
        /// Writes a drop file with all gathered events, complete at once: under a hidden name, then renamed.
        /// For the drop box, and for directories that other programs watch.
        case dropFiles
    }

    /// What an event survives after it is written.
    public enum Durability: Sendable, Equatable {
        /// The end of this process. Nothing is synced.
        case processEnd
        /// A power cut: each write is synced before `flush` returns.
        case powerLoss
    }

    /// The app's directory in the spool: `/var/spool/spoolship/NAME`, or `/var/spool/spoolship/incoming`.
    public var directory: String
    /// Beginning of the files' names: letters, digits, `-` and `_`, at most 64. Programs that share a
    /// directory need different names; processes of one program may share one. Default `app`.
    public var name = "app"
    /// Default `append`.
    public var style = Style.append
    /// Default `powerLoss`. The writing thread syncs, never the caller.
    public var durability = Durability.powerLoss
    /// Most bytes of events that wait to be written; default 1 MiB, at least 1024. Beyond it `trackEvent`
    /// waits, then fails.
    public var bufferSize = 1 << 20
    /// How long `trackEvent`, `push` and `startSession` may wait for room in the buffer, and for the state of
    /// an agent that did not accept everything when it was last read. Default 50 ms; 0 fails at once.
    ///
    /// They wait for nothing else: files are the writing thread's. On a machine with more work than
    /// processors the scheduler adds to this; 40 ms more were measured.
    public var longestWait: Duration = .milliseconds(50)
    /// Size in bytes at which a file of the `append` style is finished, and the next one begins; default 16
    /// MiB, at least 1024.
    public var fileSize = 16 << 20
    /// Path of the agent's control socket, by which `dispatch` learns what destinations acknowledged; default
    /// the package's. Root, the agent's user and the members of its group may use it. Without it, or with
    /// nil, `dispatch` ends when the agent has queued the events.
    public var controlSocket: String? = "/run/spoolship/control.sock"

    /// The defaults, for a directory.
    public init(directory: String) { self.directory = directory }
}
