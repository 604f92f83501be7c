import CSimdjson
import EventLoops
import Events
import Glibc
import TestKit

/// Compares the reader of events with simdjson on random documents; ends with 1 at the first difference that nobody has
/// explained.
///
/// `SPOOLSHIP_BENCHMARKS=1 swift run -c release EventsAgreement [documents] [seed]`
@main
enum EventsAgreement {
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    static func main() {
        let arguments = CommandLine.arguments.dropFirst().compactMap { UInt64($0) }
        let count = Int(arguments.first ?? 1_000_000)
        let seed = arguments.dropFirst().first ?? 1
        var documents = JSONDocuments(seed: seed)
        var random = SplitMix64(seed: seed)
        var options = EventOptions()
        options.session.mode = .off
        options.defaults.limits = EventLimits()
        options.defaults.defaultEventName = "default"
        options.defaults.repairsUTF8 = false
        options.maxAge = nil
        var pass = EventPass(options: options)
        let source = pass.source(app: "app", using: &random)
        pass.begin(source, at: SystemTime().wallTime, isSynchronised: false, using: &random)
        var accepted = 0
        var explained: [String: Int] = [:]
        for index in 0..<count {
            let document = documents.next()
            let line = document + [0x0A]
            let ours = line.withUnsafeBufferPointer { line in
                guard let base = line.baseAddress else { return false }
                let kind = pass.read(base, from: 0, to: line.count).kind
                return kind == .accepted || kind == .dataLayer
            }
            if ours { accepted += 1 }
            guard ours != (simdjson_is_object(document, document.count) == 1) else { continue }
            var plain = JSONDocuments.withoutNumbers(document)
            let isMarked = plain.starts(with: byteOrderMark)
            while plain.starts(with: byteOrderMark) { plain.removeFirst(byteOrderMark.count) }
            if ours, simdjson_is_object(plain, plain.count) == 1 {
                let what =
                    isMarked
                    ? "a byte-order mark, which we skip" : "a number beyond 64 bits, which RFC 8259 allows"
                explained[what, default: 0] += 1
            } else {
                print("document \(index): ours \(ours), \(pass.problem?.detail ?? "")")
                print(String(decoding: document, as: UTF8.self).debugDescription)
                exit(1)
            }
        }
        print(
            "agreement with simdjson: \(count) documents of seed \(seed), \(accepted) accepted, explained: \(explained)"
        )
    }
}
