/// A value that belongs to a loop but is held elsewhere. It can be used only on the loop's thread.
///
/// `@unchecked Sendable` is safe, because `use` hops to the loop's thread and `assumeOnLoop` traps on
/// any other.
public struct LoopBound<Value>: @unchecked Sendable {
    private let value: Value
    private let loop: EventLoop

    /// Binds a value to a loop. From now on only that loop may use it.
    public init(_ value: Value, to loop: EventLoop) {
        self.value = value
        self.loop = loop
    }

    /// Runs `body` on the loop's thread, after its present work, and returns its result.
    public func use<Result: Sendable>(_ body: @escaping @Sendable (Value) -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            loop.post { continuation.resume(returning: body(value)) }
        }
    }

    /// Runs `body` on the loop's thread, and blocks the calling thread until it is done. Only for a thread
    /// that the loop itself never waits for: otherwise both would wait for ever.
    public func wait<Result>(_ body: @escaping (Value) -> Result) -> Result {
        loop.runAndWait { body(value) }
    }

    /// The value, on the loop's thread; traps elsewhere.
    public func assumeOnLoop<Result>(_ body: (Value) throws -> Result) rethrows -> Result {
        loop.checkIsolated()
        return try body(value)
    }
}
