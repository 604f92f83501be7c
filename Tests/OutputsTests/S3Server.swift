import EventLoops
import Foundation
import Model
import TestKit
import Testing

@testable import Outputs

/// moto behind a gate that recomputes each signature with botocore, as a child of the tests; see Fixtures/s3_server.py.
final class S3Server: Sendable {
    let url: String
    private let server: PythonServer
    private let loop: EventLoop

    init(_ bench: Bench) async throws {
        let file = "\(bench.directory.path)/s3-port"
        server = try await PythonServer("s3_server.py", [file], portFile: file)
        url = "http://127.0.0.1:\(server.port)"
        loop = bench.loop
    }

    /// An object of the bucket.
    struct Object: Decodable {
        var body: String
        var headers: [String: String]
        var storage_class: String
        var encryption: String?

        var bytes: [UInt8] { Data(base64Encoded: body).map { Array($0) } ?? [] }
    }

    /// A request that the store has answered; status 0: it hung up instead.
    struct Request: Decodable {
        var method: String
        var path: String
        var status: Int
        var headers: [String: String]
    }

    func objects() async throws -> [String: Object] {
        try JSONDecoder().decode([String: Object].self, from: try await ask(.get, "objects"))
    }

    func log() async throws -> [Request] {
        try JSONDecoder().decode([Request].self, from: try await ask(.get, "log"))
    }

    /// What happens to the next uploads, one each, as JSON.
    func fault(_ faults: String) async throws { _ = try await ask(.put, "faults", faults) }

    /// What happens to the next requests for an object, one each, as JSON.
    func readFault(_ faults: String) async throws { _ = try await ask(.put, "read-faults", faults) }

    /// What the metadata service answers, as JSON.
    func metadata(_ answers: String) async throws { _ = try await ask(.put, "metadata", answers) }

    private func ask(_ method: HTTPRequest.Method, _ what: String, _ body: String = "") async throws -> Data {
        try await server.steer(method, what, body, on: loop)
    }
}
