import Receiver
import Testing

@testable import spoolship

@Suite("receive")
struct ReceiveCommandTests {
    private func program(_ words: [String]) throws -> ReceiveProgram {
        let command = ReceiveCommand.receive
        let parsed = try ArgumentParser(command: command).parse(words)
        return try ReceiveProgram(
            Invocation(arguments: parsed.arguments, options: parsed.options, console: KeptConsole().console())
        )
    }

    @Test("without options it listens with HTTPS on loopback, prints events and injects no faults")
    func defaults() throws {
        let program = try program([])
        #expect(program.options.address == "127.0.0.1" && program.options.port == 8443)
        #expect(program.options.store == .standardOutput && program.options.faults == FaultPlan())
        #expect(program.certificates?.hasSuffix("/.local/state/spoolship-receiver") == true)
    }

    @Test("every fault can be requested")
    func faults() throws {
        var expected = FaultPlan()
        expected.fault = .status(503)
        expected.probability = 0.25
        expected.seed = 9
        expected.first = 10
        expected.retryAfter = 3
        expected.delay = .milliseconds(1500)
        expected.largestBody = 65_536
        expected.marker = "bad"
        let words =
            "--fail 503 --probability 0.25 --seed 9 --first 10 --retry-after 3 --delay 1.5s --largest-body 64KiB --marker bad"
        #expect(try program(words.split(separator: " ").map { String($0) }).options.faults == expected)
        for (word, fault) in [
            ("cut-in-body", FaultPlan.Fault.cutInBody), ("cut-before-storing", .cutBeforeStoring),
            ("cut-after-storing", .cutAfterStoring),
        ] {
            #expect(try program(["--fail", word]).options.faults.fault == fault)
        }
    }

    @Test(
        "addresses are accepted in every form",
        arguments: [
            ("127.0.0.1:1", "127.0.0.1", 1), ("[::1]:8443", "::1", 8443), (":5", "127.0.0.1", 5),
            ("5", "127.0.0.1", 5), ("localhost:0", "127.0.0.1", 0),
        ] as [(String, String, UInt16)])
    func endpoints(text: String, address: String, port: UInt16) throws {
        #expect(try ReceiveProgram.endpoint(text) == (address, port))
    }

    @Test(
        "a mistake is answered with what to write instead, and exit code 64",
        arguments: [
            ["--listen", "localhost"], ["--fail", "often"], ["--fail", "99"], ["--probability", "2"],
            ["--seed", "-1"],
            ["--delay", "5"], ["--largest-body", "big"], ["--threads", "0"], ["--sync"], ["--first", "x"],
        ])
    func mistakes(words: [String]) throws {
        let error = #expect(throws: CommandFailure.self) { try program(words) }
        #expect(error?.code == .usage)
        #expect(error?.message.contains("give") == true || error?.message.contains("is for") == true)
    }
}
