/// How a client writes.
public struct ClientSettings: Sendable, Equatable {
    /// How the client writes events.
    public enum Style: Sendable, Equatable {
        /// Appends lines to a file of this process: the least work, and the agent reads on as it grows.
        case append
        /// A file for what has gathered, complete at once: written under a hidden name, then renamed.
        case dropFiles
    }

    /// What an event survives once it is written.
    public enum Durability: Sendable, Equatable {
        /// The end of this process. Nothing is synced.
        case processEnd
        /// A power cut: each write is synced before `flush` returns.
        case powerLoss
    }

    /// The app's directory in the spool: `/var/spool/spoolship/NAME`, or `/var/spool/spoolship/incoming`.
    public var directory: String
    /// The beginning of the files' names; default the process's. Letters, digits, `-` and `_`.
    public var name = "app"
    /// Default `append`.
    public var style = Style.append
    /// Default `powerLoss`. The writing thread syncs, never the caller.
    public var durability = Durability.powerLoss
    /// How much may wait to be written, in bytes; default 1 MiB. Beyond it `trackEvent` waits, then fails.
    public var bufferSize = 1 << 20
    /// How long `trackEvent` and `startSession` may wait, for room in the buffer and for news of an agent that accepted
    /// nothing when it was last looked at; default 50 ms, 0 fails at once.
    ///
    /// They wait for nothing else: files are the writing thread's. How soon the system lets a thread run again is not in
    /// our hands: on a machine with more to do than cores, calls were seen to take 40 ms more.
    public var longestWait: Duration = .milliseconds(50)
    /// When a file of the `append` style is full and the next one begins, in bytes; default 16 MiB.
    public var fileSize = 16 << 20

    /// The defaults, for a directory.
    public init(directory: String) { self.directory = directory }
}
