internal import CRE2
internal import Glibc

/// A compiled condition: the macro by its number, the comparand in the forms that comparing needs.
///
/// It has no references, so that none is counted for each condition of each event. The compiled container
/// owns what it points to.
struct CompiledCondition {
    /// Number of the macro.
    let macro: Int
    /// Whether the condition asks for exactly this text, as most do. It has the fastest path.
    let isPlainText: Bool
    /// Whether the condition compares numbers with `limit`.
    let isPlainOrder: Bool
    /// Whether the comparison holds below the limit, at it and above it; used if `isPlainOrder`.
    let order: (below: Bool, equal: Bool, above: Bool)
    /// The number to compare with.
    let limit: Double
    /// The first bytes of the comparand's text as a number.
    let head: UInt64
    /// Pairs that a text must have for the comparison to hold, before it is negated; none if only a search
    /// can tell.
    let requiredPairs: TextPairs
    /// The comparison.
    let predicate: Condition.Predicate
    /// Whether the condition holds if the comparison does not.
    let negate: Bool
    /// Whether capital and small letters are the same.
    let ignoreCase: Bool
    /// The comparand; meaningless if a macro gives it.
    let comparand: Comparand
    /// Number of the macro that gives the comparand; negative for a constant.
    let comparandMacro: Int
    /// The regular expression; owned by the container.
    let expression: Unmanaged<Expression>?

    /// Compiles a condition.
    init(_ draft: ContainerCompiler.ConditionDraft, _ comparand: Comparand) {
        macro = draft.macro
        (predicate, negate, ignoreCase) =
            (draft.condition.predicate, draft.condition.negate, draft.condition.ignoreCase)
        self.comparand = comparand
        let comparandMacro = draft.comparandMacro
        self.comparandMacro = comparandMacro ?? -1
        expression = draft.expression.map { Unmanaged.passUnretained($0) }
        isPlainText =
            predicate == .equals && !ignoreCase && comparandMacro == nil && comparand.kind == .string
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

    /// Whether a comparison of texts holds for a macro's text, which is folded if the condition ignores case.
    @inline(__always)
    func compare(_ text: UnsafeBufferPointer<UInt8>, with other: Comparand) -> Bool {
        switch predicate {
        case .equals: other.isScalar && text.equals(other.text)
        case .startsWith: other.kind == .string && text.begins(with: other.text)
        case .endsWith: other.kind == .string && text.ends(with: other.text)
        case .contains: other.kind == .string && text.contains(run: other.text)
        case .matches: finds(in: text)
        case .less, .lessOrEqual, .greater, .greaterOrEqual: false
        }
    }

    /// Whether the expression matches.
    @inline(never)
    private func finds(in text: UnsafeBufferPointer<UInt8>) -> Bool {
        expression?._withUnsafeGuaranteedRef { $0.finds(in: text) } ?? false
    }

    /// Whether the condition holds for a number, for `isPlainOrder`.
    @inline(__always)
    func holdsOrder(_ number: Double) -> Bool {
        number < limit ? order.below : number > limit ? order.above : order.equal
    }

    /// Whether the condition holds for the result of comparing numbers.
    @inline(__always)
    func holdsOrder(_ found: Int) -> Bool { found < 0 ? order.below : found > 0 ? order.above : order.equal }
}

extension Condition.Predicate {
    /// Whether the predicate compares numbers by order.
    @inline(__always)
    var isOrder: Bool { self == .less || self == .lessOrEqual || self == .greater || self == .greaterOrEqual }

    /// Cost of the comparison, roughly.
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
    /// Whether two texts are equal.
    @inline(__always)
    func equals(_ other: UnsafeBufferPointer<UInt8>) -> Bool { count == other.count && begins(with: other) }

    /// Whether the text begins with a part.
    @inline(__always)
    fileprivate func begins(with part: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count >= part.count else { return false }
        guard let start = baseAddress, let other = part.baseAddress, !part.isEmpty else {
            return part.isEmpty
        }
        return start[0] == other[0] && memcmp(start, other, part.count) == 0
    }

    /// Whether the text ends with a part.
    @inline(__always)
    fileprivate func ends(with part: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count >= part.count else { return false }
        guard let start = baseAddress, let other = part.baseAddress else { return part.isEmpty }
        return memcmp(start + (count - part.count), other, part.count) == 0
    }

    /// Whether the text contains a part.
    func contains(run part: UnsafeBufferPointer<UInt8>) -> Bool {
        guard !part.isEmpty else { return true }
        guard let start = baseAddress, let other = part.baseAddress else { return false }
        return cre2_contains(start, count, other, part.count)
    }
}
