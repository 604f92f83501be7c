internal import EventLoops
internal import Model

/// What tags do.
extension RuleEngine {
    /// Evaluates everything that a tag needs, so that missing results are known before any tag acts.
    func workOut(_ action: CompiledTag.Action, _ evaluation: Evaluation) {
        switch action {
        case .sample(_, let key?), .throttle(_, _, _, let key?): _ = evaluation.value(of: key)
        case .set(_, let value, nil): _ = evaluation.value(of: value)
        case .function(_, let parameters), .offer(_, let parameters):
            _ = evaluation.parameters(parameters)
        default: break
        }
    }

    /// Hides in a JSON object everything that tags may redact and hash, regardless of rules. Without its line
    /// feed; nil if it would become too long.
    func hideAll(_ hidden: HiddenMembers, in line: UnsafeRawBufferPointer) -> [UInt8]? {
        editor.begin(line, most: RuleEngine.ceiling(line.count))
        for (paths, hiding) in hidden.actions {
            hide(paths, hiding)
            guard editor.fits() else { return nil }
        }
        return Array(editor.line())
    }

    /// Redacts or hashes members of the present event.
    private func hide(_ paths: [PathSteps], _ hiding: CompiledTag.Hiding) {
        var takesName = true
        let change: PathFinder.Change
        switch hiding {
        case .redact(let text):
            // An event must keep a name: a text of more than its two quotes.
            takesName = text.map { $0.count > 2 } ?? false
            change = if let text { .value { _, _ in text } } else { .cut }
        case .hash(let hashing): change = .value { hashing.replacement($0, $1) }
        case .scrub(let scrubber):
            guard scrubber.mayBe(in: editor.line()) else { return }
            change = .texts(scrubber)
        }
        for path in paths { editor.change(path, change, takesName: takesName) }
    }

    /// Does a tag's action; returns whether it discards the event.
    func act(
        _ action: CompiledTag.Action, _ evaluation: Evaluation, _ container: Int, _ now: Timestamp,
        _ limit: Int,
        _ isChanged: inout Bool
    ) -> Bool {
        switch action {
        case .discard: return true
        case .sample(let rate, let key): return !Sampling.keeps(sampleKey(key, evaluation), rate: rate)
        case .throttle(let throttle, let events, let seconds, let key):
            let hash = Sampling.hash(key.flatMap { evaluation.value(of: $0).text(evaluation.base) } ?? [])
            return !throttles.admit(
                hash, to: container, of: evaluation.app, at: now, throttle: throttle, events: events,
                seconds: seconds
            ) { note(.crowdedThrottle) }
        case .ship(let names): decisions.ship(to: names)
        case .prioritise(let wanted): decisions.prioritise(wanted)
        case .function(let name, let parameters): decisions.call(evaluation.call(name, parameters))
        case .offer(let name, let parameters):
            decisions.offer(
                AppCall(container: evaluation.container.document.id, call: evaluation.call(name, parameters)))
        case .denied: break
        case .hide(_, .scrub(let scrubber)) where !isChanged && !scrubber.mayBe(in: arrived):
            // Nothing in the event matches, as in most: without this it would be copied twice.
            break
        case .set, .rename, .remove, .hide:
            if !isChanged {
                editor.begin(arrived, most: RuleEngine.ceiling(limit))
            }
            isChanged = true
            edit(action, evaluation)
        }
        return false
    }

    /// Changes the present event by a tag.
    private func edit(_ action: CompiledTag.Action, _ evaluation: Evaluation) {
        switch action {
        case .set(let names, let operand, let text):
            if names.count == 1, names[0] == RuleEngine.nameBytes {
                guard case .string(let name) = evaluation.value(of: operand).json(evaluation.base),
                    !name.isEmpty
                else {
                    note(.badName)
                    return
                }
            }
            editor.set(names, to: text ?? evaluation.value(of: operand).jsonText(evaluation.base))
        case .rename(let names, let name): editor.rename(names, to: name)
        case .remove(let paths):
            // An event must keep a name.
            for path in paths { editor.change(path, .cut, takesName: false) }
        case .hide(let paths, let hiding):
            if case .hash(.withoutKey) = hiding {
                note(.missingKey)
            }
            hide(paths, hiding)
        default: break
        }
    }

    /// The key of sampling: the tag's, if it has a value, otherwise the event's id.
    private func sampleKey(_ key: CompiledOperand?, _ evaluation: Evaluation) -> [UInt8] {
        if let key, let text = evaluation.value(of: key).text(evaluation.base) { return text }
        return evaluation.eventID() ?? []
    }
}

/// Which keys belong to a share of all keys: the same on every machine, and those of a smaller share also
/// belong to a larger one.
enum Sampling {
    /// Whether a key belongs to a share (0 to 1).
    static func keeps(_ key: [UInt8], rate: Double) -> Bool { share(key) < rate }

    /// A machine's share in a container's rollouts, from 0 to below 100: those below 10 are the first tenth.
    static func share(of container: String, on host: String) -> Double {
        share("\(container)\n\(host)".bytes) * 100
    }

    /// The share of a key, from 0 to below 1.
    private static func share(_ key: [UInt8]) -> Double { Double(hash(key) >> 11) * 0x1p-53 }

    /// A hash in which each bit of the key counts: FNV-1a (64 bits), then `fmix64` of Appleby's MurmurHash3.
    /// It must not change: machines of different versions must agree.
    static func hash(_ key: [UInt8]) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in key { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        hash = (hash ^ hash >> 33) &* 0xFF51_AFD7_ED55_8CCD
        hash = (hash ^ hash >> 33) &* 0xC4CE_B9FE_1A85_EC53
        return hash ^ hash >> 33
    }
}
