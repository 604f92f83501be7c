internal import Synchronization

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

extension LoopActor {
    /// Waits for work that may never end.
    ///
    /// - Returns: false if the work has not ended in time; it continues by itself.
    public nonisolated func wait(
        atMost limit: Duration, for work: @escaping @Sendable () async -> Void
    ) async -> Bool {
        let loop = loop
        return await withCheckedContinuation { continuation in
            let waiter = OneWaiter(continuation)
            loop.post {
                let timer = loop.after(limit) { waiter.resume(false) }
                Task(executorPreference: loop) {
                    await work()
                    if waiter.resume(true) {
                        loop.post { loop.cancel(timer) }
                    }
                }
            }
        }
    }
}

/// A continuation that two may want to resume.
private final class OneWaiter: Sendable {
    private let continuation: Mutex<CheckedContinuation<Bool, Never>?>

    init(_ continuation: CheckedContinuation<Bool, Never>) { self.continuation = Mutex(continuation) }

    /// Resumes the waiter, unless somebody has; true if this call has.
    @discardableResult
    func resume(_ result: Bool) -> Bool {
        guard let waiter = continuation.withLock({ $0.take() }) else { return false }
        waiter.resume(returning: result)
        return true
    }
}
