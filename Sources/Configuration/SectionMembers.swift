/// The members of a section as they are written, each with the row that reads it.
///
/// `SettingsSection.read` leaves to this type what does not depend on the section's type. Otherwise the
/// compiler would write it once for each of some forty sections.
struct SectionMembers {
    /// What is known of a row before it reads anything.
    struct Row {
        /// The key.
        let name: String
        /// Whether it is a key of older configurations.
        let isOld: Bool
    }

    /// A member and its row.
    struct Member {
        /// Index of the member in the table.
        let index: Int
        /// Index of its row; nil if no row has its key.
        let row: Int?
        let node: TOMLNode
        /// Path of the setting.
        let path: String
    }

    private let path: String
    private let rows: [Row]
    private let written: [TOMLNode.Member]
    /// Members with a key of today or an unknown one, in the order in which they are read.
    private(set) var current: [Member] = []
    /// Members with an old key.
    private(set) var old: [Member] = []
    /// Keys of today whose values were refused, or a value in them.
    private var refused: Set<String> = []

    /// Nil, with a problem, if the node is no table.
    ///
    /// - Parameter deciding: keys that are read before the others, in this order.
    init?(
        _ node: TOMLNode, _ path: String, _ rows: [Row], first deciding: [String],
        _ context: inout ReadContext
    ) {
        guard case .table(let members) = node.value else {
            context.add(.wrongType, "\(path) must be a section, not \(node.kind)", at: node.position)
            return nil
        }
        self.path = path
        self.rows = rows
        written =
            deciding.isEmpty
            ? members
            : deciding.flatMap { key in members.filter { $0.key == key } }
                + members.filter { !deciding.contains($0.key) }
        for (index, member) in written.enumerated() where member.key != TOMLText.unreadableSection {
            let row = rows.firstIndex { $0.name == member.key }
            let isOld = row.map { rows[$0].isOld } ?? false
            let key = isOld ? member.key : SettingValue.key(member.key)
            let found = Member(
                index: index, row: row, node: member.node,
                path: path.isEmpty ? member.key : "\(path).\(key)")
            if isOld {
                old.append(found)
            } else {
                current.append(found)
            }
        }
    }

    /// Adds the problem with a member that has no row.
    func refuse(_ member: Member, _ context: inout ReadContext) {
        let key = written[member.index]
        let known = rows.filter { !$0.isOld }.map(\.name)
        context.add(.unknownKey, unknownKey(key.key, path: path, known: known), at: key.keyPosition)
    }

    /// Remembers whether a member was refused.
    ///
    /// - Parameter count: how many problems there were before it was read.
    mutating func judge(_ member: Member, after count: Int, _ context: ReadContext) {
        if context.problems.dropFirst(count).contains(where: { $0.severity == .error }) {
            refused.insert(written[member.index].key)
        }
    }

    /// Notes how the lines of old keys are written now, and refuses an old key beside its new one: the value
    /// of one of them would be lost without a word. Beside a new key that was refused nothing is said: that
    /// mistake decides what the new line is.
    ///
    /// - Parameter settings: the section's values in force.
    func note(
        _ renamed: [(member: Int, now: String)], in settings: [EffectiveSetting],
        _ context: inout ReadContext
    ) {
        var renamed = renamed
        renamed.removeAll { refused.contains(String($0.now.prefix { $0 != "." })) }
        renamed.removeAll { index, now in
            guard let new = newKey(now, settings) else { return false }
            let old = written[index].key
            let whole = path.isEmpty ? old : "\(path).\(old)"
            context.add(
                .conflict, "\(whole) is the old key of \(new), which is set, too; remove \(old)",
                at: written[index].keyPosition)
            return true
        }
        for (index, now) in renamed { context.moveOrigin(of: written[index].key, to: now, path: path) }
        let whole = Set(renamed.map(\.now))
        for (index, now) in renamed {
            context.noteRenaming(
                of: written[index], to: now, whole: whole, beside: written, in: settings, path: path)
        }
    }

    /// The new key by which a member sets the same value as an old key; nil if none does. A single value in
    /// place of a pair is the pair's first value.
    ///
    /// - Parameters:
    ///   - now: the old key's new one, as a path in the section.
    ///   - settings: the section's values in force.
    private func newKey(_ now: String, _ settings: [EffectiveSetting]) -> String? {
        let keys = now.split(separator: ".").map(String.init)
        guard var node = written.first(where: { $0.key == keys[0] })?.node else { return nil }
        var path = keys[0]
        for key in keys.dropFirst() {
            let value = settings.first { $0.path == path }?.value
            guard case .table = node.value else {
                // A pair of which only the first value is in force: the old key has just set it.
                guard case .table(let pair) = value else { return value == nil ? nil : path }
                return pair.first?.name == key ? path : nil
            }
            var name = key
            // `batch_on_size` is a value of the first half, and neither half's name.
            if case .table(let pair) = value, !pair.contains(where: { $0.name == key }) {
                name = pair.first?.name ?? key
            }
            guard let inner = node[name] else { return nil }
            node = inner
            path += ".\(name)"
        }
        return path
    }
}

/// The message for a key that does not exist, with what may have been meant: a key of this section, or one of
/// another.
private func unknownKey(_ key: String, path: String, known: [String]) -> String {
    let message = "no setting \(key)\(path.isEmpty ? "" : " in [\(path)]"); "
    if let near = nearestName(to: key, among: known) { return "\(message)did you mean \(near)?" }
    let others = Settings.description.filter { $0.name != path }
    if let other = others.first(where: { $0.entries.contains { $0.name == key } }) {
        return "\(message)it belongs in \(other.heading())"
    }
    if path.isEmpty { return "\(message)sections are \(known.joined(separator: ", "))" }
    return "\(message)`spoolship help configuration` lists all"
}
