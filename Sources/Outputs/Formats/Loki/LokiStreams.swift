internal import EventLoops
internal import Model

/// The streams of a request, in the order of their first events.
struct LokiStreams: ~Copyable {
    /// What events of a stream have in common.
    struct Stream: Hashable {
        /// Index of the texts of the label templates.
        let values: Int
        /// Value of the label `app`; nil without that label.
        let app: String?
        /// Value of the label `host`; nil for events that name no host, or another.
        let host: String?
        /// Hour of the event, `2026-11-20T10`; nil unless streams are divided by hour.
        let hour: String?
    }

    /// The parts of an event that decide its stream, as bytes of the event.
    private struct Source {
        let owner: String
        let app: JSONBytes?
        let device: JSONBytes?
        let host: JSONBytes?
        let values: Int
    }

    private(set) var streams: [Stream] = []
    private var numbers: [Stream: Int] = [:]
    /// The event before, and the number of its stream: the next one has mostly the same.
    private var last: (source: Source, number: Int)?
    private let namesApp: Bool
    private let host: String?
    private let hostBytes: [UInt8]
    private let dividesByHour: Bool

    /// - Parameters:
    ///   - namesApp: whether there is a label with the app that events belong to.
    ///   - host: this machine's name for a label; nil for none.
    init(namesApp: Bool, host: String?, dividesByHour: Bool) {
        self.namesApp = namesApp
        self.host = host
        hostBytes = Array((host ?? "").utf8)
        self.dividesByHour = dividesByHour
    }

    /// The number of an event's stream.
    ///
    /// - Parameters:
    ///   - owner: the app that the queue knows; empty if it knows none.
    ///   - values: index of the texts of the label templates.
    mutating func number(
        of event: borrowing EventScan, owner: String, values: Int, at time: Timestamp
    ) -> Int {
        let source = Source(
            owner: owner, app: owner.isEmpty ? event[.app] : nil, device: event[.device],
            host: event[.hostName],
            values: values)
        if !dividesByHour, let last, LokiStreams.areSame(last.source, source) { return last.number }
        let name = owner.isEmpty ? event[.app]?.scalar?.string : owner
        let app = name.flatMap { Template.Place.label.safe($0) } ?? EventTemplates.missing
        let stream = Stream(
            values: values, app: namesApp ? app : nil,
            host: host.flatMap { event.isFrom(hostBytes) ? $0 : nil },
            hour: dividesByHour ? String("\(time)".prefix(13)) : nil)
        let number = numbers[stream] ?? streams.count
        if number == streams.count {
            numbers[stream] = number
            streams.append(stream)
        }
        last = (source, number)
        return number
    }

    private static func areSame(_ left: Source, _ right: Source) -> Bool {
        left.values == right.values && left.owner == right.owner && areSame(left.app, right.app)
            && areSame(left.host, right.host) && areSame(left.device, right.device)
    }

    private static func areSame(_ left: JSONBytes?, _ right: JSONBytes?) -> Bool {
        guard let left, let right else { return (left == nil) == (right == nil) }
        return left.isSame(as: right)
    }
}
