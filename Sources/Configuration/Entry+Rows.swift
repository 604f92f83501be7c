extension Entry {
    /// A setting: its key, its place in the struct, what it may be, what it is for and why one would change it; `only` and
    /// `changesAnswers` are of destinations.
    static func setting<Value: Equatable & Sendable>(
        _ name: String, _ place: any WritableKeyPath<Owner, Value> & Sendable, _ type: ValueType<Value>, _ why: String,
        example: String? = nil, restart: Bool = false, only scope: DestinationUse.Scope = .all,
        changesAnswers: Bool = true
    ) -> Entry where Owner: SettingsSection {
        let use = DestinationUse(scope: scope, changesAnswers: changesAnswers)
        let description = SettingDescription(
            name: name, type: type.name, range: type.range, defaultValue: type.print(Owner()[keyPath: place]),
            example: example, why: why, needsRestart: restart)
        return Entry(description: .setting(description), use: use) { node, path, owner, context in
            // A value that is refused counts as set: nothing more is said of it.
            context.note(path, at: node.position)
            do throws(Problem) { owner[keyPath: place] = try type.parse(node) } catch {
                // What a variable holds may be a secret that was put in the wrong place.
                let message =
                    node.isFromEnvironment
                    ? "is invalid (its value comes from the environment and is not shown); must be \(description.allowed)"
                    : error.message
                context.add(error.code, "\(path) \(message)", at: error.position ?? node.position)
            }
        } list: { owner, section in
            let value = type.print(owner[keyPath: place])
            return [EffectiveSetting(name: name, section: section, value: value, needsRestart: restart)]
        }
    }

    /// A setting that has no value by default.
    static func setting<Value: Equatable & Sendable>(
        _ name: String, _ place: any WritableKeyPath<Owner, Value?> & Sendable, optional type: ValueType<Value>,
        _ why: String, example: String? = nil, restart: Bool = false, only scope: DestinationUse.Scope = .all,
        changesAnswers: Bool = true
    ) -> Entry where Owner: SettingsSection {
        setting(
            name, place, type.optional(), why, example: example, restart: restart, only: scope,
            changesAnswers: changesAnswers)
    }

    /// A section that occurs once: `[name]`.
    static func section<Section: SettingsSection>(
        _ name: String, _ place: any WritableKeyPath<Owner, Section> & Sendable, _ why: String,
        only scope: DestinationUse.Scope = .all
    ) -> Entry {
        Entry(description: Section.described(name, .once, why), use: DestinationUse(scope: scope)) {
            node, path, owner, context in
            context.note(path, at: node.position)
            owner[keyPath: place].read(node, path: path, context: &context)
        } list: { owner, section in
            owner[keyPath: place].effective(in: section.section(name))
        }
    }

    /// A section that occurs once for each: `[[name]]`, distinguished by the text of one of its keys, or by number.
    static func list<Section: SettingsSection>(
        _ name: String, _ place: any WritableKeyPath<Owner, [Section]> & Sendable,
        key: String, _ type: ValueType<String>, _ identity: @escaping @Sendable (Section) -> String, _ why: String
    ) -> Entry {
        Entry(description: Section.described(name, .list(key: key), why)) { node, path, owner, context in
            guard case .array(let nodes) = node.value else {
                context.add(.wrongType, "\(path) must be written [[\(path)]]", at: node.position)
                return
            }
            for node in nodes {
                var section = Section()
                var elementPath = "\(path).\(owner[keyPath: place].count + 1)"
                // A name that is refused names nothing: such an element goes by its number.
                if let named = node[key], let text = try? type.parse(named) {
                    elementPath = "\(path).\(SettingValue.key(text))"
                    if let first = context.origins[elementPath] {
                        context.add(
                            .conflict, "\(path) \(SettingValue.quote(text)) exists already (\(first))",
                            at: named.position)
                        continue
                    }
                }
                context.note(elementPath, at: node.position)
                section.read(node, path: elementPath, context: &context)
                owner[keyPath: place].append(section)
            }
        } list: { owner, parent in
            owner[keyPath: place].enumerated().flatMap { index, section in
                let identity = identity(section)
                let element = identity.isEmpty ? "\(index + 1)" : SettingValue.key(identity)
                return section.effective(in: parent.element(element, of: name))
            }
        }
    }

    /// A section that occurs once for each name: `[name.NAME]`.
    static func named<Section: SettingsSection>(
        _ name: String, _ place: any WritableKeyPath<Owner, [String: Section]> & Sendable, _ why: String
    ) -> Entry {
        Entry(description: Section.described(name, .named, why)) { node, path, owner, context in
            guard case .table(let members) = node.value else {
                context.add(.wrongType, "\(path) must be written [\(path).NAME]", at: node.position)
                return
            }
            for member in members {
                let elementPath = "\(path).\(SettingValue.key(member.key))"
                if context.origins[elementPath] == nil {
                    context.note(elementPath, at: member.keyPosition ?? member.node.position)
                }
                owner[keyPath: place][member.key, default: Section()]
                    .read(member.node, path: elementPath, context: &context)
            }
        } list: { owner, parent in
            owner[keyPath: place].sorted { $0.key < $1.key }.flatMap { key, section in
                section.effective(in: parent.section(name).section(SettingValue.key(key)))
            }
        }
    }
}
