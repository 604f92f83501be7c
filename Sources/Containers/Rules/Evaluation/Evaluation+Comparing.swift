internal import Events
internal import Model

/// How conditions compare the values of macros.
extension Evaluation {
    /// Whether a condition holds. For null only `equals null` holds; for objects and lists nothing does.
    @inline(__always)
    func compare(_ condition: UnsafePointer<CompiledCondition>) -> Bool {
        let macro = condition.pointee.macro
        // A value is prepared when the first condition needs it, and stays so for all others of this event.
        if states[firstCompared + macro] == Evaluation.unknown {
            makeComparable(macro)
        }
        let value = compared + macro
        // The usual case is a text that is compared with a constant. It is decided by the first eight bytes
        // and the length; only longer texts are read from the line.
        guard condition.pointee.isPlainText, value.pointee.kind == .text else {
            // Numbers that a double holds exactly are compared as doubles, without digits.
            if condition.pointee.isPlainOrder, !value.pointee.exact.isNaN {
                return condition.pointee.holdsOrder(value.pointee.exact) != condition.pointee.negate
            }
            // A text that does not have all pairs of neighbouring bytes that the condition requires cannot
            // fulfil it, which decides without a search.
            if condition.pointee.requiredPairs != .none {
                if !value.pointee.arePairsKnown {
                    notePairs(of: value)
                }
                if value.pointee.pairs.lacks(condition.pointee.requiredPairs) {
                    return condition.pointee.negate
                }
            }
            return compareOtherwise(condition)
        }
        let count = value.pointee.count
        let isEqual =
            value.pointee.head == condition.pointee.head && count == condition.pointee.comparand.text.count
            && (count <= 8 || text(of: value).equals(condition.pointee.comparand.text))
        return isEqual != condition.pointee.negate
    }

    /// Compares in the less common ways.
    @inline(never)
    private func compareOtherwise(_ condition: UnsafePointer<CompiledCondition>) -> Bool {
        guard condition.pointee.comparandMacro < 0 else { return compareWithMacro(condition) }
        return compare(condition, with: condition.pointee.comparand) != condition.pointee.negate
    }

    /// Compares with the value of another macro, which is turned into text as a constant would be.
    @inline(never)
    private func compareWithMacro(_ condition: UnsafePointer<CompiledCondition>) -> Bool {
        let other = value(ofMacro: condition.pointee.comparandMacro)
        var text = other.text(base) ?? []
        if condition.pointee.ignoreCase {
            text = text.withUnsafeBufferPointer { Comparand.folded($0) }
        }
        return text.withUnsafeBufferPointer {
            compare(condition, with: Comparand(other, $0)) != condition.pointee.negate
        }
    }

    /// Compares a condition's macro with a value.
    @inline(__always)
    private func compare(_ condition: UnsafePointer<CompiledCondition>, with other: Comparand) -> Bool {
        let value = compared + condition.pointee.macro
        switch value.pointee.kind {
        case .null: return condition.pointee.predicate == .equals && other.kind == .null
        case .nested: return false
        case .number, .text: break
        }
        // If one of them is a number, numbers are compared (`"5" == 5` holds): apps write numbers as texts
        // and the other way round. Two texts are equal by their bytes.
        let comparesNumbers =
            condition.pointee.predicate == .equals && (value.pointee.kind == .number || other.kind == .number)
        if comparesNumbers || condition.pointee.predicate.isOrder {
            // A text that is not a number has no order.
            guard let number = number(of: value), let wanted = other.number else { return false }
            let order = number.order(text(of: value), to: wanted, other.text)
            return comparesNumbers ? order == 0 : condition.pointee.holdsOrder(order)
        }
        if condition.pointee.isFolded {
            guard other.isScalar else { return false }
            return condition.pointee.compare(folded(value), with: other)
        }
        return condition.pointee.compare(text(of: value), with: other)
    }

    /// The text of a value.
    @inline(__always)
    private func text(of value: UnsafeMutablePointer<ComparedValue>) -> UnsafeBufferPointer<UInt8> {
        value.pointee.isOwn
            ? own(value.pointee.start, value.pointee.count)
            : UnsafeBufferPointer(start: base + value.pointee.start, count: value.pointee.count)
    }

    /// A text in the evaluation's own storage.
    private func own(_ start: Int, _ count: Int) -> UnsafeBufferPointer<UInt8> {
        let all = texts.bytes
        return UnsafeRawBufferPointer(rebasing: all[start..<start + count]).assumingMemoryBound(
            to: UInt8.self)
    }

    /// The number that a value's text spells, computed at most once.
    // NaN marks a text that is not a number, and a number that no double holds exactly.
    @inline(__always)
    private func number(of value: UnsafeMutablePointer<ComparedValue>) -> Number? {
        if !value.pointee.isNumberKnown {
            value.pointee.number = Number(text(of: value))
            value.pointee.exact = value.pointee.number?.exactValue ?? .nan
            value.pointee.isNumberKnown = true
        }
        return value.pointee.number
    }

    /// Computes the pairs of a value's text.
    @inline(never)
    private func notePairs(of value: UnsafeMutablePointer<ComparedValue>) {
        let isSpelled = value.pointee.kind == .text || value.pointee.kind == .number
        value.pointee.pairs = isSpelled ? TextPairs(of: text(of: value)) : .none
        value.pointee.arePairsKnown = true
    }

    /// The folded text of a value, computed at most once.
    @inline(never)
    private func folded(_ value: UnsafeMutablePointer<ComparedValue>) -> UnsafeBufferPointer<UInt8> {
        if !value.pointee.isFolded {
            (value.pointee.foldedStart, value.pointee.foldedCount) = storeText(
                Comparand.folded(text(of: value)))
            value.pointee.isFolded = true
        }
        return own(value.pointee.foldedStart, value.pointee.foldedCount)
    }

    /// Stores a text; returns its range.
    private func storeText(_ text: [UInt8]) -> (start: Int, count: Int) {
        let start = texts.count
        text.withUnsafeBytes { texts.append($0) }
        return (start, text.count)
    }

    /// Prepares a macro's value for comparisons.
    @inline(never)
    private func makeComparable(_ macro: Int) {
        var value = ComparedValue()
        // For a value that is not part of the line: stores its text here.
        func spell(_ kind: ComparedValue.Kind, _ text: [UInt8]) {
            value.kind = kind
            value.isOwn = true
            (value.start, value.count) = storeText(text)
        }
        // For a value that is part of the line: refers to its bytes there.
        func point(_ kind: ComparedValue.Kind, _ range: Range<Int>) {
            value.kind = kind
            value.start = range.lowerBound
            value.count = range.count
        }
        switch self.value(ofMacro: macro) {
        case .null, .value(.null): value.kind = .null
        case .text(let range): point(.text, range)
        case .number(let range): point(.number, range)
        case .nested, .value(.array), .value(.object): value.kind = .nested
        case .bool(let truth), .value(.bool(let truth)): spell(.text, (truth ? "true" : "false").bytes)
        case .value(.string(let text)): spell(.text, text.bytes)
        case .value(.integer(let number)): spell(.number, "\(number)".bytes)
        case .value(let own):
            spell(.number, own.description.bytes)
            value.number = Number(inexact: own)
            value.isNumberKnown = value.number != nil
        }
        compared[macro] = value
        if value.kind == .text {
            compared[macro].head = ComparedValue.head(of: text(of: compared + macro))
        }
        states[firstCompared + macro] = Evaluation.holds
    }
}
