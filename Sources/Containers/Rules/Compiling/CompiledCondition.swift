internal import CRE2
internal import Glibc

/// A condition made ready: the macro by its place, the comparand in the forms that comparing needs.
///
/// Without references of its own, so that none is counted for each condition of each event: the compiled container owns
/// what it points to.
struct CompiledCondition {
    let macro: Int
    /// Whether it asks for just this text: what most conditions do, in documents that look at every event.
    let isPlainText: Bool
    /// Whether it compares numbers with `limit`.
    let isPlainOrder: Bool
    /// Of a plain order: whether it holds below the limit, at it, and above it.
    let order: (below: Bool, equal: Bool, above: Bool)
    let limit: Double
    /// The comparand's text, its first bytes as one number.
    let head: UInt64
    /// What a text must have for the condition to hold, before it is negated; none when only a look at it tells.
    let requiredPairs: TextPairs
    let predicate: Condition.Predicate
    let negate: Bool
    let ignoreCase: Bool
    let comparand: Comparand
    /// The macro that gives the comparand; negative for a constant.
    let comparandMacro: Int
    let expression: Unmanaged<Expression>?

    init(_ draft: ContainerCompiler.ConditionDraft, _ comparand: Comparand) {
        macro = draft.macro
        (predicate, negate, ignoreCase) =
            (draft.condition.predicate, draft.condition.negate, draft.condition.ignoreCase)
        self.comparand = comparand
        let comparandMacro = draft.comparandMacro
        self.comparandMacro = comparandMacro ?? -1
        expression = draft.expression.map { Unmanaged.passUnretained($0) }
        isPlainText = predicate == .equals && !ignoreCase && comparandMacro == nil && comparand.kind == .string
        head = ComparedValue.head(of: comparand.text)
        let limit = comparandMacro == nil && predicate.isOrder ? comparand.number?.exactValue : nil
        isPlainOrder = limit != nil
        self.limit = limit ?? 0
        requiredPairs =
            switch predicate {
            case .contains where comparandMacro == nil && comparand.kind == .string:
                TextPairs(requiredBy: comparand.text)
            case .matches: draft.expression?.requiredPairs ?? .none
            default: .none
            }
        order = (
            below: predicate == .less || predicate == .lessOrEqual,
            equal: predicate == .lessOrEqual || predicate == .greaterOrEqual,
            above: predicate == .greater || predicate == .greaterOrEqual
        )
    }

    /// Whether the text must be folded first.
    @inline(__always) var isFolded: Bool { ignoreCase && predicate != .matches && !predicate.isOrder }

    /// Whether a macro's spelled text, in small letters where the condition folds, holds a predicate of texts.
    @inline(__always)
    func compare(_ text: UnsafeBufferPointer<UInt8>, with other: Comparand) -> Bool {
        switch predicate {
        case .equals: other.isScalar && text.equals(other.text)
        case .startsWith: other.kind == .string && text.begins(with: other.text)
        case .endsWith: other.kind == .string && text.ends(with: other.text)
        case .contains: other.kind == .string && text.contains(other.text)
        case .matches: finds(in: text)
        case .less, .lessOrEqual, .greater, .greaterOrEqual: false
        }
    }

    @inline(never)
    private func finds(in text: UnsafeBufferPointer<UInt8>) -> Bool {
        expression?._withUnsafeGuaranteedRef { $0.finds(in: text) } ?? false
    }

    @inline(__always)
    func holdsOrder(_ number: Double) -> Bool {
        number < limit ? order.below : number > limit ? order.above : order.equal
    }

    /// Whether an order that was found holds the predicate, for those that compare numbers.
    @inline(__always)
    func holdsOrder(_ found: Int) -> Bool { found < 0 ? order.below : found > 0 ? order.above : order.equal }
}

extension Condition.Predicate {
    @inline(__always)
    var isOrder: Bool { self == .less || self == .lessOrEqual || self == .greater || self == .greaterOrEqual }

    /// How dear it is to look at, roughly.
    var cost: Int {
        switch self {
        case .equals, .startsWith, .endsWith: 0
        case .less, .lessOrEqual, .greater, .greaterOrEqual: 1
        case .contains: 2
        case .matches: 3
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    @inline(__always)
    func equals(_ other: UnsafeBufferPointer<UInt8>) -> Bool { count == other.count && begins(with: other) }

    @inline(__always)
    fileprivate func begins(with part: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count >= part.count else { return false }
        guard let start = baseAddress, let other = part.baseAddress, !part.isEmpty else { return part.isEmpty }
        return start[0] == other[0] && memcmp(start, other, part.count) == 0
    }

    @inline(__always)
    fileprivate func ends(with part: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count >= part.count else { return false }
        guard let start = baseAddress, let other = part.baseAddress else { return part.isEmpty }
        return memcmp(start + (count - part.count), other, part.count) == 0
    }

    fileprivate func contains(_ part: UnsafeBufferPointer<UInt8>) -> Bool {
        guard !part.isEmpty else { return true }
        guard let start = baseAddress, let other = part.baseAddress else { return false }
        return cre2_contains(start, count, other, part.count)
    }
}
