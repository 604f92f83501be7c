internal import EventLoops
internal import Model

/// The verdict on a line that was scanned: event or record, name, priority, time.
///
/// The order of the steps matters. Pushes to the data layer leave first: they are not events. Then come name,
/// priority and time, because an expired event counts by its priority. Limits come before sessions and
/// additions, so that a refused event starts no session.
extension EventPass {
    /// Judges the object that the scanner has just read.
    ///
    /// - Parameter next: the offset after the line, for the verdict.
    @inline(__always)
    mutating func judge(_ next: Int) -> Verdict {
        if !edits.isEmpty || !scratch.isEmpty {
            edits.removeAll(keepingCapacity: true)
            scratch.removeAll(keepingCapacity: true)
        }
        if !front.isEmpty {
            front.removeAll(keepingCapacity: true)
        }
        guard kind == .event else { return judgeRecord(next) }

        var type = EventType.other
        if scanner.has(.type) {
            type = eventType()
        }
        if type == .dataLayer { return verdict(.dataLayer, next) }
        // An object without a usable name was not written for us.
        guard scanner.has(.name) && isUsableName || type == .startSession || type == .crash else {
            return judgeRecord(next)
        }
        isRecord = false
        otherIDName = nil
        if !scanner.replaced.isEmpty {
            removeReplaced()
        }

        failure = .quarantined
        guard let name = eventName(type) else { return verdict(failure, next) }
        self.name = name
        let priority = priority(name, type)
        let time = scanner.has(.timestamp) ? eventTime() : timeElsewhere()
        if time < oldest {
            return Verdict(
                kind: .expired, priority: priority, eventTime: time, startsSession: false, next: next)
        }
        if time > newest {
            problem = Problem(
                reason: .timeAhead, limit: nil,
                detail: "the event's time is further ahead than max_time_ahead")
            return verdict(.quarantined, next)
        }
        if hasAddress {
            findAddress()
        }
        guard keepsLimits(name, type) else { return verdict(failure, next) }

        wanted = .usual
        if scanner.present & Additions.members != 0 {
            ownMembers()
        }
        if hasAddress {
            lookUpCountry()
        }
        if time < added.deviceFrom || time >= added.deviceUntil {
            updateDevice(time)
        }
        var startsSession = false
        if block.mode != .off, wanted.contains(.sessionID) || type == .startSession,
            !goesOnWithSession(time, type)
        {
            startsSession = resolveSession(time, type)
        }
        return Verdict(
            kind: .accepted, priority: priority, eventTime: time, startsSession: startsSession, next: next)
    }

    /// A verdict for a line that is not an event: it has no priority and no time.
    @inline(__always)
    mutating func verdict(_ kind: Verdict.Kind, _ next: Int) -> Verdict {
        Verdict(kind: kind, priority: .normal, eventTime: now, startsSession: false, next: next)
    }

    /// The verdict for a line that the scanner could not read, with its failure as the problem. A blank line
    /// is not a problem.
    ///
    /// - Parameter start: where the line begins: the message counts bytes from there.
    @inline(never)
    mutating func unreadable(_ start: Int, _ next: Int) -> Verdict {
        let failure = ScanFailure(code: scanner.failureCode, byte: scanner.failureOffset - start)
        if failure.code == .blank { return verdict(.blank, next) }
        let reason: QuarantineRecord.Reason =
            switch failure.code {
            case .notUTF8: .notUTF8
            case .notAnObject: .notAnObject
            case .tooDeep: .tooDeep
            case .cutShort: .cutShort
            default: .notJSON
            }
        problem = Problem(reason: reason, limit: nil, detail: failure.message)
        return verdict(.quarantined, next)
    }

    /// The verdict for a text that must not leave, because tags could not find in it what they hide.
    mutating func withhold(_ next: Int) -> Verdict {
        problem = Problem(
            reason: .unredactable, limit: nil,
            detail: "text that may contain members, some of which containers hide")
        return verdict(.quarantined, next)
    }

    /// Whether `name` is a string that is not empty.
    @inline(__always)
    private var isUsableName: Bool {
        let member = scanner.member(.name)
        return base[member.value] == .quote && member.end - member.value > 2
    }

    /// The event's `type`, if it has a meaning here.
    @inline(never)
    private mutating func eventType() -> EventType {
        let member = scanner.member(.type)
        if isText(member, "crash") { return .crash }
        if isText(member, "start_session") { return .startSession }
        return isText(member, "data_layer") ? .dataLayer : .other
    }

    /// The event's name as UTF-8 text, valid until the next line. Returns nil, with the problem noted, if the
    /// name passes a limit that does not let it through.
    @inline(__always)
    private mutating func eventName(_ type: EventType) -> UnsafeBufferPointer<UInt8>? {
        if scanner.has(.name) {
            let member = scanner.member(.name)
            if base[member.value] == .quote, member.end - member.value > 2 {
                let raw = UnsafeBufferPointer(
                    start: base + member.value + 1, count: member.end - member.value - 2)
                if !member.isEscaped, limits.nameLength.value == 0 || raw.count <= limits.nameLength.value {
                    return raw
                }
                return unusualName(raw, member)
            }
        }
        return missingName(type)
    }

    /// A name with escapes, or one that may be too long: its length in bytes passes the limit, which counts
    /// UTF-16 code units.
    @inline(never)
    private mutating func unusualName(_ raw: UnsafeBufferPointer<UInt8>, _ member: Member)
        -> UnsafeBufferPointer<
            UInt8
        >?
    {
        var text = raw
        if limits.nameLength.value > 0, let kept = JSONText.cut(raw, toUnits: limits.nameLength.value) {
            guard passes(.nameLength, limits.nameLength) else { return nil }
            if limits.nameLength.consequence == .cut {
                noteCut(.nameLength, 0..<0)
                edits.append(Edit(from: member.value + 1 + kept, to: member.end - 1))
                text = UnsafeBufferPointer(rebasing: raw[0..<kept])
            }
        }
        guard member.isEscaped else { return text }
        return keptName(JSONString.decoded(text)[...])
    }

    /// The name of an event without a usable one, whose type gives the name: `start_session` or `crash`. The
    /// name is added to the event.
    @inline(never)
    private mutating func missingName(_ type: EventType) -> UnsafeBufferPointer<UInt8>? {
        let name = Array((type == .startSession ? "start_session" : "crash").utf8)
        if scanner.has(.name) {
            remove(scanner.member(.name))
        }
        addFront("name") { $0 += [.quote] + name + [.quote] }
        return keptName(name[...])
    }

    /// Copies a name to memory of the pass, where it is valid until the next line.
    mutating func keptName(_ name: ArraySlice<UInt8>) -> UnsafeBufferPointer<UInt8> {
        nameText.removeAll()
        nameText.append(name)
        return UnsafeBufferPointer(start: nameText.start, count: nameText.count)
    }
}
