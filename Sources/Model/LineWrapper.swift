/// What a container's runtime wraps around each line of a program: the line's time, its stream, and whether
/// it continues. Both runtimes split a long line into several.
public enum LineWrapper: String, Sendable, CaseIterable {
    /// Docker's json-file, `{"log": …, "stream": …, "time": …}`: in the last part of a line `log` ends
    /// with a line feed.
    case docker
    /// The format of containerd and CRI-O: time, stream, `F` or `P`, text; `F` in the last part of a
    /// line.
    case cri
}
