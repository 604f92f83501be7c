/// What a reload changed, for a person: a section that is new or gone is one line, not one for each of its settings.
enum ReloadText {
    /// So many lines of one section are printed as they are.
    private static let most = 4

    /// The changes, each `SECTION.NAME.SETTING before -> after`, with large sections in one line each.
    static func short(_ changes: [String]) -> [String] {
        var counts: [Substring: Int] = [:]
        for change in changes { counts[section(of: change) ?? "", default: 0] += 1 }
        var told: Set<Substring> = []
        return changes.compactMap { change in
            guard let section = section(of: change), let count = counts[section], count > most else { return change }
            guard told.insert(section).inserted else { return nil }
            return "\(section): \(count) settings"
        }
    }

    /// `destination.main` of `destination.main.url`; nil for settings outside such a section.
    private static func section(of change: String) -> Substring? {
        let path = change.prefix { $0 != " " }
        let parts = path.split(separator: ".")
        guard parts.count > 2 else { return nil }
        return path[..<parts[1].endIndex]
    }
}
