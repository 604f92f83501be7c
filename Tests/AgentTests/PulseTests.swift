@testable import Configuration
import Delivery
import EventLoops
import Glibc
import Logs
import Model
import Queue
import Receiver
import Spool
import Synchronization
import TestKit
import Testing

@testable import Agent

@Suite("Readiness")
struct PulseTests {
    @Test(
        "a loop that hangs makes the agent not ready within its time limit, and ready again when it continues"
    )
    func hangingLoop() async throws {
        let main = try EventLoop(name: "main")
        let store = try EventLoop(name: "store")
        try main.start()
        try store.start()
        defer {
            main.stop()
            store.stop()
        }
        let log = KeptLog()
        let pulse = Pulse(
            on: main, time: SystemTime(), log: Log(log), patience: .milliseconds(200)
        ) {
            [WatchedLoop(store, hint: "does the disk hang?")]
        } state: {
            (QueueSnapshot(), DeliverySnapshot(), SpoolFigures())
        }
        await pulse.check()
        #expect(pulse.obstacles == [])
        let (hangs, ends) = (WatchdogTests.Gate(), WatchdogTests.Gate())
        store.post {
            hangs.open()
            ends.wait()
        }
        hangs.wait()
        let before = SystemTime().bootTime
        await pulse.check()
        #expect(
            pulse.obstacles.count == 1 && pulse.obstacles[0].hasPrefix("the store loop has not answered for"))
        #expect(SystemTime().bootTime - before < .seconds(10))
        ends.open()
        #expect(await eventually { pulse.obstacles == [] })
        // One that waits for a file says for which.
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/hangs"
        try #require(mkfifo(path, 0o600) == 0)
        let pipe = try Descriptor(checking: open(path, O_RDWR | O_CLOEXEC), "open").release()
        defer { close(pipe) }
        store.post {
            var byte: UInt8 = 0
            _ = read(pipe, &byte, 1)
        }
        await pulse.check()
        #expect(
            pulse.obstacles.count == 1
                && pulse.obstacles[0].hasSuffix(": it waits for \(path): does that file system hang?"))
        try WholeFile.write([0], to: pipe)
        #expect(await eventually { pulse.obstacles == [] })
        #expect(
            await eventually {
                log.messages.map(\.text)
                    == Array(
                        repeating: [
                            "not ready: the agent makes no progress", "the agent makes progress again",
                        ],
                        count: 2
                    )
                    .flatMap(\.self)
            })
    }

    @Test("each loop that hangs is logged, even while another one hangs")
    func severalHangs() async throws {
        let main = try EventLoop(name: "main")
        let others = try ["journal of a", "journal of b"].map { try EventLoop(name: $0) }
        let ends = others.map { _ in WatchdogTests.Gate() }
        for loop in [main] + others { try loop.start() }
        defer {
            for gate in ends { gate.open() }
            for loop in [main] + others { loop.stop() }
        }
        let log = KeptLog()
        let pulse = Pulse(on: main, time: SystemTime(), log: Log(log), patience: .milliseconds(50)) {
            others.map { WatchedLoop($0, hint: "does its disk hang?") }
        } state: {
            (QueueSnapshot(), DeliverySnapshot(), SpoolFigures())
        }
        for (number, loop) in others.enumerated() {
            let gate = ends[number]
            loop.post { gate.wait() }
            await pulse.check()
            #expect(pulse.silent == Set(others.prefix(number + 1).map(\.name)))
            #expect(log.messages.count == number + 1 && "\(log.messages[number])".contains(loop.name))
        }
        ends[0].open()
        #expect(await eventually { pulse.silent == [others[1].name] })
        ends[1].open()
        #expect(
            await eventually {
                log.messages.last?.text == "the agent makes progress again" && pulse.silent == []
            })
    }

    @Test(
        "a commit that takes more than ten seconds makes the agent not ready, long before the watchdog acts"
    )
    func commitsThatDoNotCome() async throws {
        let main = try EventLoop(name: "main")
        try main.start()
        defer { main.stop() }
        let time = ManualTime()
        let pulse = Pulse(on: main, time: time, log: Log(KeptLog())) {
            []
        } state: {
            ProgressWatchTests.heldBack
        }
        await pulse.check()
        #expect(pulse.obstacles == [])
        time.advance(by: .seconds(11))
        await pulse.check()
        #expect(pulse.obstacles == ["reading waits for a commit that does not end"])
    }

    @Test("a mount that hangs is named by its path, and a stall beside it is reported too")
    func stallBesideMount() async throws {
        let main = try EventLoop(name: "main")
        let files = try EventLoop(name: "files of /mnt/nas")
        let ends = WatchdogTests.Gate()
        for loop in [main, files] { try loop.start() }
        defer {
            ends.open()
            for loop in [main, files] { loop.stop() }
        }
        let time = ManualTime()
        let log = KeptLog()
        let silent = Mutex<Set<String>>([])
        let pulse = Pulse(
            on: main, time: time, log: Log(log), patience: .milliseconds(50),
            silenced: { names in silent.withLock { $0 = names } }
        ) {
            [WatchedLoop(files, hint: "", mount: "/mnt/nas")]
        } state: {
            ProgressWatchTests.heldBack
        }
        files.post { ends.wait() }
        await pulse.check()
        time.advance(by: .seconds(11))
        await pulse.check()
        #expect(pulse.obstacles.count == 2)
        #expect(pulse.obstacles[0].hasPrefix("/mnt/nas: its file system does not answer, for 11 s now"))
        #expect(pulse.obstacles[1] == "reading waits for a commit that does not end")
        #expect(silent.withLock(\.self) == ["files of /mnt/nas"])
        #expect(log.messages.last?.text == "not ready: the agent makes no progress")
    }
}

@Suite("Whether a restart would succeed")
struct RestartWatchTests {
    @Test(
        "a reason why a restart would fail is logged once, and withdrawn when it is repaired",
        arguments: ["ca", "token", "configuration", "kafka", "hash"])
    func refused(what: String) async throws {
        let directory = try TemporaryDirectory()
        let main = try EventLoop(name: "main")
        try main.start()
        defer { main.stop() }
        let (time, log) = (ManualTime(), KeptLog())
        let good = """
            agent.state_directory = "\(directory.path)/state"
            spool.directory = "\(directory.path)/spool"
            [[destination]]
            name = "main"
            url = "https://127.0.0.1:1/"
            token = "file:\(directory.path)/token"
            tls.ca_file = "\(directory.path)/ca.pem"
            [[destination]]
            name = "lines"
            type = "kafka"
            kafka.brokers = ["127.0.0.1:1"]
            kafka.topic = "lines"
            tls.ca_file = "\(directory.path)/kafka.pem"
            [[container]]
            id = "GTM-1"
            default_file = "\(directory.path)/GTM-1"
            hash_key = "file:\(directory.path)/hash.key"
            """
        let certificate = try CertificateAuthority(now: SystemTime().wallTime).certificate
        func write(_ name: String, _ text: String) throws {
            try WholeFile.replace("\(directory.path)/\(name)", with: Array(text.utf8), mode: 0o600)
        }
        func writeGood() throws {
            try write("spoolship.toml", good)
            try write("token", "secret\n")
            try write("ca.pem", certificate)
            try write("kafka.pem", certificate)
            try write("hash.key", String(repeating: "0123456789abcdef", count: 4))
        }
        try writeGood()
        let watch = RestartWatch(
            "\(directory.path)/spoolship.toml", version: "1.0.0", on: main, time: time, log: Log(log))
        await watch.check()
        #expect(watch.problem == nil)
        switch what {
        case "ca": try write("ca.pem", "garbage\n")
        case "token": try write("token", "")
        case "kafka": try write("kafka.pem", "garbage\n")
        case "hash": try write("hash.key", "short")
        default: try write("spoolship.toml", good + "\ninterval = 7\n")
        }
        // Looked at ten seconds later at the earliest.
        await watch.check()
        #expect(watch.problem == nil)
        for _ in 0..<3 {
            time.advance(by: .seconds(11))
            await watch.check()
            #expect(watch.problem != nil)
        }
        try writeGood()
        time.advance(by: .seconds(11))
        await watch.check()
        #expect(watch.problem == nil)
        #expect(log.messages.count { $0.text.contains("a restart would fail") } == 1)
        #expect(log.messages.count { $0.text.contains("would succeed again") } == 1)
    }

    @Test("settings that were edited and not reloaded are reported until they are in force or undone")
    func edits() async throws {
        let directory = try TemporaryDirectory()
        let main = try EventLoop(name: "main")
        try main.start()
        defer { main.stop() }
        let time = ManualTime()
        let path = "\(directory.path)/spoolship.toml"
        func write(_ size: String, durability: String = "power_loss") throws -> Settings {
            let text = """
                agent.state_directory = "\(directory.path)/state"
                spool.directory = "\(directory.path)/spool"
                queue.max_size = "\(size)"
                queue.durability = "\(durability)"
                """
            try WholeFile.replace(path, with: Array(text.utf8), mode: 0o600)
            return try Settings.load(path: path).settings
        }
        let first = try write("10MiB")
        let watch = RestartWatch(path, version: "1.0.0", on: main, time: time, log: Log(KeptLog()))
        func edits(_ reloads: Reloads) -> [[String]] {
            let (reload, restart) = watch.edits(since: reloads)
            return [reload, restart]
        }
        func reloaded(_ settings: Settings) -> Reloads {
            Reloads(lastSuccess: time.wallTime, configured: settings, started: first)
        }
        await watch.check()
        #expect(edits(reloaded(first)) == [[], []])
        let second = try write("20MiB")
        time.advance(by: .seconds(11))
        await watch.check()
        #expect(edits(reloaded(first)) == [["queue.max_size"], []] && edits(reloaded(second)) == [[], []])
        // Edited and reloaded at once: a person who asks sees what is true now.
        let third = try write("30MiB")
        await watch.check()
        #expect(edits(reloaded(third)) == [["queue.max_size"], []])
        await watch.check(olderThan: .zero)
        #expect(edits(reloaded(third)) == [[], []])
        // What needs a restart was reloaded, and is still not in force; undone, it is no edit.
        let fourth = try write("30MiB", durability: "crash")
        await watch.check(olderThan: .zero)
        for settings in [third, fourth] { #expect(edits(reloaded(settings)) == [[], ["queue.durability"]]) }
        _ = try write("30MiB")
        await watch.check(olderThan: .zero)
        #expect(edits(reloaded(fourth)) == [[], []])
    }
}
