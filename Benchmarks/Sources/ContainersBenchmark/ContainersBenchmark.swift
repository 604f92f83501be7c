import Containers
import EventLoops
import Events
import Glibc
import Model

/// Measures what containers in force add to an event, in CPU time: none, and 50 rules with 20 tags of which none fires.
///
/// `SPOOLSHIP_BENCHMARKS=1 swift run -c release ContainersBenchmark [events] [rounds] [case]`, where a case is a part of its name.
@main
enum ContainersBenchmark {
    static func main() throws {
        let arguments = CommandLine.arguments.dropFirst().compactMap { Int($0) }
        let events = arguments.first ?? 200_000
        let rounds = arguments.dropFirst().first ?? 5
        let block = makeBlock(events: events)
        defer { block.deallocate() }
        print("containers                                    ns/event   added   (median of \(rounds), CPU)")
        var base: Double?
        let cases: [(String, [String])] = [
            ("none", []),
            ("20 tags, 50 rules on names of other events", [document(.otherNames)]),
            ("20 tags, 50 rules on two properties each", [document(.properties)]),
            ("20 tags, 50 rules on a number", [document(.numbers)]),
            ("20 tags, 50 rules on a part of a text", [document(.parts)]),
            ("20 tags, 50 expressions on a property", [document(.expressions)]),
            ("one tag that redacts every event", [document(.redact)]),
            ("a tag that reads the data layer", [document(.layer)]),
        ]
        let wanted = CommandLine.arguments.dropFirst(3).first ?? ""
        for (name, documents) in cases where name == "none" || wanted.isEmpty || name.contains(wanted) {
            let containers = try documents.map {
                try CompiledContainer(try ContainerDocument(reading: Array($0.utf8)))
            }
            var seconds: [Double] = []
            for _ in 0..<rounds {
                let start = cpuTime()
                let count = read(block, containers)
                seconds.append(cpuTime() - start)
                guard count == events else {
                    print("\(name): \(count) of \(events) events were read")
                    exit(1)
                }
            }
            let each = seconds.sorted()[rounds / 2] / Double(events) * 1e9
            if base == nil { base = each }
            print(
                name + String(repeating: " ", count: 46 - name.count)
                    + "\(Int(each))       \(Int(each - (base ?? 0)))")
        }
        for kind in Edits.allCases where wanted.isEmpty || kind.rawValue.contains(wanted) {
            print(
                kind.rawValue + String(repeating: " ", count: 46 - kind.rawValue.count)
                    + "\(try Int(time(kind, rounds: rounds) * 1e9))")
        }
    }

    /// Events that their tags cost more than reading them does.
    enum Edits: String, CaseIterable {
        case hashes = "120,000 hashed members of 960 KB"
        case keyed = "120,000 members of 960 KB, hashed with a key"
        case sets = "100 firing set tags, 300 bytes"
        case replacements = "100 firing set tags on members, 2 KB"
        case redactions = "20 redacted paths, 300 bytes"

        var tags: [String] {
            switch self {
            case .hashes: [#""type":"hash","paths":["l.a"],"salt":"s""#]
            case .keyed: [#""type":"hash","paths":["l.a"]"#]
            case .sets, .replacements:
                (0..<100).map { "\"type\":\"set\",\"path\":\"properties.s\($0)\",\"value\":\($0)" }
            case .redactions: (0..<20).map { "\"type\":\"redact\",\"paths\":[\"properties.s\($0)\"]" }
            }
        }

        var event: String {
            switch self {
            case .hashes, .keyed:
                "{\"name\":\"n\",\"l\":[" + repeatElement(#"{"a":1}"#, count: 120_000).joined(separator: ",")
                    + "]}\n"
            case .replacements:
                Edits.event((0..<100).map { "\"s\($0)\":\"some value\"" })
            case .sets, .redactions:
                Edits.event(["\"s3\":\"some value\"", "\"text\":\"\(String(repeating: "x", count: 245))\""])
            }
        }

        private static func event(_ properties: [String]) -> String {
            "{\"name\":\"n\",\"properties\":{\(properties.joined(separator: ","))}}\n"
        }
    }

    /// The median of what one such event takes, in seconds of CPU.
    static func time(_ kind: Edits, rounds: Int) throws -> Double {
        let tags = kind.tags.enumerated().map { "{\"name\":\"t\($0)\",\"rules\":[\"all\"],\($1)}" }
        let all = tags.joined(separator: ",")
        let text = "{\"id\":\"A\",\"version\":1,\"rules\":{\"all\":{\"conditions\":[]}},\"tags\":[\(all)]}"
        var facts = AgentFacts()
        facts.hashKey = .trial
        let engine = RuleEngine(random: { 0 })
        engine.use([try CompiledContainer(try ContainerDocument(reading: Array(text.utf8)), facts: facts)])
        let count = kind.event.utf8.count < 10_000 ? 2000 : 1
        let now = SystemTime().wallTime
        let seconds = Array(kind.event.utf8).withUnsafeBytes { line in
            (0..<rounds).map { _ in
                let start = cpuTime()
                for _ in 0..<count {
                    _ = engine.apply(to: line, app: "shop", priority: .normal, at: now, largest: 1 << 20)
                }
                return (cpuTime() - start) / Double(count)
            }
        }
        return seconds.sorted()[rounds / 2]
    }

    enum Kind { case otherNames, properties, numbers, parts, expressions, redact, layer }

    static func document(_ kind: Kind) -> String {
        var rules: [String] = []
        for number in 0..<50 {
            let conditions =
                switch kind {
                case .otherNames:
                    #"{"macro":"event","equals":"other \#(number)"},{"macro":"category","equals":"\#(number)"}"#
                case .properties:
                    #"{"macro":"category","equals":"Books \#(number)"},{"macro":"duration","greater":\#(number)}"#
                case .numbers: #"{"macro":"duration","greater":\#(number + 1000)}"#
                case .parts: #"{"macro":"file","contains":"unwanted-\#(number)"}"#
                case .expressions: #"{"macro":"file","matches":"^unwanted-[a-z]+\#(number)"}"#
                case .redact: #"{"macro":"event","equals":"no event \#(number)"}"#
                case .layer: #"{"macro":"layer","equals":"\#(number)"}"#
                }
            rules.append("\"r\(number)\":{\"conditions\":[\(conditions)]}")
        }
        rules.append(#""all":{"conditions":[]}"#)
        var tags = (0..<20).map { number in
            let names = (0..<5).map { "\"r\((number * 5 + $0) % 50)\"" }.joined(separator: ",")
            return "{\"name\":\"t\(number)\",\"type\":\"discard\",\"rules\":[\(names)]}"
        }
        if kind == .redact {
            tags.append(#"{"name":"redact","type":"redact","paths":["properties.user"],"rules":["all"]}"#)
        }
        return #"""
            {"id":"A","version":1,"macros":{"category":{"type":"event_property","path":"Category"},
            "duration":{"type":"event_property","path":"duration"},"file":{"type":"event_property","path":"FileName"},
            "layer":{"type":"\#(kind == .layer ? "data_layer" : "event_property")","path":"Category"}},
            "rules":{\#(rules.joined(separator: ","))},"tags":[\#(tags.joined(separator: ","))]}
            """#
    }

    /// As the intake does it: the events' pass, then the rules where an event may concern them, then the chunk.
    static func read(_ block: UnsafeMutableBufferPointer<UInt8>, _ containers: [CompiledContainer]) -> Int {
        var random = SystemRandomNumberGenerator()
        var pass = EventPass(options: EventOptions())
        let source = pass.source(app: "shop", using: &random)
        let engine = RuleEngine(random: { 0 })
        engine.use(containers)
        let rules = engine.isIdle ? nil : engine
        var chunk = LineBuffer(capacity: 1 << 20)
        var scratch = LineBuffer(capacity: 1024)
        guard let base = block.baseAddress else { return 0 }
        let size = block.count - 64
        var offset = 0
        var accepted = 0
        let now = SystemTime().wallTime
        while offset < size {
            var end = min(offset + 1 << 18, size)
            while base[end - 1] != 0x0A { end -= 1 }
            pass.begin(source, producer: [1], wasClosed: false, at: now, isSynchronised: true, using: &random)
            chunk.removeAll()
            while offset < end {
                let verdict = pass.read(base, from: offset, to: end)
                offset = verdict.next
                guard verdict.kind == .accepted else { continue }
                if verdict.startsSession { pass.writeSessionStart(into: &chunk) }
                accepted += 1
                if let rules, rules.mayConcern(name: pass.name) {
                    scratch.removeAll()
                    pass.write(into: &scratch)
                    if rules.apply(to: scratch.bytes, app: "shop", priority: verdict.priority, at: now)
                        == .kept
                    {
                        chunk.append(rules.line)
                    }
                } else {
                    pass.write(into: &chunk)
                }
            }
        }
        return accepted
    }

    static func makeBlock(events: Int) -> UnsafeMutableBufferPointer<UInt8> {
        var text: [UInt8] = []
        let names = ["Video clicked", "Page opened", "Order placed", "Search done", "Basket changed"]
        for index in 0..<events {
            let line =
                #"{"name":"\#(names[index % names.count])","timestamp":"2026-11-20T10:00:00.123Z","priority":"normal","properties":{"Category":"Music","FileName":"favourite-\#(index).avi","duration":\#(index % 977).25,"user":"user-\#(index &* 7919 % 100_000)","premium":\#(index % 3 == 0),"referrer":"https://www.example.com/catalogue/section/\#(index % 97)","note":"nothing to add here, really, it is fine"}}"#
            text.append(contentsOf: line.utf8)
            text.append(0x0A)
        }
        let block = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.count + 64)
        block.initialize(repeating: 0)
        _ = block.update(fromContentsOf: text)
        return block
    }

    static func cpuTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
