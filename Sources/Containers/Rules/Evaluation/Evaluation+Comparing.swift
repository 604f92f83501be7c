internal import Events
internal import Model

/// How conditions look at what macros gave.
extension Evaluation {
    /// Whether a condition holds: null holds no predicate but `equals null`; neither does what is nested.
    @inline(__always)
    func compare(_ condition: UnsafePointer<CompiledCondition>) -> Bool {
        let macro = condition.pointee.macro
        if states[firstCompared + macro] == Evaluation.unknown { makeComparable(macro) }
        let value = compared + macro
        guard condition.pointee.isPlainText, value.pointee.kind == .text else {
            if condition.pointee.isPlainOrder, !value.pointee.exact.isNaN {
                return condition.pointee.holdsOrder(value.pointee.exact) != condition.pointee.negate
            }
            if condition.pointee.requiredPairs != .none {
                if !value.pointee.arePairsKnown { notePairs(of: value) }
                if value.pointee.pairs.lacks(condition.pointee.requiredPairs) { return condition.pointee.negate }
            }
            return compareOtherwise(condition)
        }
        let count = value.pointee.count
        let isEqual =
            value.pointee.head == condition.pointee.head && count == condition.pointee.comparand.text.count
            && (count <= 8 || text(of: value).equals(condition.pointee.comparand.text))
        return isEqual != condition.pointee.negate
    }

    @inline(never)
    private func compareOtherwise(_ condition: UnsafePointer<CompiledCondition>) -> Bool {
        guard condition.pointee.comparandMacro < 0 else { return compareWithMacro(condition) }
        return compare(condition, with: condition.pointee.comparand) != condition.pointee.negate
    }

    /// With a comparand that is another macro's: it is read and spelled again, as a constant would be.
    @inline(never)
    private func compareWithMacro(_ condition: UnsafePointer<CompiledCondition>) -> Bool {
        let other = value(ofMacro: condition.pointee.comparandMacro)
        var text = other.text(base) ?? []
        if condition.pointee.ignoreCase { text = text.withUnsafeBufferPointer { Comparand.folded($0) } }
        return text.withUnsafeBufferPointer {
            compare(condition, with: Comparand(other, $0)) != condition.pointee.negate
        }
    }

    @inline(__always)
    private func compare(_ condition: UnsafePointer<CompiledCondition>, with other: Comparand) -> Bool {
        let value = compared + condition.pointee.macro
        switch value.pointee.kind {
        case .null: return condition.pointee.predicate == .equals && other.kind == .null
        case .nested: return false
        case .number, .text: break
        }
        // Where one of them is a number, numbers are compared; two texts are equal by their bytes.
        let comparesNumbers =
            condition.pointee.predicate == .equals && (value.pointee.kind == .number || other.kind == .number)
        if comparesNumbers || condition.pointee.predicate.isOrder {
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

    @inline(__always)
    private func text(of value: UnsafeMutablePointer<ComparedValue>) -> UnsafeBufferPointer<UInt8> {
        value.pointee.isOwn
            ? own(value.pointee.start, value.pointee.count)
            : UnsafeBufferPointer(start: base + value.pointee.start, count: value.pointee.count)
    }

    private func own(_ start: Int, _ count: Int) -> UnsafeBufferPointer<UInt8> {
        let all = texts.bytes
        return UnsafeRawBufferPointer(rebasing: all[start..<start + count]).assumingMemoryBound(to: UInt8.self)
    }

    @inline(__always)
    private func number(of value: UnsafeMutablePointer<ComparedValue>) -> Number? {
        if !value.pointee.isNumberKnown {
            value.pointee.number = Number(text(of: value))
            value.pointee.exact = value.pointee.number?.exactValue ?? .nan
            value.pointee.isNumberKnown = true
        }
        return value.pointee.number
    }

    @inline(never)
    private func notePairs(of value: UnsafeMutablePointer<ComparedValue>) {
        let isSpelled = value.pointee.kind == .text || value.pointee.kind == .number
        value.pointee.pairs = isSpelled ? TextPairs(of: text(of: value)) : .none
        value.pointee.arePairsKnown = true
    }

    @inline(never)
    private func folded(_ value: UnsafeMutablePointer<ComparedValue>) -> UnsafeBufferPointer<UInt8> {
        if !value.pointee.isFolded {
            (value.pointee.foldedStart, value.pointee.foldedCount) = keep(Comparand.folded(text(of: value)))
            value.pointee.isFolded = true
        }
        return own(value.pointee.foldedStart, value.pointee.foldedCount)
    }

    private func keep(_ text: [UInt8]) -> (start: Int, count: Int) {
        let start = texts.count
        text.withUnsafeBytes { texts.append($0) }
        return (start, text.count)
    }

    @inline(never)
    private func makeComparable(_ macro: Int) {
        var value = ComparedValue()
        func spell(_ kind: ComparedValue.Kind, _ text: [UInt8]) {
            value.kind = kind
            value.isOwn = true
            (value.start, value.count) = keep(text)
        }
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
            value.number = Number(held: own)
            value.isNumberKnown = value.number != nil
        }
        compared[macro] = value
        if value.kind == .text { compared[macro].head = ComparedValue.head(of: text(of: compared + macro)) }
        states[firstCompared + macro] = Evaluation.holds
    }
}
