internal import EventLoops

/// Something that analytics wants of the lines beside their reading: limits, the country, the device, the
/// session.
///
/// The judges of events and of records know this protocol only, and ask the features in this order:
///
/// 1. `fit`: an event has a name. Priority and time go by the name that is left.
/// 2. `check`: the line is neither expired nor ahead of its time. It may still be refused, so nothing begins
///    here.
/// 3. `keepOwn`: the line has members of its own among those that the agent adds.
/// 4. `complete`: the line will be written. Here sessions begin.
///
/// A feature notes in the draft what the line loses, and in the draft or the tails what it gets. Features do
/// not know each other; `EventFeatures` is all of them, as a struct with a field for each: calls are direct,
/// and what a feature leaves to the defaults below costs nothing. An array of existentials would cost each
/// line a dozen indirect calls.
///
/// Fast paths are `@inline(__always)`, and begin with the check that ends most calls. The scanner is `inout`
/// although it is not changed: a borrowed one would be copied for each call that is not inlined (see
/// `JSONScanner`), which costs an event 100 instructions.
protocol EventFeature: ~Copyable {
    /// Most bytes by which the feature lengthens the tail of a line after `begin`.
    static var growth: Int { get }

    /// Takes over new settings. What the scanner looks for changes at once, the rest with the next `begin`.
    mutating func configure(_ options: EventOptions, _ scanner: inout JSONScanner)

    /// Whether the feature wants to see a member of this name, so that lines which may have it are scanned.
    func reads(_ name: [UInt8]) -> Bool

    /// Prepares for the lines of a source, and says what each of them gets.
    mutating func begin(_ start: SourceStart, _ scanner: inout JSONScanner, _ added: inout SourceAdditions)

    /// How much of an event's name stays. Cuts the name in the draft.
    mutating func fit(
        name: UnsafeBufferPointer<UInt8>, of member: Member, _ draft: inout LineDraft,
        _ counts: inout EventCounts
    ) -> FittedName

    /// Checks a line. Returns the limit that does not let it pass.
    mutating func check(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Excess?

    /// Keeps usable members of the line instead of adding them, and takes out the unusable ones.
    mutating func keepOwn(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts)

    /// Adds what the line does not have. Returns whether a session begins with it, so that its start must be
    /// written first.
    mutating func complete(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Bool

    /// What has changed since the last call and must be durable with the lines; nil for keys to delete.
    ///
    /// - Parameter isHidden: whether nothing may be stored for an app, because tags hide it.
    mutating func changes(isHidden: (String) -> Bool) -> [String: [UInt8]?]

    /// Takes over what an earlier process stored under a key of this app.
    mutating func restore(_ key: String, app: String, _ bytes: [UInt8])

    /// Forgets what is found, for the erasure of a person's data. Called between two blocks only.
    mutating func forget(_ isFound: ([UInt8]) -> Bool)
}

/// What a feature does not say: nothing is changed, added or remembered.
extension EventFeature where Self: ~Copyable {
    static var growth: Int { 0 }
    mutating func configure(_ options: EventOptions, _ scanner: inout JSONScanner) {}
    func reads(_ name: [UInt8]) -> Bool { false }
    mutating func begin(_ start: SourceStart, _ scanner: inout JSONScanner, _ added: inout SourceAdditions) {
    }

    @inline(__always)
    mutating func fit(
        name: UnsafeBufferPointer<UInt8>, of member: Member, _ draft: inout LineDraft,
        _ counts: inout EventCounts
    ) -> FittedName { .kept(name.count) }

    @inline(__always)
    mutating func check(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Excess? { nil }

    @inline(__always)
    mutating func keepOwn(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) {}

    @inline(__always)
    mutating func complete(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Bool { false }

    mutating func changes(isHidden: (String) -> Bool) -> [String: [UInt8]?] { [:] }
    mutating func restore(_ key: String, app: String, _ bytes: [UInt8]) {}
    mutating func forget(_ isFound: ([UInt8]) -> Bool) {}
}

/// The source whose lines begin, for its features.
struct SourceStart {
    /// The app, with its settings.
    let state: AppState
    /// Name of the append file that the lines come from; nil for drop files.
    let producer: [UInt8]?
    /// Whether a writer has closed the file since the lines before.
    let wasClosed: Bool
    /// Time of observation of the lines.
    let now: Timestamp
    /// Whether patterns of tags search texts: then no limit cuts a text, because a pattern would not find a
    /// secret of which one half was cut off.
    var isSearched = false
    /// Whether tags hide texts: then no name of a property goes to the log.
    var hidesTexts = false
}

/// The line that features are asked about.
struct JudgedLine {
    /// The line's name as UTF-8 text.
    let name: UnsafeBufferPointer<UInt8>
    /// The meaning of its `type`; `other` for records.
    let type: EventType
    /// The line's own time, or the time of its observation.
    let time: Timestamp
    /// Whether the line is a record. A record's members that are called like the agent's own are data.
    let isRecord: Bool
}

/// How much of an event's name stays.
enum FittedName {
    /// The name stays, or its beginning: number of its bytes that stay, as written in the line.
    case kept(Int)
    /// The limit does not let the event pass.
    case beyond(Excess)
}
