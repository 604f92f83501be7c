import EventLoops
import Glibc
import TestKit
import Testing

@testable import Receiver

@Suite("Events in a body")
struct EventLinesTests {
    @Test(
        "every form of body becomes lines",
        arguments: [
            ("{\"a\":1}\n{\"b\":2}\n", "{\"a\":1}\n{\"b\":2}\n", 2),
            ("{\"a\":1}", "{\"a\":1}\n", 1),
            ("{\"a\":1}\r\n\r\n\n{\"b\":2}", "{\"a\":1}\r\n{\"b\":2}\n", 2),
            (
                "[{\"a\":[1,{\"x\":\"],[\"}]},{\"b\":\"\\\"]\"}]",
                "{\"a\":[1,{\"x\":\"],[\"}]}\n{\"b\":\"\\\"]\"}\n", 2
            ),
            (" [ {\"a\":\n1} ,\n {} ] ", "{\"a\": 1}\n{}\n", 2),
            ("[]", "", 0), ("", "", 0), (" \n", "", 0),
        ] as [(String, String, Int)])
    func forms(body: String, lines: String, count: Int) throws {
        let found = try #require(EventLines.normalise(Array(body.utf8)))
        #expect(String(decoding: found.lines, as: UTF8.self) == lines && found.count == count)
    }

    @Test(
        "other bodies are refused",
        arguments: ["hello", "{\"a\":1}\nx\n", "[{\"a\":1}", "\"text\"", "12"])
    func others(body: String) {
        #expect(EventLines.normalise(Array(body.utf8)) == nil)
    }
}

@Suite("Faults")
struct FaultTests {
    @Test("the same seed selects the same requests, about as many as requested")
    func chanceRepeats() {
        var plan = FaultPlan()
        plan.fault = .status(503)
        plan.probability = 0.25
        plan.seed = 7
        var first = FaultDice(plan)
        var second = FaultDice(plan)
        let draws = (0..<4000).map { _ in first.draw() }
        #expect(draws == (0..<4000).map { _ in second.draw() })
        #expect((800...1200).contains(draws.count { $0 != nil }))
    }

    @Test("on request only the first requests fail")
    func firstOnes() {
        var plan = FaultPlan()
        plan.fault = .cutBeforeStoring
        plan.first = 3
        var dice = FaultDice(plan)
        #expect((0..<6).map { _ in dice.draw() != nil } == [true, true, true, false, false, false])
    }
}

@Suite("Keys")
struct KeyMemoryTests {
    @Test("the latest keys are remembered, the oldest forgotten")
    func oldestGo() {
        var memory = KeyMemory(limit: 10)
        for number in 0..<25 { memory.insert(.init("key \(number)")) }
        for number in 0..<25 { #expect(memory.contains(.init("key \(number)")) == (number >= 15)) }
    }
}

@Suite("Development certificates")
struct DevelopmentCertificateTests {
    @Test("certificates are made once, for the owner only, and kept")
    func madeOnce() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/tls"
        let now = SystemTime().wallTime
        let made = try DevelopmentCertificates(directory: path, now: now)
        var status = stat()
        #expect(stat(made.keyFile, &status) == 0 && status.st_mode & 0o777 == 0o600)
        let inode = status.st_ino
        _ = try DevelopmentCertificates(directory: path, now: now)
        #expect(stat(made.keyFile, &status) == 0 && status.st_ino == inode)
        _ = try DevelopmentCertificates(directory: path, now: now + .seconds(820 * 86_400))
        #expect(stat(made.keyFile, &status) == 0 && status.st_ino != inode)
    }
}
