import EventLoops
import Foundation
import TestKit
import Testing

@Suite("Servers in Python, as child processes")
struct PythonServerTests {
    /// The kernel's own way (PR_SET_PDEATHSIG) asks for the thread: the threads that tests run on end when they are idle.
    @Test("a server outlives the thread that started it")
    func outlivesThread() async throws {
        let bench = try Bench()
        let file = "\(bench.directory.path)/port"
        let loop = try EventLoop(name: "starter")
        try loop.start()
        let server = try await Task(executorPreference: loop) {
            try await PythonServer("s3_server.py", [file], portFile: file)
        }.value
        loop.stop()
        // Time itself: that it does not end has no other sign.
        try await Task.sleep(for: .milliseconds(500))
        #expect(server.isRunning)
    }
}
