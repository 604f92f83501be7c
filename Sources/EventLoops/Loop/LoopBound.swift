/// A value that belongs to a loop but is held elsewhere: it can be used only on that loop's thread.
///
/// Unchecked, because the only ways to the value are `use` and `assumeOnLoop`: the first goes to the loop's thread, the second
/// traps anywhere else.
public struct LoopBound<Value>: @unchecked Sendable {
    private let value: Value
    private let loop: EventLoop

    /// Binds a value to the loop that its owner lives on; nobody but that loop uses it from here on.
    public init(_ value: Value, to loop: EventLoop) {
        self.value = value
        self.loop = loop
    }

    /// Runs on the loop what needs the value, after what it does now, and returns when that is done.
    public func use<Result: Sendable>(_ body: @escaping @Sendable (Value) -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            loop.post { continuation.resume(returning: body(value)) }
        }
    }

    /// The value, on the loop's thread; traps elsewhere.
    public func assumeOnLoop<Result>(_ body: (Value) throws -> Result) rethrows -> Result {
        loop.checkIsolated()
        return try body(value)
    }
}
