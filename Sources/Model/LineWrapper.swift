/// What a container's runtime wraps around each line of a program: the line's time, its stream, and whether
/// it continues. Both runtimes split a long line into several.
public enum LineWrapper: String, Sendable, CaseIterable {
    /// Docker's json-file, `{"log": …, "stream": …, "time": …}`: in the last part of a line `log` ends
    /// with a line feed.
    case docker
    /// The format of containerd and CRI-O: time, stream, `F` or `P`, text; `F` in the last part of a
    /// line.
    case cri

    /// Most lines of the other stream between two pieces or lines of a record. Beyond it the record counts as
    /// ended: a program that was killed never ends its line, and without a bound each piece would search the
    /// whole block. What cuts blocks and what joins pieces must agree, or a cut would split a record.
    public static let mostLinesBetweenPieces = 64
}
