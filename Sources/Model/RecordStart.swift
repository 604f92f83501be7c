/// How a record of several lines begins. Readers of files use it without knowing any format.
public struct RecordStart: Sendable, Equatable {
    /// Most bytes of one record; the next line begins another one.
    public static let mostBytes = 64 << 10
    /// Most lines of one record.
    public static let mostLines = 500

    private let name: String
    /// Whether a record begins with a line, given the line and the one before it.
    private let test: @Sendable (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Bool

    /// - Parameters:
    ///   - name: equal for starts with the same test.
    ///   - test: whether a record begins with a line, given the line and the one before it; both
    ///     without line feeds.
    public init(
        name: String, _ test: @escaping @Sendable (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Bool
    ) {
        self.name = name
        self.test = test
    }

    /// Whether a record begins with this line.
    public func begins(_ line: UnsafeRawBufferPointer, after previous: UnsafeRawBufferPointer) -> Bool {
        test(line, previous)
    }

    /// Equal if the names are: closures cannot be compared.
    public static func == (left: RecordStart, right: RecordStart) -> Bool { left.name == right.name }
}
