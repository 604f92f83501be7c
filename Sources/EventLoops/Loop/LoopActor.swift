/// An actor whose executor is a loop.
public protocol LoopActor: Actor {
    /// The loop that executes the actor.
    nonisolated var loop: EventLoop { get }
}

extension LoopActor {
    /// The loop.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Calls `body` on the actor after a time, unless the actor is gone by then.
    @discardableResult
    public func after(
        _ wait: Duration, _ body: @escaping @Sendable (isolated Self) -> Void
    ) -> EventLoop.TimerID {
        loop.after(wait) { [weak self] in self?.assumeIsolated(body) }
    }

    /// Suspends the task with a continuation that `begin` receives and stores.
    ///
    /// `cancel` runs on the loop if the task is cancelled, and never before `begin`, because the call
    /// does not leave the loop until then. `cancel` must resume the continuation, or the task would
    /// hang.
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
