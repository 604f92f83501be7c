import EventLoops
import Model
import TestKit
import Testing

@testable import Events

/// The parts of a pass, each alone.
@Suite("Parts of a pass")
struct PassPartsTests {
    /// The line that a draft writes after `change`, up to its closing brace; nil if the text is no object.
    private func written(
        _ text: String, _ change: (inout LineDraft, UnsafePointer<UInt8>) -> Void
    ) -> String? {
        var scanner = JSONScanner()
        var draft = LineDraft()
        let line = Array((text + "\n").utf8)
        return line.withUnsafeBufferPointer { line in
            guard let base = line.baseAddress, scanner.scanLine(base, from: 0, to: line.count).isObject else {
                return nil
            }
            change(&draft, base)
            var out = [UInt8](repeating: 0, count: line.count + draft.added + 8)
            let count = out.withUnsafeMutableBufferPointer { out in
                out.baseAddress.map { draft.write(scanner, to: $0) - $0 } ?? 0
            }
            return String(decoding: out[..<count], as: UTF8.self)
        }
    }

    /// The place of a text in another.
    private func place(of part: String, in text: String) -> Range<Int> {
        let (all, wanted) = (Array(text.utf8), Array(part.utf8))
        let start = all.indices.first { all[$0...].starts(with: wanted) } ?? 0
        return start..<start + wanted.count
    }

    private func member(_ name: String, _ value: String, in text: String) -> Member {
        let key = place(of: "\"\(name)\"", in: text)
        let range = place(of: value, in: text)
        return Member(key: key.lowerBound, value: range.lowerBound, end: range.upperBound)
    }

    @Test("a line without notes is written as it is, without its closing brace")
    func unchanged() {
        #expect(written(#"{"a":1, "b": 2}"#) { _, _ in } == #"{"a":1, "b": 2"#)
    }

    @Test("members are taken out wherever they stand, with one comma each")
    func removed() {
        let text = #"{"a":1, "b":2 , "c":3}"#
        let (a, b, c) = (member("a", "1", in: text), member("b", "2", in: text), member("c", "3", in: text))
        #expect(written(text) { $0.remove(a, of: $1) } == #"{ "b":2 , "c":3"#)
        #expect(written(text) { $0.remove(b, of: $1) } == #"{"a":1,  "c":3"#)
        #expect(written(text) { $0.remove(c, of: $1) } == #"{"a":1, "b":2 "#)
        // The order of the notes does not matter.
        let nothing = written(text) { draft, base in
            for member in [c, a, b] { draft.remove(member, of: base) }
        }
        #expect(nothing == "{")
    }

    @Test("replaced and cut bytes change nothing else, and what is added comes last")
    func replaced() {
        let text = #"{"name":"long name","b":true}"#
        let result = written(text) { draft, _ in
            draft.cut(place(of: " name", in: text))
            draft.replace(place(of: "true", in: text), with: Array("[\n1]".utf8))
            draft.addFront("pod") { $0.append(Array("\"x\"".utf8)) }
            draft.addFront(member: Array("\"n\":1".utf8))
        }
        #expect(result == #"{"name":"long","b":[1],"pod":"x","n":1"#)
    }

    @Test("an empty object gets its first addition without a comma")
    func emptyObject() {
        #expect(written("{ }") { draft, _ in draft.addFront(member: Array("\"n\":1".utf8)) } == #"{"n":1"#)
    }

    @Test("a reset forgets notes and additions; a kept name lasts until the next one")
    func reset() {
        var draft = LineDraft()
        draft.cut(0..<3)
        draft.replace(3..<4, with: [1, 2])
        draft.addFront(member: [1])
        #expect(draft.added == 3 && draft.edits.count == 2)
        draft.reset()
        #expect(draft.added == 0 && draft.edits.isEmpty && draft.front.isEmpty)
        for name in ["first", "second name"] {
            #expect(Array(draft.keptName(Array(name.utf8)[...])) == Array(name.utf8))
        }
    }

    private func state(_ change: (inout AppOptions) -> Void = { _ in }) -> AppState {
        var options = EventOptions()
        change(&options.defaults)
        return AppState("shop", seed: 1, options, WatchedNames([]))
    }

    @Test("times are bounded by a trusted clock only, and old files have no oldest time")
    func blockTimes() {
        let now = Timestamp(milliseconds: 1_000_000_000_000)
        let source = EventSource(
            state: state { $0.maxAhead = .seconds(60) }, isShared: false, isBackfill: false)
        let trusted = BlockContext(source, at: now, maxAge: .seconds(10), isSynchronised: true)
        #expect(trusted.oldest == now - .seconds(10) && trusted.newest == now + .seconds(60))
        let distrusted = BlockContext(source, at: now, maxAge: .seconds(10), isSynchronised: false)
        #expect(distrusted.oldest == Timestamp(nanoseconds: .min))
        #expect(distrusted.newest == Timestamp(nanoseconds: .max))
        let old = EventSource(state: state(), isShared: false, isBackfill: true)
        let backfill = BlockContext(old, at: now, maxAge: .seconds(10), isSynchronised: true)
        #expect(backfill.oldest == Timestamp(nanoseconds: .min))
    }

    @Test("the writers of a source decide who may be critical, and whose app is believed")
    func blockTrust() {
        func context(_ isShared: Bool, _ change: (inout AppOptions) -> Void = { _ in }) -> BlockContext {
            let source = EventSource(state: state(change), isShared: isShared, isBackfill: false)
            return BlockContext(source, at: Timestamp(nanoseconds: 0), maxAge: nil, isSynchronised: true)
        }
        #expect(context(false).mayBeCritical && !context(true).mayBeCritical)
        #expect(context(true) { $0.mayBeCritical = true }.mayBeCritical)
        #expect(!context(false).isShared && context(true).isShared)
        #expect(context(false) { $0.isJournal = true }.isShared)
        #expect(context(false) { $0.format = .docker }.isShared)
        #expect(!context(false).hasRules)
    }

    @Test("an app is remembered as one state, and the apps unread for longest are forgotten together")
    func memory() {
        var memory = PassMemory(SharedNames())
        var random = SplitMix64(seed: 1)
        let options = EventOptions()
        memory.configure(options)
        let first = memory.state(of: "app 0", options, using: &random)
        #expect(memory.state(of: "app 0", options, using: &random) === first)
        for number in 0...PassMemory.mostApps {
            let state = memory.state(of: "app \(number)", options, using: &random)
            memory.use(state, options, nil, day: 1)
        }
        // The first app is used once more: it is not among the idle ones.
        memory.use(first, options, nil, day: 2)
        let forgotten = memory.takeNames { _ in false }
        #expect(memory.nameCounts.count == PassMemory.mostApps * 3 / 4)
        #expect(memory.nameCounts["app 0"]?.day == 2 && memory.nameCounts["app 1"] == nil)
        #expect(forgotten.keys.contains("names/app 1") && forgotten["names/app 1"] == .some(nil))
    }

    @Test("names that tags begin to hide are deleted once")
    func hiddenNames() {
        var memory = PassMemory(SharedNames())
        var random = SplitMix64(seed: 1)
        let options = EventOptions()
        memory.configure(options)
        memory.use(memory.state(of: "a", options, using: &random), options, nil, day: 1)
        let deleted = memory.takeNames { _ in true }
        #expect(Array(deleted.keys) == ["names/a"] && deleted["names/a"] == .some(nil))
        #expect(memory.takeNames { _ in true }.isEmpty)
    }

    @Test("where records have their members follows settings, and leaves out what tags hide")
    func recordMembers() {
        var settings = AppOptions()
        settings.defaultEventName = "access"
        settings.levelMembers = ["lvl"]
        let watched = WatchedNames(settings.paths)
        let members = RecordMembers(settings, watched, nil)
        #expect(members.defaultName == Array(#""name":"access""#.utf8))
        #expect(members.addsSeverity && members.levels.mask != 0 && members.hiding == nil)
        let hidden = RecordMembers(
            settings, watched, (7, { $0.first.map { Array("lvl".utf8) == $0 } ?? false }))
        #expect(hidden.levels.mask == 0 && hidden.hiding == 7)
    }

    @Test("a remembered severity is what the word means where it stands")
    func rememberedSeverities() {
        var memo = SeverityMemo()
        let words = [
            "info", "INFO", "warn", "30", "250", "err", "nothing", "ab", "INFO+2", "DEBUG-4", "critical",
            "50", "03",
        ]
        let readings: [Severity.Reading] = [
            .level, .words, .capitalWords, .scale(.auto), .scale(.syslog), .scale(.python), .scale(.otel),
        ]
        // More pairs than are remembered, so that some are found and others are replaced.
        for _ in 0..<3 {
            for reading in readings {
                for word in words + words {
                    let expected = Severity(text: word, as: reading, isGELF: false)
                    let found = Array(word.utf8).withUnsafeBufferPointer {
                        memo.severity(of: $0, as: reading)
                    }
                    #expect(found == expected, "\(word) as \(reading)")
                }
            }
        }
    }
}
