internal import EventLoops
internal import Glibc

/// A server that can check whether it answers. The agent is not ready while one of its ports is dead, and
/// opens a dead port again.
package protocol SelfAnswering: Sendable {
    /// Value of the metric label `server`.
    var label: String { get }
    /// Name for messages.
    var name: String { get }
    /// Asks the server through the kernel, as a client would.
    func isAnswering() async -> Bool
    /// Listens again; open connections stay.
    func openAgain() async throws(ControlError)
}

/// Asks a server as a client would: through the kernel, by the way that others come.
struct SelfProbe {
    /// The server's loop.
    let loop: EventLoop

    /// Longest time for the server's answer to itself. Nothing blocks its loop for longer than some
    /// milliseconds.
    private static let longest = Duration.seconds(2)

    /// Whether the server answers in time.
    ///
    /// Runs on the loop, as its caller does.
    ///
    /// - Parameter connect: connects without waiting; nil if there is no connection.
    func isAnswered(_ connect: () -> Descriptor?) async -> Bool {
        guard let socket = connect() else { return false }
        let raw = socket.raw
        let isAnswered = await withCheckedContinuation { continuation in
            var waiting: CheckedContinuation<Bool, Never>? = continuation
            var timer: EventLoop.TimerID?
            /// Ends the check once; the timer and the socket may both call it.
            func end(_ isAnswered: Bool) {
                guard let continuation = waiting else { return }
                waiting = nil
                loop.forget(raw)
                if let timer {
                    loop.cancel(timer)
                }
                continuation.resume(returning: isAnswered)
            }
            timer = loop.after(SelfProbe.longest) {
                timer = nil
                end(false)
            }
            // A socket that cannot be watched counts as unanswered.
            let isWatched: ()? = try? loop.watch(raw, for: .writable) { [loop] _ in
                let question = "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                guard send(raw, question, question.utf8.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT)) > 0 else {
                    return end(false)
                }
                let isWatched: ()? = try? loop.watch(raw, for: .readable) { _ in
                    var answer = [UInt8](repeating: 0, count: 9)
                    let count = recv(raw, &answer, answer.count, Int32(MSG_DONTWAIT))
                    end(count > 0 && "HTTP/1.1 ".utf8.starts(with: answer.prefix(count)))
                }
                if isWatched == nil {
                    end(false)
                }
            }
            if isWatched == nil {
                end(false)
            }
        }
        _ = consume socket
        return isAnswered
    }
}
