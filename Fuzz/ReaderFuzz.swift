import EventLoops
@testable import Events
import Glibc
@testable import Model
@testable import Spool
@testable import TextFormats
@testable import TimeZones

/// The entry point of libFuzzer: any bytes through the reader of lines and the framers of the spool, under the address
/// sanitizer. Traps when a promise is broken. `scripts/fuzz` builds and runs it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    guard let data, size > 1 else { return 0 }
    let choice = data[0]
    let text = UnsafeBufferPointer(start: data + 1, count: size - 1)
    readLines(text, options(choice), isSynchronised: choice & 1 == 0)
    readLines(text, textOptions(choice), isSynchronised: choice & 1 == 0)
    compareFramings(text)
    cutLines(text, longest: Int(choice) + 1)
    return 0
}

private func options(_ choice: UInt8) -> EventOptions {
    var options = EventOptions()
    if choice & 1 != 0 { options.defaults.defaultEventName = "default" }
    if choice & 2 != 0 {
        options.defaults.limits.nameLength.value = 3
        options.defaults.limits.properties.value = 2
        options.defaults.limits.propertyKeyLength.value = 2
        options.defaults.limits.propertyValueLength.value = 2
        options.defaults.limits.eventNames.value = 5
    }
    if choice & 4 != 0 {
        options.addressMember = "ip"
        options.removesAddress = true
    }
    if choice & 8 != 0 {
        options.defaults.country = CountryCode("IT")
        options.defaults.text = .lines
        options.defaults.levelMembers = ["a", "b.c"]
        options.hostName = "host"
    }
    if choice & 16 != 0 { options.device = DeviceText(members: [.init("k", "v")], zone: .utc) }
    options.session.mode = SessionMode.allCases[Int(choice >> 5) % 3]
    return options
}

/// Every built-in format, and templates, patterns and columns; the last two are of records of several lines.
private let formats: [TextFormat] = {
    var all = FormatTable.names.filter { !["csv", "tsv", "json_in"].contains($0) }.map { name in
        var settings = TextFormatSettings()
        settings.parse = name
        return settings
    }
    let changes: [(inout TextFormatSettings) -> Void] = [
        { ($0.parse, $0.columns, $0.numbers) = ("csv", ["a", "timestamp", "c"], ["a"]) },
        { ($0.parse, $0.columns) = ("tsv", ["a", "level"]) },
        { $0.parse = "json_in:log" },
        { ($0.parse, $0.keepLine) = (#"$client [$time_local] "$request" $status:number ${rest:rest}"#, "raw") },
        { $0.parse = #"%h %t \"%r\" %>s"# },
        { $0.parse = "%m [%p] %q%u@%d " },
        { ($0.pattern, $0.numbers) = (#"^(?P<time>\S+) (?P<n>\S+)(?P<text>.*)$"#, ["n"]) },
        { ($0.parse, $0.firstLine) = ("logfmt", #"^\S"#) },
        { $0.firstLine = #"^\d"# },
    ]
    for change in changes {
        var settings = TextFormatSettings()
        change(&settings)
        all.append(settings)
    }
    return all.compactMap { try? TextFormat($0) }
}()

/// Lines of text in one of the formats, within a container's lines or without them.
private func textOptions(_ choice: UInt8) -> EventOptions {
    var options = EventOptions()
    options.session.mode = .off
    options.defaults.kind = .log
    options.defaults.text = .lines
    let place = Int(choice) % (formats.count + 2)
    if place < formats.count { options.defaults.textFormat = formats[place] }
    if place >= formats.count || choice >= 192 { options.defaults.format = place % 2 == 0 ? .cri : .docker }
    return options
}

/// Text in memory of just its size, a line feed at its end: what reads beyond it is found.
private func withBlock(_ text: UnsafeBufferPointer<UInt8>, _ body: (UnsafeMutablePointer<UInt8>, Int) -> Void) {
    let block = UnsafeMutablePointer<UInt8>.allocate(capacity: text.count + 1)
    defer { block.deallocate() }
    if let start = text.baseAddress { block.initialize(from: start, count: text.count) }
    block[text.count] = 0x0A
    body(block, text.count + 1)
}

/// Each line has one verdict; what is accepted is written as one line, which is accepted again and does not change.
private func readLines(_ text: UnsafeBufferPointer<UInt8>, _ options: EventOptions, isSynchronised: Bool) {
    var random = Counting()
    var pass = EventPass(options: options)
    let source = pass.source(app: "app", using: &random)
    let now = Timestamp(milliseconds: 1_795_168_800_000)
    pass.begin(source, producer: [1], at: now, isSynchronised: isSynchronised, using: &random)
    withBlock(text) { block, count in
        var buffer = LineBuffer()
        var offset = 0
        while offset < count {
            let verdict = pass.read(block, from: offset, to: count)
            guard verdict.next > offset, verdict.next <= count, block[verdict.next - 1] == 0x0A else {
                fatalError("next")
            }
            offset = verdict.next
            guard verdict.kind == .accepted else { continue }
            buffer.removeAll()
            if verdict.startsSession { pass.writeSessionStart(into: &buffer) }
            let start = buffer.count
            pass.write(into: &buffer)
            guard buffer.count - start <= pass.length + pass.maxAddition else { fatalError("grew too much") }
            let lines = Array(buffer.bytes)
            guard lines.filter({ $0 == 0x0A }).count == (start > 0 ? 2 : 1), lines.last == 0x0A else {
                fatalError("lines")
            }
            var second = EventPass(options: EventOptions())
            let again = second.source(app: "app", using: &random)
            second.begin(again, at: now, isSynchronised: false, using: &random)
            lines[start...].withUnsafeBufferPointer { line in
                guard let base = line.baseAddress else { return }
                guard second.read(base, from: 0, to: line.count).kind == .accepted else { fatalError("not read again") }
            }
        }
    }
    let memory = pass.takeMemory()
    var restored = EventPass(options: options)
    restored.restore(memory.compactMapValues { $0 }, using: &random)
}

/// A text that is one object to the scanner is one event to the splitter of drop files, and the same one.
private func compareFramings(_ text: UnsafeBufferPointer<UInt8>) {
    var random = Counting()
    var settings = EventOptions()
    settings.session.mode = .off
    settings.defaults.defaultEventName = "default"
    settings.defaults.limits = EventLimits()
    var pass = EventPass(options: settings)
    let source = pass.source(app: "app", using: &random)
    pass.begin(source, at: Timestamp(milliseconds: 0), isSynchronised: false, using: &random)
    withBlock(text) { block, count in
        var check = ObjectCheck([])
        let isObject = check.end(of: UnsafeRawBufferPointer(start: block, count: count)) != nil
        var splitter = ObjectSplitter(longest: 1 << 20)
        var events: [[UInt8]] = []
        var used = 0
        let bytes = UnsafeRawBufferPointer(start: block, count: count)
        scan: while true {
            switch splitter.next(bytes, used: &used) {
            case .more: break scan
            case .event: events.append(splitter.event)
            case .fault: break scan
            case .tooLong: return
            }
        }
        if case .event = splitter.finish() { events.append(splitter.event) }
        guard isObject else { return }
        guard events.count == 1, let event = events.first else {
            fatalError("the splitter found \(events.count) events")
        }
        event.withUnsafeBufferPointer { line in
            guard let base = line.baseAddress else { return }
            guard [.accepted, .dataLayer].contains(pass.read(base, from: 0, to: line.count).kind) else {
                fatalError("the splitter changed it")
            }
        }
    }
}

/// Pieces cover the block, and no line in them is longer than the limit.
private func cutLines(_ text: UnsafeBufferPointer<UInt8>, longest: Int) {
    let cutter = LineCutter(longest: longest)
    withBlock(text) { block, count in
        var offset = 0
        while offset < count {
            let rest = UnsafeRawBufferPointer(start: block + offset, count: count - offset)
            switch cutter.piece(of: rest) {
            case .lines(let length):
                guard length > 0, length <= rest.count, rest[length - 1] == 0x0A else { fatalError("lines") }
                guard rest[..<length].split(separator: 0x0A).allSatisfy({ $0.count <= longest }) else {
                    fatalError("long")
                }
                offset += length
            case .tooLong(let length, _):
                guard length > longest, length <= rest.count else { fatalError("too long") }
                offset += length
            case .partial(let length):
                guard length > 0, length <= rest.count else { fatalError("partial") }
                offset += length
            }
        }
    }
}

/// Numbers that repeat: findings must too.
private struct Counting: RandomNumberGenerator {
    var state: UInt64 = 0
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return state ^ state >> 29
    }
}
