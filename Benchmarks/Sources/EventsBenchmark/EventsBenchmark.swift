import CSimdjson
import EventLoops
import Events
import Glibc
import TestKit
import TimeZones

/// Measures the one pass over a line alone, in CPU time, against simdjson's DOM on the same data in the same run.
///
/// `SPOOLSHIP_BENCHMARKS=1 swift run -c release EventsBenchmark [events] [rounds] [ascii|varied|shuffled|spaced|mixed]`
@main
enum EventsBenchmark {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst().compactMap { Int($0) }
        let events = arguments.first ?? 200_000
        let rounds = arguments.dropFirst().first ?? 5
        print(
            "data                    bytes  what                     events/CPU-s    GB/s   (median of \(rounds))"
        )
        let chosen = CommandLine.arguments.dropFirst().filter { Int($0) == nil }
        for data in Data.allCases where chosen.isEmpty || chosen.contains("\(data)") {
            let block = makeBlock(data, events: events)
            defer { block.deallocate() }
            let size = block.count - 64
            let average = Double(size) / Double(events)
            func report(_ what: String, _ run: () -> Int) {
                var seconds: [Double] = []
                for _ in 0..<rounds {
                    let start = cpuTime()
                    let count = run()
                    seconds.append(cpuTime() - start)
                    guard count == events else {
                        print("\(what): \(count) of \(events) events were read")
                        exit(1)
                    }
                }
                let median = seconds.sorted()[rounds / 2]
                let line =
                    pad(data.rawValue, 22) + "  " + padLeft(String(Int(average)), 5) + "  " + pad(what, 22)
                    + "  "
                    + padLeft(String(Int(Double(events) / median)), 14) + "  "
                    + padLeft(String((Double(size) / median / 1e7).rounded() / 100), 6)
                print(line)
            }
            report("read", { read(block, size, writing: false) })
            report("read, limit, add, write", { read(block, size, writing: true) })
            report("the same, with device", { read(block, size, writing: true, device: device) })
            report(
                "simdjson DOM",
                {
                    var names = 0
                    return block.baseAddress.map { simdjson_dom_lines($0, size, &names) } ?? 0
                })
        }
    }

    /// What the events look like.
    enum Data: String, CaseIterable {
        case ascii = "ASCII"
        /// Each event name has properties of its own, and events of all names come in random order.
        case varied = "ASCII, five kinds"
        /// Members and properties in an order of their own in each event: the pass cannot find them where they were.
        case shuffled = "ASCII, shuffled"
        case spaced = "ASCII, blanks"
        case mixed = "half escapes, not ASCII"
    }

    /// As much as a machine usually tells of itself.
    static let device = DeviceText(
        members: [
            .init("sdk_name", "spoolship"), .init("sdk_version", "0.1.0"),
            .init("os_name", "Debian GNU/Linux"),
            .init("os_version", "12"), .init("kernel", "6.1.0-25-amd64"), .init("model", "PowerEdge R650"),
            .init("install_id", "0b7ad3f0-6f5e-4a6e-9a0e-2f9d5b8f3f10"),
        ], zone: .utc)

    static func read(
        _ block: UnsafeMutableBufferPointer<UInt8>, _ size: Int, writing: Bool, device: DeviceText? = nil
    ) -> Int {
        var random = SystemRandomNumberGenerator()
        var options = EventOptions()
        options.defaults.country = CountryCode("IT")
        options.device = device
        var pass = EventPass(options: options)
        let source = pass.source(app: "shop", using: &random)
        var buffer = LineBuffer(capacity: 1 << 20)
        guard let base = block.baseAddress else { return 0 }
        var offset = 0
        var accepted = 0
        let piece = 1 << 18
        while offset < size {
            // As the agent does: a block at a time, its end at a line's.
            var end = min(offset + piece, size)
            while base[end - 1] != 0x0A { end -= 1 }
            pass.begin(
                source, producer: [1], wasClosed: false, at: SystemTime().wallTime, isSynchronised: true,
                using: &random
            )
            buffer.removeAll()
            while offset < end {
                let verdict = pass.read(base, from: offset, to: end)
                offset = verdict.next
                guard verdict.kind == .accepted else { continue }
                accepted += 1
                guard writing else { continue }
                if verdict.startsSession { pass.writeSessionStart(into: &buffer) }
                pass.write(into: &buffer)
            }
        }
        return accepted
    }

    static func makeBlock(_ data: Data, events: Int) -> UnsafeMutableBufferPointer<UInt8> {
        var text: [UInt8] = []
        text.reserveCapacity(events * 340)
        let names = ["Video clicked", "Page opened", "Order placed", "Search done", "Basket changed"]
        let now = SystemTime().wallTime
        var random = SplitMix64(seed: 1)
        for index in 0..<events {
            let time = "\(now + .milliseconds(index - events))"
            let name = names[index % names.count]
            let line: String =
                switch data {
                case .ascii:
                    #"{"name":"\#(name)","timestamp":"\#(time)","priority":"normal","properties":{"Category":"Music","FileName":"favourite-\#(index).avi","duration":\#(index % 977).25,"user":"user-\#(index &* 7919 % 100_000)","premium":\#(index % 3 == 0),"referrer":"https://www.example.com/catalogue/section/\#(index % 97)","note":"nothing to add here, really, it is fine"}}"#
                case .varied:
                    varied(time, index, &random)
                case .shuffled:
                    shuffled(name, time, index, &random)
                case .spaced:
                    #"{"name": "\#(name)", "timestamp": "\#(time)", "priority": "normal", "properties": {"Category": "Music", "FileName": "favourite-\#(index).avi", "duration": \#(index % 977).25, "user": "user-\#(index &* 7919 % 100_000)", "premium": \#(index % 3 == 0), "referrer": "https://www.example.com/catalogue/\#(index % 97)", "note": "nothing to add here"}}"#
                case .mixed:
                    #"{"name":"\#(name)","timestamp":"\#(time)","properties":{"Kategorie":"Мусыка и ещё","Datei":"C:\\Medien\\größe\\\#(index).avi","duration":\#(index % 977).25,"text":"Grüße aus 東京都 渋谷区\n„schön“ 😀 \u00e9t\u00e9","path":"a\tb\tc\r\n","note":"съешь ещё этих мягких французских булок"}}"#
                }
            text.append(contentsOf: line.utf8)
            text.append(0x0A)
        }
        let block = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.count + 64)
        block.initialize(repeating: 0)
        _ = block.update(fromContentsOf: text)
        return block
    }

    /// An event of one of five kinds, by chance, with the properties of its kind.
    static func varied(_ time: String, _ index: Int, _ random: inout SplitMix64) -> String {
        let user = index &* 7919 % 100_000
        let (name, properties) =
            switch Int.random(in: 0..<5, using: &random) {
            case 0:
                (
                    "Video clicked",
                    #""Category":"Music","FileName":"favourite-\#(index).avi","duration":\#(index % 977).25,"premium":\#(index % 3 == 0),"quality":"1080p","position":\#(index % 4000),"list":"recommended for you","autoplay":false"#
                )
            case 1:
                (
                    "Page opened",
                    #""path":"/catalogue/section/\#(index % 97)","referrer":"https://www.example.com/catalogue/section/\#(index % 89)","user":"user-\#(user)","load":\#(index % 1500),"experiment":"B","language":"en-GB","note":"none""#
                )
            case 2:
                (
                    "Order placed",
                    #""order":"2026-\#(index)","user":"user-\#(user)","items":\#(index % 7),"total":\#(index % 300).90,"currency":"EUR","coupon":null,"shipping":"standard, two working days","payment":"card","first":\#(index % 5 == 0)"#
                )
            case 3:
                (
                    "Search done",
                    #""query":"blue shoes size \#(index % 13)","results":\#(index % 211),"page":\#(index % 4),"filters":"colour,size,price","sort":"relevance","took":\#(index % 90).5,"user":"user-\#(user)","suggestion":true"#
                )
            default:
                (
                    "Basket changed",
                    #""item":"article-\#(index % 5000)","change":"added","quantity":\#(index % 3),"basket":\#(index % 12),"price":\#(index % 80).49,"from":"product page","user":"user-\#(user)","recommended":false"#
                )
            }
        return
            #"{"name":"\#(name)","timestamp":"\#(time)","priority":"normal","properties":{\#(properties)}}"#
    }

    /// The event of `ascii`, its members and properties in an order by chance.
    static func shuffled(_ name: String, _ time: String, _ index: Int, _ random: inout SplitMix64) -> String {
        let properties = [
            #""Category":"Music""#, #""FileName":"favourite-\#(index).avi""#,
            #""duration":\#(index % 977).25"#,
            #""user":"user-\#(index &* 7919 % 100_000)""#, #""premium":\#(index % 3 == 0)"#,
            #""referrer":"https://www.example.com/catalogue/section/\#(index % 97)""#,
            #""note":"nothing to add here, really, it is fine""#,
        ].shuffled(using: &random).joined(separator: ",")
        let members = [
            #""name":"\#(name)""#, #""timestamp":"\#(time)""#, #""priority":"normal""#,
            #""properties":{\#(properties)}"#,
        ].shuffled(using: &random).joined(separator: ",")
        return "{" + members + "}"
    }

    static func cpuTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    static func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
    static func padLeft(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
