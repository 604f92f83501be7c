import EventLoops
import Foundation
import Glibc
import Synchronization
import TestKit
import Testing

@testable import Control

/// A loop with a thread for the time of a test.
func withLoop<Value>(
    _ name: String = "control", _ body: (EventLoop) async throws -> Value
) async throws -> Value {
    let loop = try EventLoop(name: name)
    try loop.start()
    defer { loop.stop() }
    return try await body(loop)
}

/// A control server with these routes on a socket in a directory of its own.
func withControlServer<Value>(
    _ routes: ControlRoutes, _ body: (ControlClient, ControlServer) async throws -> Value
) async throws -> Value {
    let directory = try TemporaryDirectory()
    return try await withLoop { loop in
        let socket = "\(directory.path)/control.sock"
        let server = try ControlServer(on: loop, socket: socket, routes: routes)
        try await server.start()
        do {
            let value = try await body(ControlClient(socket: socket), server)
            await server.stop()
            return value
        } catch {
            await server.stop()
            throw error
        }
    }
}

/// Does what waits for others on a thread of its own: of the tasks' threads there are as many as cores.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}

/// Lets time pass without the loops' help. Only where time itself is tested: what must not happen meanwhile, and limits.
func pause(_ time: Duration) {
    _ = poll(nil, 0, Int32(time.nanosecondsClamped / 1_000_000))
}

/// A connection to a Unix socket.
func connected(to path: String) throws -> Descriptor {
    guard let descriptor = UnixSocket.connect(to: path) else { throw SystemError("connect") }
    return descriptor
}

/// Returns when the task is cancelled.
func waitForCancellation() async {
    let waiting = Mutex<(continuation: CheckedContinuation<Void, Never>?, isCancelled: Bool)>((nil, false))
    await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
            let isCancelled = waiting.withLock { state in
                state.continuation = continuation
                return state.isCancelled
            }
            if isCancelled { continuation.resume() }
        }
    } onCancel: {
        let continuation = waiting.withLock { state in
            state.isCancelled = true
            return state.continuation
        }
        continuation?.resume()
    }
}
