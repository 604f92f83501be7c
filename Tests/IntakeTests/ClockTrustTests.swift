import EventLoops
import TestKit
import Testing

@testable import Intake

@Suite("Trust in the clock")
struct ClockTrustTests {
    @Test("the kernel's clock status counts if the agent may read it")
    func fault21_kernel() {
        let time = ManualTime()
        #expect(ClockTrust { true }.isTrusted(at: time))
        #expect(!ClockTrust { false }.isTrusted(at: time))
        time.advance(by: .seconds(86_400))
        #expect(!ClockTrust { false }.isTrusted(at: time))
    }

    @Test("if the agent may not read it, a time service gets ten minutes after the machine's start")
    func fault21_sandbox() {
        let time = ManualTime()
        let trust = ClockTrust { nil }
        #expect(!trust.isTrusted(at: time))
        time.advance(by: .seconds(500))
        #expect(!trust.isTrusted(at: time))
        time.advance(by: .seconds(120))
        #expect(trust.isTrusted(at: time))
        // A step of more than an hour takes the trust away for ten minutes.
        time.step(to: time.wallTime + .seconds(7_200))
        #expect(!trust.isTrusted(at: time), "at once: within a minute much would expire")
        time.advance(by: .seconds(61))
        #expect(!trust.isTrusted(at: time))
        time.advance(by: .seconds(661))
        #expect(trust.isTrusted(at: time))
    }

    @Test("a clock that is behind the queue's last change, or behind this release, is not trusted")
    func fault21_past() {
        let time = ManualTime()
        time.advance(by: .seconds(3_600))
        #expect(ClockTrust(past: time.wallTime - .seconds(60)) { nil }.isTrusted(at: time))
        #expect(!ClockTrust(past: time.wallTime + .seconds(60)) { nil }.isTrusted(at: time))
        time.step(to: Timestamp(milliseconds: 0))
        #expect(!ClockTrust { nil }.isTrusted(at: time))
    }
}
