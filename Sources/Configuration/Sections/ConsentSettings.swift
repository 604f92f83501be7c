public import Model

/// The types of the settings of consent: the `purpose` of a destination, and the `consent` of an app.
enum ConsentSettings {
    /// The word that stands for all purposes in `consent`, so no purpose may have this name.
    static let all = "all"

    /// A purpose, or a list of them.
    static let purposes = oneOrMore(word: purpose(allows: []))

    /// Purposes for which consent is needed, or `all`.
    static let needs = oneOrMore(word: purpose(allows: [all]))

    /// The name of a purpose. It is a word of commands and a member of events.
    private static func purpose(allows others: Set<String>) -> ValueType<String> {
        .checked(
            "purpose", range: "a-z, 0-9, _ and -, at most 40",
            mustBe: "1 to 40 of a-z, 0-9, _ and -" + (others.isEmpty ? ", and not all" : "")
        ) { name in isPurpose(name) || others.contains(name) }
    }

    /// Whether a word may name a purpose.
    static func isPurpose(_ name: String) -> Bool {
        (1...40).contains(name.utf8.count) && name.hasOnlyLettersDigits(and: "-_")
            && name.lowercased() == name && name != all
    }

    /// A word, or a list of different words. One word is printed alone, as it is usually written.
    private static func oneOrMore(word: ValueType<String>) -> ValueType<[String]> {
        let list = ValueType<[String]>.list(of: word, count: 1...64, unique: true)
        return ValueType("\(word.name), or a list", range: word.range) { node throws(Problem) in
            guard case .string = node.value else { return try list.parse(node) }
            return [try word.parse(node)]
        } print: { words in
            words.count == 1 ? words.first.flatMap { word.print($0) } : list.print(words)
        }
    }
}

extension ConsentRules {
    /// Which events may go to which destinations by a configuration and by commands; nil if all may go
    /// everywhere.
    public init?(_ settings: Settings, _ states: ConsentStates = ConsentStates()) {
        self.init(purposes: [:], states: states)
        for destination in settings.destinations {
            purposes[DestinationName(destination.name)] = destination.purposes
        }
        guard !isIdle else { return nil }
        for (name, app) in settings.apps {
            needs[name] = app.consent.map {
                $0.contains(ConsentSettings.all) ? .all : .purposes(Set($0))
            }
        }
    }
}
