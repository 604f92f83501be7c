import Foundation
import Frames
import Model
import Testing

@testable import Outputs

/// A client of the tests' own, with nothing of the agent's in it: makes streams, and reads what they hold.
final class NATSReader {
    private let descriptor: Int32
    private var bytes: [UInt8] = []
    private var requests = 0

    /// A message of a stream.
    struct Stored {
        var subject: String
        var headers: [String: String]
        var payload: [UInt8]

        /// The numbers of the sample's events in it.
        func numbers() throws -> [Int] {
            let packed = headers["Content-Encoding"].flatMap { Compression(name: $0) } ?? .none
            let lines =
                packed == .none
                ? payload : try FrameDecompressor().decompress(payload, packed, limit: 1 << 24)
            return try lines.split(separator: 0x0A).map { line in
                struct Event: Decodable { var n: Int }
                return try JSONDecoder().decode(Event.self, from: Data(line)).n
            }
        }
    }

    /// - Parameter user: a JSON text of members for `CONNECT`, with a comma before.
    init(_ server: NATSServer, user: String = "") throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var wait = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
        var address = NATSServer.loopback(server.port)
        let done = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        try #require(done)
        _ = try line()
        try say("CONNECT {\"verbose\":false,\"protocol\":1\(user)}\r\nSUB reader.* 1\r\n")
    }

    deinit { close(descriptor) }

    func makeStream(_ name: String = "EVENTS", _ subject: String = "events.web", _ more: String = "") throws {
        let answer = try ask(
            "STREAM.CREATE.\(name)",
            "{\"name\":\"\(name)\",\"subjects\":[\"\(subject)\"],\"storage\":\"file\"\(more)}")
        try #require(answer["error"] == nil, "\(answer)")
    }

    func purge(_ name: String = "EVENTS") throws { _ = try ask("STREAM.PURGE.\(name)", "") }

    func count(_ name: String = "EVENTS") throws -> Int {
        let answer = try ask("STREAM.INFO.\(name)", "")
        return try #require((answer["state"] as? [String: Any])?["messages"] as? Int, "\(answer)")
    }

    /// All messages, in the stream's order.
    func messages(_ name: String = "EVENTS") throws -> [Stored] {
        let last = try #require(
            (try ask("STREAM.INFO.\(name)", "")["state"] as? [String: Any])?["last_seq"] as? Int)
        return try (1..<(last + 1)).compactMap { sequence in
            let answer = try ask("STREAM.MSG.GET.\(name)", "{\"seq\":\(sequence)}")
            guard let message = answer["message"] as? [String: Any] else { return nil }
            func decoded(_ key: String) -> [UInt8] {
                (message[key] as? String).flatMap { Data(base64Encoded: $0) }.map { Array($0) } ?? []
            }
            var headers: [String: String] = [:]
            for line in String(decoding: decoded("hdrs"), as: UTF8.self).split(separator: "\r\n").dropFirst()
            {
                let parts = line.split(separator: ":", maxSplits: 1)
                headers[String(parts[0])] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
            }
            return Stored(
                subject: message["subject"] as? String ?? "", headers: headers, payload: decoded("data"))
        }
    }

    private func ask(_ what: String, _ body: String) throws -> [String: Any] {
        requests += 1
        try say("PUB $JS.API.\(what) reader.\(requests) \(body.utf8.count)\r\n\(body)\r\n")
        while true {
            let words = try line().split(separator: " ")
            if words.first == "PING" { try say("PONG\r\n") }
            if words.first == "-ERR" { throw ReaderError(text: words.joined(separator: " ")) }
            guard words.first == "MSG", let size = Int(words[words.count - 1]) else { continue }
            while bytes.count < size + 2 { try more() }
            let payload = Data(bytes[..<size])
            bytes.removeFirst(size + 2)
            guard words[1] == "reader.\(requests)" else { continue }
            return try #require(try JSONSerialization.jsonObject(with: payload) as? [String: Any])
        }
    }

    private func say(_ text: String) throws {
        let bytes = Array(text.utf8)
        guard send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw ReaderError(text: "the server is gone")
        }
    }

    private func line() throws -> String {
        while true {
            if let end = bytes.firstIndex(of: 0x0A) {
                let line = String(decoding: bytes[..<end].filter { $0 != 0x0D }, as: UTF8.self)
                bytes.removeFirst(end + 1)
                return line
            }
            try more()
        }
    }

    private func more() throws {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { throw ReaderError(text: "the server is gone") }
        bytes.append(contentsOf: buffer[..<count])
    }

    struct ReaderError: Error { var text: String }
}
