extension Entry {
    /// Where a value is in its section's struct. Rows take it as a closure: a key path costs some 50,000
    /// instructions when it is made, and a start uses a few of the rows only.
    typealias Place<Value> = any WritableKeyPath<Owner, Value> & Sendable

    /// A row for a setting.
    ///
    /// - Parameters:
    ///   - place: the property that holds it; its initial value is the default.
    ///   - why: what it is for and why one would change it, in one line.
    ///   - restart: whether a reload cannot apply it.
    ///   - scope: the destinations that it is for; only in sections of destinations.
    ///   - changesAnswers: whether another value can change the destination's answers.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    static func setting<Value: Equatable & Sendable>(
        _ name: String, _ place: @autoclosure @escaping @Sendable () -> Place<Value>,
        _ type: ValueType<Value>,
        _ why: String,
        example: String? = nil, restart: Bool = false, only scope: DestinationUse.Scope = .all,
        changesAnswers: Bool = true
    ) -> Entry where Owner: SettingsSection {
        let use = DestinationUse(scope: scope, changesAnswers: changesAnswers)
        return Entry(name: name, use: use) {
            .setting(
                SettingDescription(
                    name: name, type: type.name, range: type.range,
                    defaultValue: type.print(Owner()[keyPath: place()]), example: example, why: why,
                    needsRestart: restart))
        } read: { node, path, owner, context in
            // A refused value counts as set. Otherwise it would be reported a second time, as missing.
            context.note(path, at: node.position)
            do throws(Problem) { owner[keyPath: place()] = try type.parse(node) } catch {
                context.refuse(node, path, error, SettingDescription.allowed(type.name, type.range))
            }
        } list: { owner, section in
            let value = type.print(owner[keyPath: place()])
            return [EffectiveSetting(name: name, section: section, value: value, needsRestart: restart)]
        } keep: { started, owner in
            // A reload cannot apply it, so the value with which the agent started stays in force.
            if restart {
                owner[keyPath: place()] = started[keyPath: place()]
            }
        }
    }

    /// A row for a setting that has no value by default.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    static func setting<Value: Equatable & Sendable>(
        _ name: String, _ place: @autoclosure @escaping @Sendable () -> Place<Value?>,
        optional type: ValueType<Value>,
        _ why: String, example: String? = nil, restart: Bool = false, only scope: DestinationUse.Scope = .all,
        changesAnswers: Bool = true
    ) -> Entry where Owner: SettingsSection {
        setting(
            name, place(), type.optional(), why, example: example, restart: restart, only: scope,
            changesAnswers: changesAnswers)
    }

    /// A row for a section that occurs once: `[name]`.
    ///
    /// - Parameters:
    ///   - other: the section that lists the same keys, if one does.
    ///   - isOn: a property that the section sets to true, unless an earlier file has turned it off. `name =
    ///     true` sets it alone, `name = false` turns it off.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    static func section<Section: SettingsSection>(
        _ name: String, _ place: @autoclosure @escaping @Sendable () -> Place<Section>, _ why: String,
        only scope: DestinationUse.Scope = .all, sameKeysAs other: String? = nil,
        isOn: (@Sendable () -> any WritableKeyPath<Section, Bool?> & Sendable)? = nil
    ) -> Entry {
        Entry(name: name, use: DestinationUse(scope: scope)) {
            Section.described(name, .once, why, sameKeysAs: other)
        } read: { node, path, owner, context in
            context.note(path, at: node.position)
            if let isOn {
                if case .boolean(let value) = node.value {
                    owner[keyPath: place()][keyPath: isOn()] = value
                    return
                }
                // Only a word turns a section on that an earlier file has turned off: a later file may say
                // how it is read without knowing whether.
                owner[keyPath: place()][keyPath: isOn()] = owner[keyPath: place()][keyPath: isOn()] ?? true
            }
            owner[keyPath: place()].read(node, path: path, context: &context)
        } list: { owner, section in
            owner[keyPath: place()].effective(in: section.section(name))
        } keep: { started, owner in
            owner[keyPath: place()] = owner[keyPath: place()].keeping(started[keyPath: place()])
        }
    }

    /// A row for a setting of two values: `name = { max = 256, beyond = "cut" }`. The first may be written
    /// alone, `name = 256`. What a later file does not set keeps its value.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    static func pair(
        _ name: String, _ first: Half, _ second: Half, _ why: String,
        example: String? = nil, restart: Bool = false, only scope: DestinationUse.Scope = .all,
        changesAnswers: Bool = true
    ) -> Entry where Owner: SettingsSection {
        let print = { @Sendable (owner: Owner) -> SettingValue? in
            guard let other = second.value(owner) else { return first.value(owner) }
            let members = [(first.name, first.value(owner)), (second.name, other)]
            return .table(members.compactMap { name, value in value.map { .init(name: name, value: $0) } })
        }
        return Entry(name: name, use: DestinationUse(scope: scope, changesAnswers: changesAnswers)) {
            .setting(
                SettingDescription(
                    name: name, type: first.type,
                    range: (first.range.isEmpty ? "" : "\(first.range); ")
                        + "or { \(first.name), \(second.name) }, \(second.name):"
                        + " \(SettingDescription.allowed(second.type, second.range))",
                    defaultValue: print(Owner()), example: example, why: why, needsRestart: restart,
                    halves: [first.name, second.name]))
        } read: { node, path, owner, context in
            context.note(path, at: node.position)
            guard case .table(let members) = node.value else {
                return first.read(node, path, path, &owner, &context)
            }
            for member in members {
                let place = "\(path).\(member.key)"
                switch member.key {
                case first.name: first.read(member.node, path, place, &owner, &context)
                case second.name: second.read(member.node, path, place, &owner, &context)
                default:
                    context.add(
                        .unknownKey,
                        "\(path) has no \(member.key); it has \(first.name) and \(second.name)",
                        at: member.keyPosition)
                }
            }
        } list: { owner, section in
            [EffectiveSetting(name: name, section: section, value: print(owner), needsRestart: restart)]
        } keep: { started, owner in
            guard restart else { return }
            first.keep(started, &owner)
            second.keep(started, &owner)
        }
    }

    /// One of the two values of a pair.
    ///
    /// Its type is hidden behind functions: otherwise the compiler writes `pair` once for every two types,
    /// which was half a megabyte of the program.
    struct Half: Sendable {
        /// The member's name.
        let name: String
        /// The names of its type and of the values that are allowed, for the documentation and for messages.
        let type: String
        let range: String
        /// The value as it is written; nil if it is not set.
        let value: @Sendable (Owner) -> SettingValue?
        /// Reads it: a node, the pair's path, and the path as it is written, for messages.
        let read: @Sendable (TOMLNode, String, String, inout Owner, inout ReadContext) -> Void
        /// Sets it to its value at the start.
        let keep: @Sendable (_ started: Owner, _ owner: inout Owner) -> Void

        @_semantics("optimize.sil.specialize.generic.never") @inline(never)
        init<Value: Equatable & Sendable>(
            _ name: String, _ place: @autoclosure @escaping @Sendable () -> Place<Value>,
            _ type: ValueType<Value>
        ) {
            self.name = name
            self.type = type.name
            range = type.range
            value = { owner in type.print(owner[keyPath: place()]) }
            read = { node, path, whole, owner, context in
                context.note("\(path).\(name)", at: node.position)
                do throws(Problem) { owner[keyPath: place()] = try type.parse(node) } catch {
                    context.refuse(node, whole, error, SettingDescription.allowed(type.name, type.range))
                }
            }
            keep = { started, owner in owner[keyPath: place()] = started[keyPath: place()] }
        }

        /// A value that is not set by default.
        @_semantics("optimize.sil.specialize.generic.never") @inline(never)
        init<Wrapped: Equatable & Sendable>(
            _ name: String, _ place: @autoclosure @escaping @Sendable () -> Place<Wrapped?>,
            optional type: ValueType<Wrapped>
        ) {
            self.init(name, place(), type.optional())
        }
    }

    /// A row for a section that occurs any number of times: `[[name]]`, distinguished by the text of the key
    /// `key`, or by number.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    static func list<Section: SettingsSection>(
        _ name: String, _ place: @autoclosure @escaping @Sendable () -> Place<[Section]>,
        key: String, _ type: ValueType<String>, _ identity: @escaping @Sendable (Section) -> String,
        _ why: String
    ) -> Entry {
        Entry(name: name) {
            Section.described(name, .list(key: key), why)
        } read: { node, path, owner, context in
            guard case .array(let nodes) = node.value else {
                // `[destination]` instead of `[[destination]]`: a frequent mistake.
                context.add(.wrongType, "\(path) must be written [[\(path)]]", at: node.position)
                return
            }
            for node in nodes {
                var section = Section()
                var elementPath = "\(path).\(owner[keyPath: place()].count + 1)"
                // An element whose name is refused is identified by its number.
                if let named = node[key], let text = try? type.parse(named) {
                    elementPath = "\(path).\(SettingValue.key(text))"
                    // Metrics and commands name elements. Two elements of one name could not be
                    // distinguished, so the second one is left out.
                    if let first = context.origins[elementPath] {
                        context.add(
                            .conflict, "\(path) \(SettingValue.quote(text)) exists already (\(first))",
                            at: named.position)
                        continue
                    }
                }
                context.note(elementPath, at: node.position)
                section.read(node, path: elementPath, context: &context)
                owner[keyPath: place()].append(section)
            }
        } list: { owner, parent in
            owner[keyPath: place()].enumerated().flatMap { index, section in
                let identity = identity(section)
                let element = identity.isEmpty ? "\(index + 1)" : SettingValue.key(identity)
                return section.effective(in: parent.element(element, of: name))
            }
        } keep: { started, owner in
            for (index, section) in owner[keyPath: place()].enumerated() {
                let old = started[keyPath: place()].first { identity($0) == identity(section) }
                guard let old else { continue }
                owner[keyPath: place()][index] = section.keeping(old)
            }
        }
    }

    /// A row for a section that occurs once for each name: `[name.NAME]`.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    static func named<Section: SettingsSection>(
        _ name: String, _ place: @autoclosure @escaping @Sendable () -> Place<[String: Section]>,
        _ why: String
    ) -> Entry {
        Entry(name: name) {
            Section.described(name, .named, why)
        } read: { node, path, owner, context in
            guard case .table(let members) = node.value else {
                context.add(.wrongType, "\(path) must be written [\(path).NAME]", at: node.position)
                return
            }
            for member in members {
                let elementPath = "\(path).\(SettingValue.key(member.key))"
                // A section may be in several files: its first position is its origin.
                if context.origins[elementPath] == nil {
                    context.note(elementPath, at: member.keyPosition ?? member.node.position)
                }
                owner[keyPath: place()][member.key, default: Section()]
                    .read(member.node, path: elementPath, context: &context)
            }
        } list: { owner, parent in
            owner[keyPath: place()].sorted { $0.key < $1.key }.flatMap { key, section in
                section.effective(in: parent.section(name).section(SettingValue.key(key)))
            }
        } keep: { started, owner in
            for (key, section) in owner[keyPath: place()] {
                owner[keyPath: place()][key] = section.keeping(started[keyPath: place()][key] ?? Section())
            }
        }
    }
}

extension Entry where Owner: SettingsSection {
    /// The row of a case's setting as a row of the whole.
    ///
    /// In a whole of another case the value is judged, reported as a mistake, and forgotten: it was meant for
    /// another destination, or the type or format is wrong. A default that is written out does no harm, so
    /// values are compared.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    func inside<Whole>(_ place: SettingsCase<Whole, Owner>) -> Entry<Whole> {
        var row = Entry<Whole>(
            name: name, use: use.inside(DestinationUse(scope: place.scope)), describe: describe,
            read: { [name, read, list] node, path, whole, context in
                if var part = place.part(whole) {
                    read(node, path, &part, &context)
                    return place.put(part, &whole)
                }
                var part = Owner()
                read(node, path, &part, &context)
                context.complain(
                    of: list(part, .root), unlike: list(Owner(), .root), path, name, only: place.scope)
            },
            list: { [list] whole, section in
                if let part = place.part(whole) { return list(part, section) }
                return EffectiveSetting.foreign(list(Owner(), section))
            },
            keep: { [keep] started, whole in
                guard let old = place.part(started), var part = place.part(whole) else { return }
                keep(old, &part)
                place.put(part, &whole)
            })
        if let renamed {
            row.renamed = { renamed(place.part($0) ?? Owner()) }
        }
        return row
    }

    /// The row of a section that only one case has: `[destination.s3]`.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    static func section<Part>(_ name: String, of place: SettingsCase<Owner, Part>, _ why: String) -> Entry {
        Entry<Part>.section(name, \.self, why).inside(place)
    }
}

// What rows of cases share, without the case's type: otherwise the compiler writes it once for each row.
extension ReadContext {
    /// Reports the values of another case's setting that are not the defaults.
    ///
    /// - Parameters:
    ///   - path: path of the row, whose key is `name`.
    ///   - scope: the destinations that the setting is for.
    fileprivate mutating func complain(
        of settings: [EffectiveSetting], unlike defaults: [EffectiveSetting], _ path: String, _ name: String,
        only scope: DestinationUse.Scope
    ) {
        for (setting, unset) in zip(settings, defaults) where setting.value != unset.value {
            complain(of: "\(path)\(setting.path.dropFirst(name.count))", "is for \(scope.text) only")
        }
    }
}

extension EffectiveSetting {
    /// These settings as those of another type or format.
    fileprivate static func foreign(_ settings: [EffectiveSetting]) -> [EffectiveSetting] {
        settings.map { setting in
            var setting = setting
            setting.isForeign = true
            return setting
        }
    }
}
