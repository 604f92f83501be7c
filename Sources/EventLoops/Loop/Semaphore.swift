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
