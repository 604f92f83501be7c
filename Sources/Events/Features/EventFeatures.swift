internal import EventLoops
internal import Model

/// All features of a pass, in the order in which they are asked. What only one of them can do is below the
/// protocol's functions, for the interface of `EventPass`; the judges do not use it.
///
/// The order matters. The country's feature finds the address first, because the properties may be rewritten
/// without it by the limits'. Sessions come last, so that no refused event begins one.
struct EventFeatures: EventFeature, ~Copyable {
    private var country = CountryFinder()
    private var limits = LimitKeeper()
    private var device = DeviceAdder()
    private var sessions = SessionFinder()

    static var growth: Int {
        CountryFinder.growth + LimitKeeper.growth + DeviceAdder.growth + SessionFinder.growth
    }

    mutating func configure(_ options: EventOptions, _ scanner: inout JSONScanner) {
        country.configure(options, &scanner)
        limits.configure(options, &scanner)
        device.configure(options, &scanner)
        sessions.configure(options, &scanner)
    }

    func reads(_ name: [UInt8]) -> Bool {
        country.reads(name) || limits.reads(name) || device.reads(name) || sessions.reads(name)
    }

    mutating func begin(_ start: SourceStart, _ scanner: inout JSONScanner, _ added: inout SourceAdditions) {
        country.begin(start, &scanner, &added)
        limits.begin(start, &scanner, &added)
        device.begin(start, &scanner, &added)
        sessions.begin(start, &scanner, &added)
    }

    @inline(__always)
    mutating func fit(
        name: UnsafeBufferPointer<UInt8>, of member: Member, _ draft: inout LineDraft,
        _ counts: inout EventCounts
    ) -> FittedName {
        // Only one feature limits names: a second one would have to be given what the first one leaves.
        limits.fit(name: name, of: member, &draft, &counts)
    }

    @inline(__always)
    mutating func check(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Excess? {
        if let excess = country.check(line, &scanner, &output, &counts) { return excess }
        if let excess = limits.check(line, &scanner, &output, &counts) { return excess }
        if let excess = device.check(line, &scanner, &output, &counts) { return excess }
        return sessions.check(line, &scanner, &output, &counts)
    }

    @inline(__always)
    mutating func keepOwn(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) {
        country.keepOwn(line, &scanner, &output, &counts)
        limits.keepOwn(line, &scanner, &output, &counts)
        device.keepOwn(line, &scanner, &output, &counts)
        sessions.keepOwn(line, &scanner, &output, &counts)
    }

    @inline(__always)
    mutating func complete(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Bool {
        _ = country.complete(line, &scanner, &output, &counts)
        _ = limits.complete(line, &scanner, &output, &counts)
        _ = device.complete(line, &scanner, &output, &counts)
        return sessions.complete(line, &scanner, &output, &counts)
    }

    mutating func changes(isHidden: (String) -> Bool) -> [String: [UInt8]?] {
        sessions.changes(isHidden: isHidden)
    }

    mutating func restore(_ key: String, app: String, _ bytes: [UInt8]) {
        sessions.restore(key, app: app, bytes)
    }

    mutating func forget(_ isFound: ([UInt8]) -> Bool) { sessions.forget(isFound) }

    // MARK: What one feature can do

    /// Sets the look-up of countries by address; nil ends it.
    mutating func useCountries(_ lookup: ((String) -> CountryCode?)?) { country.lookup = lookup }

    /// Starts a session of the source's app by command. Returns false, without a change, unless sessions are
    /// manual.
    mutating func startSession(_ output: inout LineOutput, _ counts: inout EventCounts) -> Bool {
        sessions.beginByCommand(&output, &counts)
    }

    /// Writes the event of the start of a session, and notes that it is written.
    mutating func writeSessionStart(_ output: inout LineOutput, into buffer: inout LineBuffer) {
        output.writeSessionStart(at: sessions.start, into: &buffer)
        sessions.announce()
    }
}
