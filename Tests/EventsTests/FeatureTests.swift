import EventLoops
import Model
import TestKit
import Testing
import TimeZones

@testable import Events

/// What a feature said of a line, and the line as it would be written with what this feature adds.
private struct Answer {
    var excess: Excess?
    var startsSession = false
    var written = ""
}

/// One feature with the lines of one source, without a pass.
private struct Trial<Feature: EventFeature & ~Copyable>: ~Copyable {
    static var now: Timestamp { Timestamp(milliseconds: 1_795_168_800_000) }
    var feature: Feature
    var scanner = JSONScanner()
    var output = LineOutput()
    var counts = EventCounts()
    private let state: AppState

    init(
        _ feature: consuming Feature, hidesTexts: Bool = false,
        _ change: (inout EventOptions) -> Void = { _ in }
    ) {
        var options = EventOptions()
        change(&options)
        state = AppState("shop", seed: 1, options, WatchedNames([]))
        var feature = feature
        var scanner = JSONScanner()
        var output = LineOutput()
        feature.configure(options, &scanner)
        var added = SourceAdditions()
        feature.begin(
            SourceStart(state: state, producer: [1], wasClosed: true, now: Self.now, hidesTexts: hidesTexts),
            &scanner, &added)
        output.tails.begin(added)
        self.feature = feature
        self.scanner = scanner
        self.output = output
    }

    /// Asks about a line in the order in which the judges do.
    mutating func ask(
        _ line: String, type: EventType = .other, after seconds: Int64 = 0, isRecord: Bool = false
    ) -> Answer {
        let bytes = Array((line + "\n").utf8)
        return bytes.withUnsafeBufferPointer { block -> Answer in
            guard let base = block.baseAddress,
                scanner.scanLine(base, from: 0, to: block.count).isObject
            else { return Answer(written: "no object") }
            output.draft.reset()
            output.draft.isRecord = isRecord
            let member = scanner.member(.name)
            var name = UnsafeBufferPointer(start: base + member.value + 1, count: member.text.count)
            if !isRecord {
                switch feature.fit(name: name, of: member, &output.draft, &counts) {
                case .kept(let count): name = UnsafeBufferPointer(start: name.baseAddress, count: count)
                case .beyond(let excess): return Answer(excess: excess)
                }
            }
            let judged = JudgedLine(
                name: name, type: type, time: Self.now + .seconds(seconds), isRecord: isRecord)
            if let excess = feature.check(judged, &scanner, &output, &counts) {
                return Answer(excess: excess)
            }
            output.draft.wanted = isRecord ? [.country, .device] : [.country, .device, .sessionID]
            feature.keepOwn(judged, &scanner, &output, &counts)
            let starts = feature.complete(judged, &scanner, &output, &counts)
            var buffer = LineBuffer()
            output.write(&scanner, into: &buffer)
            let written = String(decoding: buffer.bytes.dropLast(), as: UTF8.self)
            return Answer(startsSession: starts, written: written)
        }
    }
}

/// The session's id in a line.
private func session(_ answer: Answer) -> String? {
    guard let range = answer.written.firstRange(of: #""session_id":""#) else { return nil }
    return String(answer.written[range.upperBound...].prefix { $0 != "\"" })
}

/// Each feature of a pass alone: no pass, no file, no clock.
@Suite("Features of a pass")
struct FeatureTests {
    // MARK: Limits

    @Test("an event within its limits is written as it is, and a record has no limits")
    func withinLimits() {
        var trial = Trial(LimitKeeper()) { $0.defaults.limits = .appCenter }
        let line = #"{"name":"a","properties":{"x":1}}"#
        #expect(trial.ask(line).written == line)
        #expect(trial.counts == EventCounts())
        let long = #"{"name":"\#(String(repeating: "n", count: 300))","properties":{"x":1,"x":2}}"#
        #expect(trial.ask(long, isRecord: true).written == long)
        #expect(trial.counts == EventCounts())
    }

    @Test("a name is cut, or its event is refused before anything else is asked")
    func nameLength() {
        var cutting = Trial(LimitKeeper()) { $0.defaults.limits.nameLength = Limit(3, .cut) }
        #expect(cutting.ask(#"{"name":"abcde"}"#).written == #"{"name":"abc"}"#)
        #expect(cutting.counts[.cut, .nameLength] == 1 && cutting.counts.lastCut?.member == "name")
        var refusing = Trial(LimitKeeper()) { $0.defaults.limits.nameLength = Limit(3, .refuse) }
        #expect(refusing.ask(#"{"name":"abcde"}"#).excess?.kind == .nameLength)
        #expect(refusing.ask(#"{"name":"abc"}"#).excess == nil)
    }

    @Test("an event that is refused for its properties uses up no name of the day")
    func propertiesBeforeNames() {
        var trial = Trial(LimitKeeper()) {
            $0.defaults.limits.eventNames = Limit(1, .refuse)
            $0.defaults.limits.properties = Limit(1, .refuse)
        }
        #expect(trial.ask(#"{"name":"a","properties":{"x":1,"y":2}}"#).excess?.kind == .properties)
        #expect(trial.ask(#"{"name":"b"}"#).excess == nil)
        #expect(trial.ask(#"{"name":"a"}"#).excess?.kind == .eventNames)
        // The agent's own name is never refused.
        #expect(trial.ask(#"{"name":"start_session"}"#, type: .startSession).excess == nil)
    }

    @Test("a cut names the property for the log, but not while tags hide texts")
    func namedCut() {
        for hides in [false, true] {
            var trial = Trial(LimitKeeper(), hidesTexts: hides) {
                $0.defaults.limits.propertyValueLength = Limit(2, .cut)
            }
            #expect(
                trial.ask(#"{"name":"a","properties":{"city":"Ulm"}}"#).written
                    == #"{"name":"a","properties":{"city":"Ul"}}"#)
            let member = trial.counts.lastCut?.member
            #expect(member == (hides ? "properties.(a property)" : "properties.city"))
        }
    }

    @Test("properties lose the address if the country's feature asks for it")
    func propertiesWithoutAddress() {
        var features = Trial(EventFeatures()) {
            $0.addressMember = "ip"
            $0.removesAddress = true
        }
        let event = features.ask(#"{"name":"a","properties":{"ip":"10.0.0.1","x":1}}"#)
        #expect(event.written.hasPrefix(#"{"name":"a","properties":{"x":1}"#))
        // The next event has none, and keeps its properties as they are written.
        let next = features.ask(#"{"name":"a","properties":{ "x": 1 }}"#)
        #expect(next.written.hasPrefix(#"{"name":"a","properties":{ "x": 1 }"#))
    }

    // MARK: Country

    @Test("lines get the source's country, and an operator's override counts more")
    func sourceCountry() {
        var settings = Trial(CountryFinder()) { $0.defaults.country = CountryCode("IT") }
        #expect(settings.ask(#"{"name":"a"}"#).written == #"{"name":"a","country":"IT"}"#)
        #expect(settings.ask(#"{"name":"a"}"#, isRecord: true).written == #"{"name":"a","country":"IT"}"#)
        var override = Trial(CountryFinder()) {
            $0.defaults.country = CountryCode("IT")
            $0.countryOverride = CountryCode("FR")
        }
        #expect(override.ask(#"{"name":"a"}"#).written == #"{"name":"a","country":"FR"}"#)
    }

    @Test("an event's own country is written in capitals, or taken out; a record's is data")
    func ownCountry() {
        var trial = Trial(CountryFinder()) { $0.defaults.country = CountryCode("IT") }
        #expect(trial.ask(#"{"name":"a","country":"de"}"#).written == #"{"name":"a","country":"DE"}"#)
        #expect(trial.ask(#"{"name":"a","country":"XX"}"#).written == #"{"name":"a","country":"IT"}"#)
        #expect(trial.counts[.unknownCountry] == 1)
        #expect(trial.ask(#"{"name":"a","country":null}"#).written == #"{"name":"a","country":"IT"}"#)
        #expect(trial.counts[.unknownCountry] == 1)
        let record = #"{"name":"a","country":"XX"}"#
        #expect(trial.ask(record, isRecord: true).written == record)
    }

    @Test("an address gives its country and leaves, also from a record that repeats it")
    func address() {
        var finder = CountryFinder()
        finder.lookup = { $0 == "10.0.0.1" ? CountryCode("DE") : nil }
        var trial = Trial(finder) {
            $0.addressMember = "ip"
            $0.removesAddress = true
        }
        #expect(trial.ask(#"{"name":"a","ip":"10.0.0.1"}"#).written == #"{"name":"a","country":"DE"}"#)
        #expect(trial.ask(#"{"name":"a","ip":"10.0.0.2"}"#).written == #"{"name":"a"}"#)
        #expect(trial.counts[.unknownAddress] == 1)
        let record = trial.ask(
            #"{"name":"a","ip":"10.0.0.3","ip":"10.0.0.1","properties":{"ip":"10.0.0.4","x":1}}"#,
            isRecord: true)
        #expect(record.written == #"{"name":"a","properties":{"x":1},"country":"DE"}"#)
    }

    // MARK: Device

    @Test("an event gets the device of its own time, or keeps its own; a record gets the host's name")
    func device() throws {
        let rome = try TimeZoneLoader().load("Europe/Rome")
        var trial = Trial(DeviceAdder()) {
            $0.device = DeviceText(members: [DeviceText.Member("os", "Debian")], zone: rome)
            $0.hostName = "web1"
        }
        func device(_ offset: Int) -> String {
            #"{"name":"a","device":{"os":"Debian","time_zone_offset":\#(offset)}}"#
        }
        // November, and June of the same year.
        #expect(trial.ask(#"{"name":"a"}"#).written == device(60))
        #expect(trial.ask(#"{"name":"a"}"#, after: -150 * 86_400).written == device(120))
        #expect(trial.ask(#"{"name":"a"}"#).written == device(60))
        #expect(trial.ask(#"{"name":"a","device":7}"#).written == #"{"name":"a","device":7}"#)
        #expect(trial.ask(#"{"name":"a","device":null}"#).written == device(60))
        #expect(trial.ask(#"{"name":"a"}"#, isRecord: true).written == #"{"name":"a","host_name":"web1"}"#)
        let own = #"{"name":"a","host_name":"db"}"#
        #expect(trial.ask(own, isRecord: true).written == own)
    }

    // MARK: Sessions

    @Test("an event begins a session, later ones continue it, and silence ends it; a record has none")
    func automatic() throws {
        var trial = Trial(SessionFinder())
        let first = trial.ask(#"{"name":"a"}"#, after: -100)
        #expect(first.startsSession && session(first) != nil)
        // The start is asked for until it is written.
        #expect(trial.ask(#"{"name":"a"}"#, after: -99).startsSession)
        trial.feature.announce()
        let second = trial.ask(#"{"name":"a"}"#, after: -98)
        #expect(!second.startsSession && session(second) == session(first))
        let third = trial.ask(#"{"name":"a"}"#, after: -50)
        #expect(third.startsSession && session(third) != session(first))
        let record = trial.ask(#"{"name":"a"}"#, isRecord: true)
        #expect(!record.startsSession && record.written == #"{"name":"a"}"#)
        #expect(trial.counts.sessions == ["automatic": 2])
    }

    @Test("an event keeps a usable session id, and null means that it has no session")
    func ownSession() {
        var trial = Trial(SessionFinder())
        let own = #"{"name":"a","session_id":"mine"}"#
        #expect(trial.ask(own).written == own && !trial.ask(own).startsSession)
        #expect(trial.ask(#"{"name":"a","session_id":null}"#).written == #"{"name":"a"}"#)
        #expect(trial.counts[.unusableID] == 0)
        let replaced = trial.ask(#"{"name":"a","session_id":[]}"#)
        #expect(replaced.startsSession && trial.counts[.unusableID] == 1)
    }

    @Test("settings of sessions hold from the next source on")
    func laterSettings() {
        var trial = Trial(SessionFinder())
        var options = EventOptions()
        options.session.mode = .off
        trial.feature.configure(options, &trial.scanner)
        #expect(trial.ask(#"{"name":"a"}"#).startsSession)
    }

    // MARK: Together

    @Test("a refused event begins no session")
    func refusedWithoutSession() {
        var trial = Trial(EventFeatures()) { $0.defaults.limits.properties = Limit(1, .refuse) }
        #expect(trial.ask(#"{"name":"a","properties":{"x":1,"y":2}}"#).excess != nil)
        #expect(trial.counts.sessions.isEmpty)
        #expect(trial.ask(#"{"name":"a"}"#).startsSession && trial.counts.sessions == ["automatic": 1])
    }

    @Test("a feature that says nothing changes nothing")
    func defaults() {
        struct Silent: EventFeature {}
        var trial = Trial(Silent())
        let line = #"{"name":"a","country":"de","session_id":null}"#
        let answer = trial.ask(line)
        #expect(answer.written == line && answer.excess == nil && !answer.startsSession)
        #expect(trial.counts == EventCounts() && Silent.growth == 0)
        #expect(trial.feature.changes { _ in false }.isEmpty)
    }
}
