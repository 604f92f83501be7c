/// What is read of files that exist when the agent sees their pattern for the first time.
public enum ReadStart: Sendable, Hashable {
    /// All of it.
    case beginning
    /// Only what is written from then on.
    case now
    /// All of the files that were changed within this time, and of others only what is written from
    /// then on.
    case age(Duration)
}
