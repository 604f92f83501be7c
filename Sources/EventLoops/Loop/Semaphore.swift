internal import Glibc

/// Blocks a thread until another one signals (sem_overview(7)).
final class Semaphore: @unchecked Sendable {
    // Safe: sem_post and sem_wait may be called from any thread, and the memory ends with the last holder.
    private let memory = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() {
        let result = sem_init(memory, 0, 0)
        precondition(result == 0, "sem_init: \(SystemError.message(errno))")
    }

    deinit {
        sem_destroy(memory)
        memory.deallocate()
    }

    func signal() { sem_post(memory) }

    func wait() {
        while sem_wait(memory) != 0, errno == EINTR {}
    }
}

extension EventLoop {
    /// Runs `body` on the loop's thread, and blocks the calling thread until it is done; at once on the loop's
    /// own thread. Only for a thread that the loop never waits for: otherwise both would wait for ever.
    public func runAndWait<Result>(_ body: @escaping () -> Result) -> Result {
        guard !isCurrent else { return body() }
        nonisolated(unsafe) let body = body
        nonisolated(unsafe) var result: Result?
        let end = Semaphore()
        post {
            result = body()
            end.signal()
        }
        end.wait()
        guard let result else {
            preconditionFailure("the loop \(name) signalled the end of the work without a result")
        }
        return result
    }
}
