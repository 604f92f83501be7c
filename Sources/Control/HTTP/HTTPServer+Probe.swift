internal import EventLoops
internal import Glibc

/// A server that can be asked whether it answers: the agent is not ready while one of its ports is dead.
package protocol SelfAnswering: Sendable {
    var label: String { get }
    var name: String { get }
    /// Asks through the kernel, as a client would.
    func isAnswering() async -> Bool
    /// Listens again; connections that are there stay.
    func openAgain() async throws(ControlError)
}

// The server asks itself, as a client would: through the kernel, by the way that others come.
extension HTTPServer {
    /// How long a server may take to answer itself. Its loop is blocked by nothing for longer than some milliseconds.
    private static let selfAnswer = Duration.seconds(2)

    /// Whether the server answers in time; `connect` does not wait, and gives nil where there is no connection.
    func answers(_ connect: () -> Descriptor?) async -> Bool {
        guard let socket = connect() else { return false }
        let raw = socket.raw
        let isAnswered = await withCheckedContinuation { continuation in
            var waiting: CheckedContinuation<Bool, Never>? = continuation
            var timer: EventLoop.TimerID?
            func end(_ isAnswered: Bool) {
                guard let continuation = waiting else { return }
                waiting = nil
                loop.forget(raw)
                if let timer { loop.cancel(timer) }
                continuation.resume(returning: isAnswered)
            }
            timer = loop.after(HTTPServer.selfAnswer) {
                timer = nil
                end(false)
            }
            // What cannot be watched has no answer.
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
                if isWatched == nil { end(false) }
            }
            if isWatched == nil { end(false) }
        }
        _ = consume socket
        return isAnswered
    }

    /// Whether this server's own listening socket leads to an answer.
    func isAnsweringItself() async -> Bool {
        guard let listener else { return false }
        return await answers { InternetSocket.connect(toListener: listener) }
    }
}
