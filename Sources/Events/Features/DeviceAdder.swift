internal import EventLoops

/// The machine's properties as the member `device` of events, and its name as `host_name` of records.
///
/// The text is rendered once a block, and again only for an event at whose time the zone's offset differs.
struct DeviceAdder: EventFeature {
    /// App of the source; nil before the first `begin`.
    private var state: AppState?
    /// The machine's name as JSON text; empty adds none.
    private var hostName: [UInt8] = []
    /// Events from `from` up to, but not including, `until` have the device in the tail; others have another
    /// offset of the time zone.
    private var from = Timestamp(nanoseconds: .min)
    private var until = Timestamp(nanoseconds: .max)

    /// The offset of another time may have one or two digits more, and a sign.
    static var growth: Int { 8 }

    mutating func configure(_ options: EventOptions, _ scanner: inout JSONScanner) {
        hostName = options.hostName.map { JSONText.quoted($0) } ?? []
    }

    mutating func begin(_ start: SourceStart, _ scanner: inout JSONScanner, _ added: inout SourceAdditions) {
        state = start.state
        added.ofEvents.device = rendered(start.state, start.now)
        added.ofRecords.device = hostName
    }

    /// The device for events of a time.
    private mutating func rendered(_ state: AppState, _ time: Timestamp) -> [UInt8] {
        let device = state.device(at: time)
        from = device.from
        until = device.until
        return device.text
    }

    /// An event keeps any device, and a record any `host_name`, but not `null`.
    mutating func keepOwn(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) {
        let name = line.isRecord ? MemberName.hostName : .device
        guard scanner.has(name) else { return }
        let member = scanner.member(name)
        _ = output.draft.keep(member, as: .device, if: !member.isNull(in: scanner.base), scanner.base)
    }

    @inline(__always)
    mutating func complete(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Bool {
        if !line.isRecord, line.time < from || line.time >= until {
            update(line.time, &output.tails)
        }
        return false
    }

    @inline(never)
    private mutating func update(_ time: Timestamp, _ tails: inout AddedTails) {
        guard let state else { return }
        tails.use(device: rendered(state, time))
    }
}
