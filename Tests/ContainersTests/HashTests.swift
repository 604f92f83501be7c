import Containers
import Glibc
import Model
import TestKit
import Testing

/// Digests that nobody can make or undo without the machine's key.
@Suite("Hashes")
struct HashTests {
    private func trial(_ key: HashKey?, _ more: String = "", facts: AgentFacts = AgentFacts()) throws -> Trial
    {
        var facts = facts
        facts.hashKey = key
        return try Trial(
            "\"rules\":{\"all\":{\"conditions\":[]}},\"tags\":[{\"name\":\"t\",\"type\":\"hash\",\"rules\":[\"all\"],\"paths\":[\"v\"]\(more)}]",
            facts: facts)
    }

    private func digest(_ value: String, _ key: HashKey? = .trial) throws -> String? {
        try trial(key).apply("{\"name\":\"n\",\"v\":\(value)}")["v"]?.string
    }

    /// The right sides are those of Python's `hmac`, with a key of 32 zero bytes, over their canonical text.
    static let known = [
        (#""a@b.c""#, "e27642c8f3b9da99f8969c0c4fb0a3ac9ff1cb5ee9f8018d9f3e0664f834abc8"),
        ("5", "efc578289b0a2a4ab804b70646a6d0aaf246f043854e3ce7d41fb49709def609"),
        (#""5""#, "0cec2a51a54194d6572b75346d77f2878d45cd54a2bf29d21f24b53a54cb76fc"),
        ("true", "b14c638b8fd80cb86594475e2573aafdcc7ca6ea9894c5de4668cd936b0a0545"),
        (#"[1,"x",{"a":null,"b":0.5}]"#, "824fc4ce9ec0f43e30139f297a9a6ab1d25cee847ab2b0ef9693d8390662ce85"),
        (
            #"[ 1.0, "\u0078" ,{"b":5E-1,"\u0061":null}]"#,
            "824fc4ce9ec0f43e30139f297a9a6ab1d25cee847ab2b0ef9693d8390662ce85"
        ),
        (#""\u00e9\n\"\\\/""#, "6a1e6de0d1fda1d0f678ad169cc5f6f7274c22b1df656e79278d42d9f5fb0c1f"),
        ("-1.5e-7", "3dce5821940fa1a11534604b3513566ed602903e7f93b517e2cf2aef0363365b"),
        ("12345678901234567890123", "d7a7300c849feaa604fb4e543e6705e88040cc3a483ff82e62d4cf6dccd0367c"),
        (
            "1000000000000000000000000000000",
            "f1a6ab632f32ca8f2342d5e8057f7073b7894df2123ee60b9c71ffc1dea125be"
        ),
    ]

    @Test("known digests: the same for every spelling of a value, behind the key's id", arguments: known)
    func knownAnswers(value: String, answer: String) throws {
        // The id is by Python's `hmac`, too.
        #expect(try digest(value) == "ced75b90-" + answer)
    }

    @Test("digests of another key have another id in front")
    func keyIDs() throws {
        let directory = try TemporaryDirectory()
        var ids: Set<Substring> = []
        for letter in ["a", "b"] {
            let path = "\(directory.path)/\(letter)"
            let file = try #require(fopen(path, "w"))
            fputs(String(repeating: letter, count: 32), file)
            fclose(file)
            chmod(path, 0o600)
            let digest = try #require(try digest("1", try HashKey(reading: path)))
            #expect(digest.utf8.count == 73)
            ids.insert(digest.prefix(9))
        }
        #expect(ids.count == 2)
    }

    /// A value, spelled in one of many ways.
    private indirect enum Drawn: Equatable {
        case text(String), number(Int, Int), bool(Bool), list([Drawn]), map([String: Drawn])

        init(_ random: inout SplitMix64, depth: Int) {
            switch Int.random(in: 0..<(depth > 0 ? 5 : 3), using: &random) {
            case 0:
                self = .text(
                    ["", "5", "true", "é\n", "a\"b\\", "[1]", "😀"].randomElement(using: &random) ?? "")
            case 1:
                self = .number(
                    Int.random(in: -20...20, using: &random), Int.random(in: -30...30, using: &random))
            case 2: self = .bool(.random(using: &random))
            case 3:
                self = .list(
                    (0..<Int.random(in: 0...3, using: &random)).map { _ in Drawn(&random, depth: depth - 1) })
            default:
                var map: [String: Drawn] = [:]
                for name in ["a", "é", "b\n"] where Bool.random(using: &random) {
                    map[name] = Drawn(&random, depth: depth - 1)
                }
                self = .map(map)
            }
        }

        /// What the number is, without trailing zeros.
        var plain: Drawn {
            switch self {
            case .number(var digits, var power):
                guard digits != 0 else { return .number(0, 0) }
                while digits % 10 == 0 { (digits, power) = (digits / 10, power + 1) }
                return .number(digits, power)
            case .list(let elements): return .list(elements.map(\.plain))
            case .map(let members): return .map(members.mapValues(\.plain))
            default: return self
            }
        }

        func spelled(_ random: inout SplitMix64) -> String {
            let blank = Bool.random(using: &random) ? " " : ""
            func text(_ text: String, _ random: inout SplitMix64) -> String {
                var spelled = "\""
                for unit in text.utf16 {
                    if unit < 0x80, unit >= 0x20, unit != 0x22, unit != 0x5C, Bool.random(using: &random) {
                        spelled += String(UnicodeScalar(UInt8(unit)))
                    } else {
                        spelled += "\\u" + String(Int(unit) + 0x10000, radix: 16).suffix(4)
                    }
                }
                return spelled + "\""
            }
            switch self {
            case .text(let value): return text(value, &random)
            case .number(let digits, let power):
                let zeros = Int.random(in: 0...3, using: &random)
                let e = Bool.random(using: &random) ? "e" : "E+"
                let sign = power - zeros < 0 ? "e" : e
                return "\(digits)\(String(repeating: "0", count: digits == 0 ? 0 : zeros))"
                    + "\(Bool.random(using: &random) ? ".0" : "")\(sign)\(digits == 0 ? 0 : power - zeros)"
            case .bool(let value): return "\(value)"
            case .list(let elements):
                var parts: [String] = []
                for element in elements { parts.append(blank + element.spelled(&random)) }
                return "[" + parts.joined(separator: ",\(blank)") + "\(blank)]"
            case .map(let members):
                var parts: [String] = []
                for (name, value) in members.shuffled(using: &random) {
                    parts.append(text(name, &random) + blank + ":" + blank + value.spelled(&random))
                }
                return "{\(blank)" + parts.joined(separator: ",") + "}"
            }
        }
    }

    @Test(
        "equal values have equal digests however they are spelled, different values have different ones",
        arguments: Seeds.list(1...100))
    func typed(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let trial = try trial(.trial)
        var digests: [String: Drawn] = [:]
        for _ in 0..<20 {
            let value = Drawn(&random, depth: 2)
            var found: Set<String> = []
            for _ in 0..<3 {
                let text = value.spelled(&random)
                let digest = trial.apply("{\"name\":\"n\",\"v\":\(text)}")["v"]?.string
                found.insert(try #require(digest, "\(text)"))
            }
            #expect(found.count == 1, "\(value)")
            let digest = try #require(found.first)
            #expect(digests[digest, default: value].plain == value.plain)
            digests[digest] = value
        }
    }

    @Test(
        "without a key nothing is hashed or sent in clear, and status says so; a salt is read, with a warning"
    )
    func withoutKey() throws {
        let keyless = try trial(nil)
        let line = keyless.apply(#"{"name":"n","v":"SECRET"}"#).line
        #expect(line == #"{"name":"n","v":"(no hash key)"}"#)
        #expect(keyless.engine.counts.problems[.missingKey, default: 0] == 1)
        #expect(
            keyless.engine.containers[0].mistake?.contains("hashes without a key: name a hash_key")
                == true)
        let kept = keyless.engine.presentable(Array(#"{"v":"SECRET"}"#.utf8), of: "shop")
        #expect(String(decoding: kept, as: UTF8.self) == #"{"v":"(no hash key)"}"#)
        let salted = try trial(.trial, #","salt":"s""#)
        #expect(
            salted.apply(#"{"name":"n","v":"x"}"#)["v"]
                == "9740c9dcdb4487d8cd63d2a544d8e6573f082081c49aef08c7853ab0f99e019a")
        #expect(salted.engine.containers[0].mistake == nil)
        #expect(salted.engine.containers[0].findings.map(\.path) == ["tags[0].salt"])
    }

    @Test("a missing, short, long or readable key is refused, and its bytes are not shown")
    func files() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/key"
        func write(_ text: String, mode: mode_t) throws {
            unlink(path)
            let file = try #require(fopen(path, "w"))
            fputs(text, file)
            fclose(file)
            chmod(path, mode)
        }
        func mistake() -> String {
            do throws(ContainerError) {
                _ = try HashKey(reading: path)
                return ""
            } catch {
                return error.message
            }
        }
        let good = String(repeating: "k", count: 32)
        #expect(mistake().contains("no such file"))
        for mode: mode_t in [0o600, 0o400, 0o640] {
            try write(good, mode: mode)
            #expect(mistake() == "")
        }
        for mode: mode_t in [0o644, 0o604, 0o660, 0o602, 0o601] {
            try write(good, mode: mode)
            #expect(mistake().contains("can be read or changed by others"), "\(String(mode, radix: 8))")
        }
        try write(String(good.dropLast()), mode: 0o600)
        #expect(mistake().contains("holds 31 bytes"))
        try write(String(repeating: "k", count: 4098), mode: 0o600)
        #expect(mistake().contains("32 to 4096"))
        try write(good + "\n", mode: 0o600)
        let key = try HashKey(reading: path)
        try write(good, mode: 0o600)
        #expect(try HashKey(reading: path) == key)
        #expect("\(key)" == "(secret)")
        #expect(try digest("1", key) != digest("1"))
        var dumped = ""
        dump(key, to: &dumped)
        #expect(!dumped.contains("107"))
        unlink(path)
        mkdir(path, 0o700)
        #expect(mistake().contains("not a regular file"))
    }
}
