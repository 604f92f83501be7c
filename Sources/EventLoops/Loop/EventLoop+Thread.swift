internal import CLinux
internal import Glibc

extension EventLoop {
    /// Gives the loop its own thread, which ends at `stop`.
    ///
    /// Every signal is blocked on it: signals are read from a descriptor (`SignalWatcher`), never handled in passing.
    /// - Throws: `SystemError` when the process may have no more threads.
    public func start() throws(SystemError) {
        var thread = pthread_t()
        let box = Unmanaged.passRetained(self)
        let result = pthread_create(
            &thread, nil,
            { argument in
                // The argument is the box that was retained for this thread below.
                guard let argument else { return nil }
                let loop = Unmanaged<EventLoop>.fromOpaque(argument).takeRetainedValue()
                var all = sigset_t()
                sigfillset(&all)
                pthread_sigmask(SIG_BLOCK, &all, nil)
                clinux_name_thread(loop.name)
                loop.run()
                return nil
            }, box.toOpaque())
        guard result == 0 else {
            box.release()
            throw SystemError("pthread_create", number: result)
        }
        pthread_detach(thread)
    }

    /// Runs an asynchronous program on the calling thread and returns its result: what `main` does.
    ///
    /// The calling thread becomes a loop of that name; the body runs on it, as do the actors that are given the loop.
    /// - Parameter failure: what is thrown when the process has no descriptors left.
    public static func runProgram<Value: Sendable, Failure: Error>(
        name: String, failure: (SystemError) -> Failure,
        _ body: @escaping @Sendable (EventLoop) async throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let loop: EventLoop
        do throws(SystemError) { loop = try EventLoop(name: name) } catch { throw failure(error) }
        nonisolated(unsafe) var result: Result<Value, Failure>?
        Task(executorPreference: loop) {
            do throws(Failure) { result = .success(try await body(loop)) } catch { result = .failure(error) }
            loop.stop()
        }
        loop.run()
        guard let result else { preconditionFailure("the loop stopped before its program ended") }
        return try result.get()
    }
}
