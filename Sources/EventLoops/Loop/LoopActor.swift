/// An actor that lives on a loop, which is its executor.
public protocol LoopActor: Actor {
    /// The loop that it lives on.
    nonisolated var loop: EventLoop { get }
}

extension LoopActor {
    /// The loop.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Calls back after a time, unless the actor is gone by then.
    @discardableResult
    public func after(
        _ wait: Duration, _ body: @escaping @Sendable (isolated Self) -> Void
    ) -> EventLoop.TimerID {
        loop.after(wait) { [weak self] in self?.assumeIsolated(body) }
    }

    /// Waits for a continuation that `begin` takes. `cancel` runs on the loop when the task is cancelled; never before `begin`, which
    /// does not leave the loop.
    public func cancellable<Value: Sendable>(
        _ begin: (CheckedContinuation<Value, Never>) -> Void,
        onCancel cancel: @escaping @Sendable (isolated Self) -> Void
    ) async -> Value {
        let loop = loop
        return await withTaskCancellationHandler {
            await withCheckedContinuation(isolation: self) { begin($0) }
        } onCancel: {
            loop.post { self.assumeIsolated(cancel) }
        }
    }
}
