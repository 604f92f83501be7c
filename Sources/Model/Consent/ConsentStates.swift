/// What commands have set about consent: an answer for each app and purpose that was set, and the apps whose
/// collection is off.
///
/// Its text is stored in the queue's file, so the form that `init(_:)` reads must stay readable.
public struct ConsentStates: Sendable, Equatable {
    /// A purpose of an app.
    public struct Key: Sendable, Hashable {
        /// Name of the app.
        public let app: String
        /// Name of the purpose.
        public let purpose: String
    }

    /// The ledger's reason for events of an app whose collection is off.
    public static let disabledReason = "disabled"
    /// Most entries: all of them are stored again with every change.
    public static let most = 10_000

    private var answers: [Key: Bool] = [:]
    /// Apps whose collection is off.
    public private(set) var disabled: Set<String> = []

    /// Nothing is set.
    public init() {}

    /// The answer for an app and a purpose; nil if none was set.
    public subscript(app: String, purpose: String) -> Bool? {
        get { answers.isEmpty ? nil : answers[Key(app: app, purpose: purpose)] }
        set { answers[Key(app: app, purpose: purpose)] = newValue }
    }

    /// Turns collection of an app off or on again.
    public mutating func setDisabled(_ isDisabled: Bool, _ app: String) {
        if isDisabled {
            disabled.insert(app)
        } else {
            disabled.remove(app)
        }
    }

    /// Whether collection of an app is off.
    public func isDisabled(_ app: String) -> Bool { !disabled.isEmpty && disabled.contains(app) }

    /// Whether nothing is set.
    public var isEmpty: Bool { count == 0 }

    /// Number of entries.
    public var count: Int { answers.count + disabled.count }

    /// All answers, by app and purpose.
    public var all: [(key: Key, isGiven: Bool)] {
        answers.sorted { ($0.key.app, $0.key.purpose) < ($1.key.app, $1.key.purpose) }.map {
            ($0.key, $0.value)
        }
    }

    /// Apps whose consent to one of these purposes was withdrawn by command.
    public func withdrawn(from purposes: [String]) -> Set<String> {
        Set(answers.lazy.filter { !$0.value && purposes.contains($0.key.purpose) }.map(\.key.app))
    }

    /// Reads a stored text, by bytes: a blank before a combining mark is not a character of its own. Lines of
    /// another form, which a newer version may write, are ignored.
    public init(_ text: String) {
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            guard let blank = line.firstIndex(of: UInt8(ascii: " ")) else { continue }
            let word = Substring(line[..<blank])
            let rest = line[blank...].dropFirst()
            if word == "disabled" {
                disabled.insert(String(Substring(rest)))
            } else if word == "on" || word == "off", let end = rest.firstIndex(of: UInt8(ascii: " ")) {
                // The app is last, because its name may have spaces.
                self[String(Substring(rest[end...].dropFirst())), String(Substring(rest[..<end]))] =
                    word == "on"
            }
        }
    }

    /// A line for each entry; nil if nothing is set.
    public var text: String? {
        guard !isEmpty else { return nil }
        let lines = all.map { "\($0.isGiven ? "on" : "off") \($0.key.purpose) \($0.key.app)" }
        return (lines + disabled.sorted().map { "disabled \($0)" }).joined(separator: "\n")
    }
}
