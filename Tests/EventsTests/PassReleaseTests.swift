import EventLoops
import Model
import TestKit
import Testing

@testable import Events

@Suite("A pass that rests")
struct PassReleaseTests {
    private static let lines = [
        #"{"name":"Sold","properties":{"a":1,"b":"x"},"timestamp":"2026-11-20T10:00:00Z"}"#,
        #"{"level":"warn","msg":"order","time":"2026-11-20T10:00:01Z","user":{"id":7}}"#,
        "not JSON", #"{"name":"Sold","properties":{"b":"y","a":2}}"#,
    ]

    private func written(_ reading: inout Reading, resting: Bool) -> [String] {
        var written: [String] = []
        for _ in 0..<3 {
            for line in Self.lines {
                if resting {
                    reading.pass.release()
                    reading.pass.release()
                }
                let (verdict, output) = reading.read(line)
                written.append("\(verdict.kind) \(output ?? "")")
            }
        }
        return written
    }

    @Test("writes what a pass writes that never rests, also with other settings while it rests")
    func same() {
        var options = EventOptions()
        options.apps["shop"] = options.defaults
        options.apps["shop"]?.timeMembers.append("msg")
        options.addressMember = "address"
        var busy = Reading()
        var idle = Reading()
        let before = (written(&busy, resting: false), written(&idle, resting: true))
        #expect(before.0 == before.1)
        idle.pass.release()
        busy.pass.configure(options)
        idle.pass.configure(options)
        let after = (written(&busy, resting: false), written(&idle, resting: true))
        #expect(after.0 == after.1 && after.0 != before.0)
    }

    @Test("passes with the same settings look for the same names, and one with others for its own")
    func sharedNames() {
        var options = EventOptions()
        options.apps["a"] = options.defaults
        let shared = SharedNames()
        let first = shared.names(options)
        let again = shared.names(options)
        let places = [first, again].map { $0.names.withUnsafeBufferPointer(\.baseAddress) }
        #expect(places[0] == places[1])
        options.apps["a"]?.nameMembers = ["own"]
        #expect(shared.names(options).slot(of: Array("own".utf8)) != nil)
        #expect(first.slot(of: Array("own".utf8)) == nil)
    }
}
