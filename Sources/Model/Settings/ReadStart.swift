/// What is read of files that exist when the agent sees their pattern for the first time.
public enum ReadStart: Sendable, Hashable {
    /// The files from their beginning.
    case beginning
    /// Only lines written from then on.
    case now
    /// Files changed within this time from their beginning; of other files, only lines written from then on.
    case age(Duration)
}
